"""Overhead of the in-job library on training steps: blocks of steps with and without it alternate in one run.

A step keeps one core busy and releases the GIL, as the kernels of a framework do. The upload uses part of another core;
on a machine without an idle core it slows down the steps.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy
from threadpoolctl import threadpool_limits

from spotladder.train.environment import Environment
from spotladder.train.interruption import Interrupted
from spotladder.train.membership import Member, join
from spotladder.train.ranks import ProcessRank
from spotladder.train.session import Job
from tests.bench import rows
from tests.bench.rows import Row, limited

STEP = 0.02
STEPS = 300
PAIRS = 9
SIZE = 20 << 20
"""Bytes of a checkpoint: with 6 s of steps the same rate as 1 GiB in the default interval of 5 minutes."""

GOAL = 1.01


def member(folder: Path, **more: str) -> Member:
    settings = {"JOB": "bench", "URI": str(folder), "INTERVAL": "1h", **more}
    return join(Environment({f"SPOTLADDER_{name}": value for name, value in settings.items()}), ProcessRank())


def work() -> Callable[[], None]:
    """A function that performs one step: about `STEP` seconds of one core without the GIL."""
    matrix = numpy.random.default_rng(0).random((500, 500))
    began = time.perf_counter()
    for _ in range(10):
        matrix @ matrix
    times = max(1, round(STEP / ((time.perf_counter() - began) / 10)))

    def step() -> None:
        for _ in range(times):
            matrix @ matrix

    return step


def seconds(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def asking(folder: Path) -> Row:
    """Time of `steps` and `should_commit` for a step without a commit, with a notice file to poll."""
    notice = folder / "notice"
    notice.touch()
    job = Job(member(folder / "a", NOTICE=str(notice), HEARTBEAT=str(folder / "heartbeat")))
    count = 20_000

    def ask() -> None:
        for step in job.steps(0, count + 1):
            if step <= count:
                job.should_commit(step)

    took = seconds(ask) / count
    job.close()
    what = f"1 % of a step of {STEP * 1e3:.0f} ms"
    return limited("should_commit without a commit, per step", took * 1e6, "µs", STEP * 1e4, what)


def committing(folder: Path) -> list[Row]:
    """A commit of `SIZE` bytes in every block of `STEPS` steps, compared with only writing the same file."""
    step, payload = work(), os.urandom(SIZE)
    job = Job(member(folder / "b", KEEP="1"))
    ratios: list[float] = []
    held: list[float] = []

    def plain(number: int) -> None:
        for index in range(STEPS):
            step()
            if index == 0:
                (folder / f"plain-{number}").write_bytes(payload)

    def commits(number: int) -> None:
        for index in range(STEPS):
            step()
            if index == 0:
                began = time.perf_counter()
                with job.commit(number + 1) as target:
                    writing = time.perf_counter()
                    (target / "state").write_bytes(payload)
                    written = time.perf_counter()
                held.append(time.perf_counter() - began - (written - writing))

    for number in range(PAIRS):
        alone = seconds(lambda: plain(number))  # noqa: B023 – called at once
        ratios.append(seconds(lambda: commits(number)) / alone)  # noqa: B023
        job.flush()
        (folder / f"plain-{number}").unlink()
    job.close()
    return [
        limited(
            f"wait for a commit of {SIZE >> 20} MiB, without the program's own writes",
            median(held) * 1e3,
            "ms",
            STEP * STEPS * 10,
            f"1 % of {STEPS} steps of {STEP * 1e3:.0f} ms",
        ),
        Row(
            "step time with and without commits, median of the pairs",
            median(ratios),
            "×",
            "equal",
            1.0,
            f"≤ {GOAL}",
            median(ratios) <= GOAL,
        ),
    ]


def draining(folder: Path) -> Row:
    """Time from a notice to the exit of the program, after its commit; with steps of `STEP` seconds."""
    notice = folder / "drain"
    notice.touch()
    step, payload = work(), os.urandom(SIZE)
    job = Job(member(folder / "c", NOTICE=str(notice)))
    noticed_at = 0.0
    try:
        for number in job.steps(0, 1000):
            step()
            if number == 20:
                notice.write_text(json.dumps({"kind": "drain", "reason": "EvictionNotice"}))
                noticed_at = time.perf_counter()
            if job.should_commit(number):
                with job.commit(number) as target:
                    (target / "state").write_bytes(payload)
    except Interrupted:
        took = time.perf_counter() - noticed_at
    job.close()
    return limited(f"notice → committed, {SIZE >> 20} MiB", took, "s", 30.0, "shortest notice of a cloud")


def measure() -> Sequence[Row]:
    with tempfile.TemporaryDirectory(prefix="spotladder-bench-") as name, threadpool_limits(1):
        folder = Path(name)
        return [asking(folder), *committing(folder), draining(folder)]


if __name__ == "__main__":
    rows.main(measure, "The in-job library")
