"""Time of the default answer of `spotladder plan`, compared with `spotladder --help`, which imports the command line
only."""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from spotladder.core.contract import LaunchVariable
from tests.bench.bench_import import PROGRAMS, seconds
from tests.bench.rows import Row, main

RUNS = 5
MOST_SECONDS = 2.0

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits-tensorflow"
REFERENCE = "`spotladder --help`"
DEFAULT = "`spotladder plan …`, 4 tiers, 5 h"
ANSWERS = {
    DEFAULT: (),
    "the same with `--formula`, only the closed formulas": ("--formula",),
}


def program(options: Sequence[str]) -> str:
    """The program that plans the example with these options."""
    rate = "--evictions-per-node-hour=0.2"
    arguments = ["plan", str(EXAMPLE / "job.yaml"), "--hours=5", f"--world={EXAMPLE / 'world.yaml'}", rate, *options]
    return f"from spotladder.cli.main import main; main({arguments})"


def measure(runs: int = RUNS) -> Sequence[Row]:
    """Medians of interleaved runs, without the state of earlier runs of the job."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[LaunchVariable.STATE] = folder
        programs = {REFERENCE: PROGRAMS[REFERENCE], **{name: program(options) for name, options in ANSWERS.items()}}
        for code in programs.values():
            seconds(code, folder)  # compiles the modules
        times: dict[str, list[float]] = {name: [] for name in programs}
        for _ in range(runs):
            for name, code in programs.items():
                times[name].append(seconds(code, folder))
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    return [
        Row(
            name=name,
            measured=medians[name],
            unit="s",
            compared_with=REFERENCE,
            reference=medians[REFERENCE],
            goal=f"≤ {MOST_SECONDS:g} s" if name == DEFAULT else "",
            met=medians[name] <= MOST_SECONDS if name == DEFAULT else None,
        )
        for name in ANSWERS
    ]


if __name__ == "__main__":
    main(measure, "Planning", runs=RUNS)
