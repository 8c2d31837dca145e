"""Storms of evictions among many jobs: pod lost → next attempt.

tests/bench/crowd.py describes the jobs and the simulation. The figures are those of the controller and the API server,
which share the machine's cores with the simulation. The loop of the minimum calls shows the limit of the API server.

It has the requirements of `make test-kube`. Without them it is skipped, and tests/bench/results.md keeps its figures.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.bare import Fallbacks
from tests.bench.crowd import Crowd, job_name, main, new_crowd, on_api_server, say
from tests.bench.rows import Row
from tests.kube.apiserver import ApiServer

JOBS = 1000
BUSY, STORM = 5.0, 50.0
"""Evictions per second: a rate that an API server on two cores still serves, a capacity crunch in a region."""

EVICTED = 60
"""Number of evicted jobs at each rate."""

SLOWER, RATE = 1.5, 0.8
"""Goals for a storm beside the loop of the minimum calls: the p99 of the reaction and the rate of completed fallbacks,
as multiples of the loop's."""

POLLING = 15.0
"""SkyPilot's published polling interval in seconds (15 to 45 s)."""


@dataclass(frozen=True)
class Storm:
    """The p99 of the seconds from a lost pod to the next RayJob, and the completed fallbacks per second."""

    p99: float
    rate: float


async def measured(server: ApiServer, folder: Path, *, jobs: int, evicted: int) -> list[Row]:
    """All rows, with `jobs` jobs."""
    number = min(evicted, jobs // 2)
    async with new_crowd(server, folder, nodes=jobs) as crowd:
        await crowd.start()
        await crowd.submit(map(job_name, range(jobs)))
        last = range(jobs - number, jobs)
        found = {BUSY: await _storm(crowd, last, BUSY), STORM: await _storm(crowd, range(number), STORM)}
        loop = await _loop(crowd, last)
    reaction, published = "pod lost → next RayJob, p99", "SkyPilot's shortest published polling interval"
    rows = [
        Row(
            f"{reaction}, {jobs:,} jobs, {rate:.0f} evictions/s", one.p99, "s", published, POLLING, "< 1 s", one.p99 < 1
        )
        for rate, one in found.items()
    ]
    where, minimum, mine = f"{jobs:,} jobs, {STORM:.0f} evictions/s", "the loop of the minimum calls", found[STORM]
    fast, many = mine.p99 <= SLOWER * loop.p99, mine.rate >= RATE * loop.rate
    return [
        *rows,
        Row(f"{reaction}, {where}, beside the loop", mine.p99, "s", minimum, loop.p99, f"≤ {SLOWER} ×", fast),
        Row(f"completed fallbacks, {where}, beside the loop", mine.rate, "/s", minimum, loop.rate, f"≥ {RATE} ×", many),
    ]


async def _storm(crowd: Crowd, numbers: range, rate: float) -> Storm:
    """Evict these jobs at `rate` per second."""
    names = [job_name(number) for number in numbers]
    began = time.monotonic()
    storm = _of(await crowd.evict(names, every=1 / rate), began)
    say(f"{rate:.0f} evictions/s: {storm}")
    await crowd.run(names)
    return storm


async def _loop(crowd: Crowd, numbers: range) -> Storm:
    """The same evictions without a controller."""
    names = [job_name(number) for number in numbers]
    await crowd.stop()
    fallbacks = Fallbacks(crowd.client, crowd.namespace)
    await fallbacks.prepare((name, crowd.kuberay.attempt[name]) for name in names)
    began = time.monotonic()
    storm = _of(await crowd.evict(names, every=1 / STORM, then=fallbacks), began)
    say(f"without a controller, {STORM:.0f} evictions/s: {storm}")
    return storm


def _of(reactions: Sequence[float], began: float) -> Storm:
    lasted = time.monotonic() - began
    return Storm(statistics.quantiles(reactions, n=100, method="inclusive")[98], len(reactions) / lasted)


def measure(*, jobs: int = JOBS, evicted: int = EVICTED) -> Sequence[Row]:
    return on_api_server(lambda server, folder: measured(server, folder, jobs=jobs, evicted=evicted))


if __name__ == "__main__":
    main(measure, "Many jobs", JOBS)
