"""Time of the default answer of `spotladder plan`, compared with `spotladder --help`, which imports the command line
only."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from spotladder.core.contract import LaunchVariable
from tests.bench.rows import Row, main

RUNS = 5
MAX_SECONDS = 2.0

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits-tensorflow"
HELP = ["--help"]
WORLD, RATE = f"--world={EXAMPLE / 'world.yaml'}", "--evictions-per-node-hour=0.2"
PLAN = ["plan", str(EXAMPLE / "job.yaml"), "--hours=5", WORLD, RATE]


def seconds(arguments: Sequence[str], bytecode: str) -> float:
    """Run the command in a new Python; returns the wall-clock seconds. Modules are compiled once, as after
    installation."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "spotladder.cli.main", *arguments]
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=environment)
    return time.perf_counter() - started


def measure(runs: int = RUNS) -> Sequence[Row]:
    """Medians of interleaved runs, without the state of earlier runs of the job."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[LaunchVariable.STATE] = folder
        for arguments in (HELP, PLAN):
            seconds(arguments, folder)  # compiles the modules
        pairs = [(seconds(HELP, folder), seconds(PLAN, folder)) for _ in range(runs)]
    for_help, for_plan = map(statistics.median, zip(*pairs, strict=True))
    what, goal = "`spotladder plan …`, 4 tiers, 5 h", f"≤ {MAX_SECONDS:g} s"
    return [Row(what, for_plan, "s", "`spotladder --help`", for_help, goal, for_plan <= MAX_SECONDS)]


if __name__ == "__main__":
    main(measure, "Planning", runs=RUNS)
