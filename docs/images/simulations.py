"""Makes the pictures of docs/simulator.md: `make pictures`.

- policies.svg: three policies on synthetic spot capacity, as `spotladder simulate --plot` draws them;
- survival.svg: how long spells of capacity last, as `--survival` draws it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from spotladder.cli.main import main
from spotladder.sim.synthetic import SyntheticMarket, generate

HERE = Path(__file__).parent
TICKS = 3000
SEED = 7
"""Length and seed of the trace that is drawn as if it was recorded."""

POLICIES = ("on-demand", "uniform-progress", "greedy")


def draw() -> None:
    """Write the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "recorded.csv"
        (found,) = generate(SyntheticMarket(), TICKS, ["recorded"], SEED)
        flags = found.ticks(SyntheticMarket().gap)
        lines = [f"{600 * index},{int(flag)}" for index, flag in enumerate(flags.tolist())]
        trace.write_text("\n".join(["time,available", *lines]) + "\n")
        options = [word for name in POLICIES for word in ("--policy", name)]
        options += ["--hours", "6", "--deadline", "10h", "--seeds", "8", "--probed"]
        pictures = ["--plot", str(HERE / "policies.svg"), "--survival", str(HERE / "survival.svg")]
        if code := main(["simulate", "--trace", f"spot={trace}", *options, *pictures]):
            raise SystemExit(code)


if __name__ == "__main__":
    draw()
