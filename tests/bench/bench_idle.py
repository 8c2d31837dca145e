"""10,000 idle jobs with 50,000 pods: memory and load of the controller, and the start of another one.

The first jobs run as in tests/bench/bench_scale.py; the others are copies of them (tests/bench/clones.py), to which
nothing happens. It has the requirements of `make test-kube`. Without them it is skipped, and tests/bench/results.md
keeps its figures.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path

from spotladder.operator.reconcile.status import PODS_WRITE_INTERVAL
from tests.bench.clones import clone, served
from tests.bench.crowd import WORKERS, Crowd, job_name, listed, main, new_crowd, on_api_server, say
from tests.bench.rows import Row, limited
from tests.kube.apiserver import ApiServer

JOBS = 10_000
RUN = 200
"""Number of jobs that run; the others are copies of them."""

REST = 20.0
"""Seconds for which idle jobs are measured, after a pause of three times as long."""

READY, ALLOWED = 30 / 10_000, 600 / 10_000
"""Limits per job: seconds until a new controller is ready, MB of its memory. Small benchmarks have 10 s and 200 MB."""

CALLS, CPU = 10.0, 25.0
"""Limits for idle jobs: API calls per second, percent of a core."""

MEMORY = 400 / 200
"""SkyPilot's published memory in MB per job (400 MB for 200 jobs)."""


async def measured(server: ApiServer, folder: Path, *, jobs: int, run: int, rest: float) -> list[Row]:
    """All rows, with `jobs` jobs at the end."""
    async with new_crowd(server, folder, nodes=run) as crowd:
        await crowd.start()
        empty = crowd.memory()
        await crowd.submit(map(job_name, range(run)))
        # Otherwise each copy would have its commit and its pods to report.
        await crowd.report_commits()
        await asyncio.sleep(2 * PODS_WRITE_INTERVAL)
        await crowd.stop()
        await crowd.end_simulation()
        await served(crowd.server, await asyncio.to_thread(clone, crowd, run, jobs // run - 1))
        say(f"{jobs:,} jobs exist")
        began = time.monotonic()
        ready = await crowd.start()
        reconciled = await crowd.reconciled(jobs) - began
        say(f"ready after {ready:.1f} s, every job reconciled after {reconciled:.1f} s; load {os.getloadavg()[0]:.1f}")
        what = f"start with {jobs:,} jobs and {jobs * (WORKERS + 1):,} pods → ready"
        started = limited(what, ready, "s", max(10.0, READY * jobs))
        return [started, *await _rest(crowd, jobs, rest), _weight(crowd, jobs, empty)]


async def _rest(crowd: Crowd, jobs: int, seconds: float) -> list[Row]:
    """The load of idle jobs."""
    await asyncio.sleep(3 * seconds)
    before, began = (crowd.processor_time(), await crowd.calls_by_target()), time.monotonic()
    await asyncio.sleep(seconds)
    lasted = time.monotonic() - began
    calls = await crowd.calls_by_target() - before[1]
    busy, rate = 100 * (crowd.processor_time() - before[0]) / lasted, calls.total() / lasted
    say(f"idle: {rate:.1f} calls/s ({listed(calls)} in {lasted:.0f} s), {busy:.0f} % of a core")
    return [
        limited(f"API calls, {jobs:,} idle jobs", rate, "/s", CALLS),
        limited(f"CPU time of the controller, {jobs:,} idle jobs", busy, "%", CPU),
    ]


def _weight(crowd: Crowd, jobs: int, empty: float) -> Row:
    memory = crowd.memory()
    say(f"{memory:.0f} MB with {jobs} jobs, {empty:.0f} MB with none")
    compared_with = "SkyPilot's published 400 MB for 200 jobs"
    what = f"memory, {jobs:,} jobs with {jobs * (WORKERS + 1):,} pods"
    limit = max(200.0, ALLOWED * jobs)
    return Row(what, memory, "MB", compared_with, MEMORY * jobs, f"< {limit:.0f} MB", memory < limit)


def measure(*, jobs: int = JOBS, run: int = RUN, rest: float = REST) -> Sequence[Row]:
    return on_api_server(lambda server, folder: measured(server, folder, jobs=jobs, run=run, rest=rest))


if __name__ == "__main__":
    main(measure, "Many idle jobs", JOBS)
