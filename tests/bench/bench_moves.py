"""Time without a step when a job moves, or changes its size, on real nodes, and its first step beside a tier without
machines; each beside the same event without the feature.

It has the requirements of `make test-e2e`. Without them it is skipped, and tests/bench/results.md keeps its figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.bench import parts
from tests.bench.parts import Group, Part
from tests.bench.pauses import OVERLAP, PRICES, Pause, overlap_usd, pause
from tests.bench.rows import Row
from tests.e2e import image, provider
from tests.e2e.kube import Object
from tests.e2e.losses import SPOT
from tests.e2e.site import E2eSite, installed
from tests.e2e.test_elastic import trains_with, workload
from tests.e2e.world import E2eCluster

GOAL, ELASTIC_GOAL = 15.0, 20.0
"""Maximum seconds without a step when a planned move has a standby attempt, and when an elastic job loses a worker
without notice."""

ON_DEMAND = "on-demand"
PROGRAM = "chain.py --steps 100000"
STANDBY: Object = {"overlap": {"maxDuration": "15m"}}
HEDGE: Object = {"overlap": {"hedgeAfter": "10s", "budget": "1"}}
PROVISION = "90s"
"""The provisionTimeout of the first tier of the job without a hedge."""

WORKERS = 4
"""Number of workers of the elastic job."""

STAYS = {"name": ON_DEMAND, "maxFailures": -1}

Move = Callable[[E2eCluster, Object], None]


def of_move(name: str, move: Move) -> Part:
    """Measures the move with and without a standby attempt."""

    def measured(site: E2eSite) -> Iterator[Row]:
        with_standby, without = _in_its_world(site, move, STANDBY), _in_its_world(site, move, {})
        met = with_standby.seconds <= GOAL and not with_standby.repeated
        what, goal = f"{name}, standby attempt: downtime", f"≤ {GOAL:g} s, no step redone"
        yield with_standby.row(what, goal, met, without, "without overlap")

    return measured


def _in_its_world(site: E2eSite, move: Move, spec: Object) -> Pause:
    with site.world() as here:
        move(here, spec)
        found = pause(here, here.done()[-1].process)
        print(found, flush=True)
        return found


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


# --- a tier without machines ---


def hedge(site: E2eSite) -> Iterator[Row]:
    """The first tier has no machines: with a hedge, without one, and without that tier."""
    with site.world() as here:
        hedged = _first_step(here, {"name": SPOT, "provisionTimeout": "30m"}, **HEDGE)
        here.runs(ON_DEMAND)
        here.until("no second attempt is left", lambda: not {"standby", "removing"} & here.status().keys())
        paid = overlap_usd(here)
    with site.world() as here:
        waited = _first_step(here, {"name": SPOT, "provisionTimeout": PROVISION})
    with site.world() as here:
        direct = _first_step(here)
    what, also = "first tier without machines, hedgeAfter 10 s → first step", {OVERLAP: paid}
    also["on the second tier only, s"] = direct
    yield Row(what, hedged, "s", f"without a hedge, provisionTimeout {PROVISION}", waited, also=also)


def _first_step(here: E2eCluster, *first: Object, **spec: Any) -> float:
    """Submit a job whose two workers need a machine each, on `first`, a spot tier without machines, and on two
    on-demand machines. Returns the seconds until its first step."""
    here.heads(2)
    here.pool(SPOT, 0)
    here.pool(ON_DEMAND, 2)
    began = time.time()
    here.submit(*first, STAYS, workload=workload(here, 2), **spec)
    here.until("the first step", here.done)
    return here.done()[0].at - began


# --- an elastic job ---


def elastic(site: E2eSite) -> Iterator[Row]:
    """The pause when the job loses a worker, and when it has all workers again."""
    with site.world() as here:
        waited = _loses_a_worker(here, WORKERS + 1, {"min": WORKERS})
    with site.world() as here:
        shrunk = _loses_a_worker(here, WORKERS, {"min": 2})
        what = f"one of {WORKERS} workers killed: last step → first step with {WORKERS - 1}"
        compared_with, met = f"elastic.min {WORKERS}, another node is free", shrunk.seconds <= ELASTIC_GOAL
        yield shrunk.row(what, f"≤ {ELASTIC_GOAL:g} s", met, waited, compared_with)
        before = here.done()[-1].process
        here.give(SPOT)
        trains_with(here, WORKERS)
        grown = pause(here, before)
        what = f"another node comes: last step with {WORKERS - 1} → first with {WORKERS}"
        yield grown.row(what, "no step redone", grown.repeated == 0)


def _loses_a_worker(here: E2eCluster, machines: int, spec: Object) -> Pause:
    here.pool(SPOT, machines)
    tier = {"name": SPOT, "maxFailures": 5, "overrides": {"env": {"SPOTLADDER_GROW_AFTER": "10s"}}}
    here.submit(tier, workload=workload(here, WORKERS), elastic=spec)
    here.runs(SPOT)
    before = here.done()[-1].process
    here.cluster.kill(here.worker_node())
    return pause(here, before)


def groups() -> list[Group]:
    """All parts, in one cluster."""
    found = {name: of_move(name, move) for name, move in MOVES.items()}
    return [Group(lambda: installed("moves", image.build(), "kuberay"), {**found, "hedge": hedge, "elastic": elastic})]


if __name__ == "__main__":
    parts.main(groups(), "Moves on a real cluster", note=PRICES, skipped=provider.missing())
