"""Time to import the in-job library and to run `spotladder --help`, compared with bare Python."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from tests.bench.rows import Row, main

RUNS = 15
LIMITED = ("`import spotladder.train`", "`spotladder --help`")
MOST_SECONDS = 0.35

PROGRAMS = {
    "`import spotladder.train`": "import spotladder.train",
    "`spotladder --help`": "from spotladder.cli.main import main; main(['--help'])",
    "`spotladder plan --formula …`": (
        "from spotladder.cli.main import main; "
        "main(['plan', '--formula', '--hours=5', '--spot-fraction=0.6', '--max-failures=5', '--overhead=0.2'])"
    ),
    "reading YAML (`import spotladder.api.read`)": "import spotladder.api.read, ruamel.yaml",
}


def seconds(program: str, bytecode: str) -> float:
    """Run the program in a new Python; returns the wall-clock seconds. Modules are compiled once, as after
    installation."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL, check=True, env=environment)
    return time.perf_counter() - started


def measure() -> Sequence[Row]:
    """Medians of interleaved runs, so that other load on the machine affects all programs alike."""
    with tempfile.TemporaryDirectory() as bytecode:
        return _measured(bytecode)


def _measured(bytecode: str) -> list[Row]:
    times: dict[str, list[float]] = {name: [] for name in ("bare", *PROGRAMS)}
    for program in PROGRAMS.values():
        seconds(program, bytecode)  # compiles the modules
    for _ in range(RUNS):
        times["bare"].append(seconds("pass", bytecode))
        for name, program in PROGRAMS.items():
            times[name].append(seconds(program, bytecode))
    bare = statistics.median(times["bare"])
    rows = []
    for name in PROGRAMS:
        median = statistics.median(times[name])
        limited = name in LIMITED
        rows.append(
            Row(
                name=name,
                measured=median,
                unit="s",
                compared_with="bare Python",
                reference=bare,
                goal=f"< {MOST_SECONDS} s more" if limited else "",
                met=median - bare < MOST_SECONDS if limited else None,
            )
        )
    return rows


if __name__ == "__main__":
    main(measure, "Import times")
