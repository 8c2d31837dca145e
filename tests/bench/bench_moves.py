"""Time without a step when a job moves on real nodes, beside the same event without `overlap`.

It has the requirements of `make test-e2e`. Without them it is skipped, and tests/bench/results.md keeps its figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.bench import parts
from tests.bench.parts import Group, Part
from tests.bench.pauses import PRICES, Pause, pause
from tests.bench.rows import Row
from tests.e2e import image, provider
from tests.e2e.kube import Object
from tests.e2e.losses import SPOT
from tests.e2e.site import E2eSite, installed
from tests.e2e.world import E2eCluster

GOAL = 15.0
"""Maximum seconds without a step when a planned move has a standby attempt."""

ON_DEMAND = "on-demand"
PROGRAM = "chain.py --steps 100000"
OVERLAP = {"overlap": {"maxDuration": "15m"}}
STAYS = {"name": ON_DEMAND, "maxFailures": -1}

Move = Callable[[E2eCluster, Object], None]


def of_move(name: str, move: Move) -> Part:
    """Measures the move with and without a standby attempt."""

    def measured(site: E2eSite) -> Iterator[Row]:
        with_standby, without = _in_its_world(site, move, OVERLAP), _in_its_world(site, move, {})
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


def groups() -> list[Group]:
    """The moves, in one cluster."""
    found = {name: of_move(name, move) for name, move in MOVES.items()}
    return [Group(lambda: installed("moves", image.build(), "kuberay"), found)]


if __name__ == "__main__":
    parts.main(groups(), "Moves on a real cluster", note=PRICES, skipped=provider.missing())
