"""Time without a step when a job moves on real nodes, beside the same event without `overlap`.

It has the requirements of `make test-e2e`. Without them it is skipped, and docs/benchmarks.md keeps its figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tests.bench import rows
from tests.bench.rows import Row
from tests.e2e import image, provider
from tests.e2e.kube import Object
from tests.e2e.losses import SPOT
from tests.e2e.site import E2eSite, installed
from tests.e2e.steps import ReportedStep
from tests.e2e.world import E2eCluster

MOVE_GOAL = 15.0
"""Maximum seconds without a step when a planned move has a standby attempt."""

ON_DEMAND = "on-demand"
PROGRAM = "chain.py --steps 100000"
OVERLAP = {"overlap": {"maxDuration": "15m"}}
STAYS = {"name": ON_DEMAND, "maxFailures": -1}

START_LIMIT = 400.0
"""Seconds in which an attempt starts on a busy machine."""


@dataclass(frozen=True)
class Pause:
    """Seconds between the last step before an event and the first step after it, the number of steps that the job
    repeated, and the cost of standby attempts in USD."""

    seconds: float
    repeated: int
    overlap_usd: float

    def __str__(self) -> str:
        return f"{self.repeated} steps repeated, ${self.overlap_usd:.4f} for standby attempts"


def measure() -> Sequence[Row]:
    with installed("moves", image.build(), "kuberay") as site:
        return list(_rows(site))


def _rows(site: E2eSite) -> Iterable[Row]:
    for name, move in MOVES.items():
        with_standby, without = _in_its_world(site, move, OVERLAP), _in_its_world(site, move, {})
        met = with_standby.seconds <= MOVE_GOAL
        what = f"{name}, standby attempt ({with_standby})"
        compared_with = f"without overlap ({without.repeated} steps repeated)"
        yield Row(what, with_standby.seconds, "s", compared_with, without.seconds, "≤ 15 s", met)
    with site.world() as here:
        hedged = _first_step(here, spot={"overlap": {"hedgeAfter": "10s", "budget": "1"}})
    with site.world() as here:
        direct = _first_step(here, spot=None)
    yield Row("first tier without machines, hedgeAfter 10 s → first step", hedged, "s", "no first tier", direct)


def _in_its_world(site: E2eSite, move: Callable[[E2eCluster, Object], None], spec: Object) -> Pause:
    with site.world() as here:
        move(here, spec)
        return pause(here, here.done()[-1].process)


def _notice_that_exhausts_the_tier(here: E2eCluster, spec: Object) -> None:
    here.heads(2)
    here.pool(SPOT, 2, notice="75s")
    here.pool(ON_DEMAND, 2)
    here.submit(SPOT, STAYS, program=PROGRAM, **spec)
    here.runs(SPOT, past=5)
    here.processes.append(here.cluster.notice(here.worker_node(), 90))


def _changed_workload(here: E2eCluster, spec: Object) -> None:
    here.heads(2)
    here.pool(ON_DEMAND, 4)
    here.submit(STAYS, program=PROGRAM, **spec)
    here.runs(ON_DEMAND, past=5)
    here.submit(STAYS, program=f"{PROGRAM} --pace 0.21", **spec)


MOVES = {
    "notice of 90 s that exhausts the tier": _notice_that_exhausts_the_tier,
    "changed workload": _changed_workload,
}


def _first_step(here: E2eCluster, spot: Object | None) -> float:
    """Seconds from the submission to the first step on demand, after a spot tier without machines if there is one."""
    here.heads(2)
    here.pool(SPOT, 0)
    here.pool(ON_DEMAND, 2)
    first = [] if spot is None else [{"name": SPOT, "provisionTimeout": "30m"}]
    began = time.time()
    here.submit(*first, STAYS, program=PROGRAM, **(spot or {}))
    here.until("the first step", here.done, START_LIMIT)
    seconds = here.done()[0].at - began
    print(seconds, "s to the first step", flush=True)
    return seconds


def pause(here: E2eCluster, before: str) -> Pause:
    """Wait for the first new step of a process other than `before`."""

    def first_new() -> ReportedStep | None:
        last = max(step.step for step in here.done() if step.process == before)
        return next((step for step in here.done() if step.process != before and step.step > last), None)

    first = here.until("a new step", first_new, START_LIMIT)
    here.until("the job runs", lambda: here.status()["phase"] == "Running")
    old = [step for step in here.done() if step.process == before]
    again = [step for step in here.done() if step.process != before and step.step <= old[-1].step]
    cost = here.status().get("cost", {})
    found = Pause(first.at - old[-1].at, len(again), float(cost.get("overlap") or 0))
    print(found.seconds, found, flush=True)
    return found


if __name__ == "__main__":
    rows.main(measure, "Moves on a real cluster", skipped=provider.missing())
