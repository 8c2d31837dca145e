"""Storms of evictions among many jobs: pod lost → next attempt, and the cost of a fallback.

tests/bench/crowd.py describes the jobs and the simulation. The figures are those of the controller and the API server,
which share the machine's cores with the simulation.

It has the requirements of `make test-kube`. Without them it is skipped, and tests/bench/results.md keeps its figures.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.bench.bare import Fallbacks
from tests.bench.crowd import Crowd, job_name, listed, main, new_crowd, on_api_server, say
from tests.bench.rows import Row
from tests.kube.apiserver import ApiServer

JOBS = 1000
CALM, BUSY, STORM = 1.0, 5.0, 50.0
"""Evictions per second: an ordinary day, a rate that an API server on two cores still serves, a capacity crunch in a
region."""

EVICTED = 60
"""Number of evicted jobs at each rate."""

SOLO = 20
"""Number of jobs, one after the other, for the figures of a single job."""

SLOWER, RATE = 1.5, 0.8
"""Goals for a storm beside the loop of the minimum calls: the p99 of the reaction and the rate of completed fallbacks,
as multiples of the loop's."""

POLLING = 15.0
"""SkyPilot's published polling interval in seconds (15 to 45 s)."""


# --- measurements -----------------------------------------------------------------------------------------------------


async def measured(server: ApiServer, folder: Path, *, jobs: int, evicted: int, solo: int) -> list[Row]:
    """All rows, with `jobs` jobs at the end."""
    found: list[Row] = []
    some = max(4, jobs // 10)
    async with new_crowd(server, folder, nodes=jobs) as crowd:
        await crowd.start()
        found += await _solo(crowd, solo)
        running = 0
        for level in sorted({some, jobs}):
            await crowd.submit(map(job_name, range(running, level)))
            running, number = level, min(evicted, level // 2)
            found += await _storm(crowd, range(number), level, CALM)
            found += await _storm(crowd, range(number, 2 * number), level, STORM)
        found += await _storm(crowd, range(jobs - number, jobs), jobs, BUSY)
        found += await _bare(crowd, range(jobs - number, jobs))
    return [*found, *_beside(found, f"{jobs:,} jobs, {STORM:.0f} evictions/s")]


def _beside(found: Sequence[Row], storm: str) -> list[Row]:
    """The storm beside the loop of the minimum calls of the same run."""
    loop = f"minimum calls without a controller, {STORM:.0f} evictions/s"
    measured = {row.name: row.measured for row in found}
    slow, loop_slow = (measured[f"pod lost → next RayJob, {where}, p99"] for where in (storm, loop))
    rate, loop_rate = (measured[f"completed fallbacks, {where}"] for where in (storm, loop))
    compared_with = "the loop of the minimum calls"
    return [
        Row(
            f"pod lost → next RayJob, p99, {storm}, beside the loop",
            slow, "s", compared_with, loop_slow, f"≤ {SLOWER} ×", slow <= SLOWER * loop_slow,
        ),
        Row(
            f"completed fallbacks, {storm}, beside the loop",
            rate, "/s", compared_with, loop_rate, f"≥ {RATE} ×", rate >= RATE * loop_rate,
        ),
    ]  # fmt: skip


async def _solo(crowd: Crowd, rounds: int) -> list[Row]:
    reactions, calls, reconciles = [], Counter[str](), 0.0
    for name in (f"solo-{number}" for number in range(rounds)):
        await crowd.submit([name])
        before = await crowd.calls_by_target(), await crowd.reconciles()
        reactions += await crowd.evict([name])
        await crowd.run([name])
        calls += await crowd.calls_by_target() - before[0]
        reconciles += await crowd.reconciles() - before[1]
        await crowd.finish(name)
    found = _reactions(reactions, "1 job")
    say(f"calls of {rounds} fallbacks, including the start of their pods: {listed(calls)}")
    found.append(Row("API calls for a fallback, Events included", calls.total() / rounds, "", "-"))
    return [*found, Row("reconciles for a fallback, including the start of its pods", reconciles / rounds, "", "-")]


async def _storm(crowd: Crowd, numbers: range, level: int, rate: float) -> list[Row]:
    """Evict these jobs at `rate` per second while `level` jobs run."""
    names = [job_name(number) for number in numbers]
    before = (
        crowd.processor_time(),
        crowd.server.processor_time(),
        await crowd.calls_by_target(),
        await crowd.reconciles(),
    )
    began = time.monotonic()
    reactions = await crowd.evict(names, every=1 / rate)
    lasted = time.monotonic() - began
    mine, server = crowd.processor_time() - before[0], crowd.server.processor_time() - before[1]
    by_target, reconciles = await crowd.calls_by_target() - before[2], await crowd.reconciles() - before[3]
    calls = by_target.total()
    what = f"{level:,} jobs, {rate:.0f} evictions/s"
    found = _reactions(reactions, what, goal=level >= 1000)
    found.append(Row(f"completed fallbacks, {what}", len(names) / lasted, "/s", "evictions", rate))
    found.append(Row(f"API calls per reconcile, {what}", calls / reconciles, "", "-"))
    each = 1000 / len(names)
    found.append(
        Row(f"CPU time of the controller per eviction, {what}", mine * each, "ms", "API server", server * each)
    )
    say(
        f"{len(names)} evictions in {lasted:.0f} s: "
        f"{calls / len(names):.1f} calls and {reconciles / len(names):.1f} reconciles for each ({listed(by_target)})"
    )
    say(f"{mine * each:.0f} ms of CPU time for each, and {server * each:.0f} ms of the API server")
    await crowd.run(names)
    return found


async def _bare(crowd: Crowd, numbers: range) -> list[Row]:
    """The same evictions without a controller."""
    names = [job_name(number) for number in numbers]
    await crowd.stop()
    fallbacks = Fallbacks(crowd.client, crowd.namespace)
    await fallbacks.prepare((name, crowd.kuberay.attempt[name]) for name in names)
    before, began = crowd.server.processor_time(), time.monotonic()
    reactions = await crowd.evict(names, every=1 / STORM, then=fallbacks)
    lasted, server = time.monotonic() - began, crowd.server.processor_time() - before
    what = f"minimum calls without a controller, {STORM:.0f} evictions/s"
    found = _reactions(reactions, what, ours=False)
    found.append(Row(f"completed fallbacks, {what}", len(names) / lasted, "/s", "evictions", STORM))
    found.append(Row(f"CPU time of the API server per eviction, {what}", 1000 * server / len(names), "ms", "-"))
    return found


def _reactions(seconds: list[tuple[float, float]], where: str, *, ours: bool = True, goal: bool = False) -> list[Row]:
    found = []
    for what, values in (
        ("old attempt deleted", [stopped for stopped, _made in seconds]),
        ("next RayJob", [made for _stopped, made in seconds]),
    ):
        cuts = statistics.quantiles(values, n=100, method="inclusive")
        compared = ours and what == "next RayJob"
        for percent in (50, 99):
            value = cuts[percent - 1]
            say(f"{where}: pod lost → {what}, p{percent}: {1000 * value:.0f} ms")
            row = f"pod lost → {what}, {where}, p{percent}"
            if compared and percent == 99:
                met = value < 1.0 if goal else None
                found.append(
                    Row(row, value, "s", "SkyPilot's shortest published polling interval", POLLING, "< 1 s", met)
                )
            else:
                found.append(Row(row, value, "s", "-"))
    return found


def measure(*, jobs: int = JOBS, evicted: int = EVICTED, solo: int = SOLO) -> Sequence[Row]:
    return on_api_server(lambda server, folder: measured(server, folder, jobs=jobs, evicted=evicted, solo=solo))


if __name__ == "__main__":
    main(measure, "Many jobs", JOBS)
