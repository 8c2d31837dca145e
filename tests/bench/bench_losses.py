"""What the loss of a node costs a job on real nodes, compared with the same RayJob under KubeRay alone: with nodes that
count as lost after 10 s of silence, and with Kubernetes' own timeouts, which are 40 to 50 s.

It has the requirements of `make test-e2e`. Without them it is skipped, and docs/benchmarks.md keeps its figures.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from tests.bench import parts
from tests.bench.parts import Group, Part
from tests.bench.pauses import COUNTED, DOWNTIME, OVERLAP, PRICES, REDONE, overlap_usd
from tests.bench.rows import Row
from tests.e2e import image, provider
from tests.e2e.losses import ALONE, LOSSES, SILENT_LOSSES, SPOT, MachineLoss, Seen, lose, lose_alone
from tests.e2e.site import E2eSite, installed
from tests.e2e.world import HEADS, E2eCluster

PROGRAM = "chain.py --steps 100000"

GOAL = 90.0
"""Maximum seconds to the first new step, with nodes that count as lost after 10 s of silence."""

SURGE_GOAL = 15.0
"""Maximum seconds without a step when a worker is replaced before its node is reclaimed."""

STOCK_GOALS = {
    "node killed, its Node object stays": 40.0,
    "power cut": 55.0,
    "power cut of all its nodes": 55.0,
    "all its nodes without network": 55.0,
}
"""Maximum seconds to the first new step at Kubernetes' own timeouts. Other losses do not depend on them."""

SEEN_RENEWING = 20.0
"""Seconds after which the controller has seen the Leases of new nodes renewed."""

LONG_NOTICE = "notice of 45 s"


def of_loss(loss: MachineLoss, name: str, goal: float, trains_for: float = 0.0) -> Part:
    """Measures the loss after the job has trained for this time in seconds."""

    def measured(site: E2eSite) -> Iterator[Row]:
        with site.world() as here:
            ours = _lost(here, loss, trains_for)
            paid = overlap_usd(here)
        with site.world() as here:
            alone = _lost_alone(here, loss)
        yield row(name, ours, paid, alone, goal)

    return measured


def _lost(here: E2eCluster, loss: MachineLoss, trains_for: float) -> Seen:
    here.heads(1 + loss.spare(HEADS))
    here.pool(SPOT, 2 + loss.spare(SPOT), notice=f"{loss.notice:g}s")
    here.submit({"name": SPOT, "maxFailures": -1}, program=PROGRAM)
    here.runs(SPOT)
    time.sleep(trains_for)
    seen = lose(here, loss)
    if loss.announced:
        here.until("the noticed worker is gone", lambda: len(here.pods("worker")) == 2)
    print(seen, flush=True)
    return seen


def _lost_alone(here: E2eCluster, loss: MachineLoss) -> Seen | None:
    here.heads(1 + loss.spare(HEADS))
    here.pool(SPOT, 2 + loss.spare(SPOT))
    here.submit_alone(SPOT, program=PROGRAM)
    seen = lose_alone(here, loss)
    print("KubeRay alone:", seen, flush=True)
    return seen


def row(name: str, ours: Seen, paid: float, alone: Seen | None, goal: float) -> Row:
    """The row of a loss. A long notice has a goal of its own: with a free node the job loses no step."""
    if ours.name == LONG_NOTICE:
        words, met = f"downtime ≤ {SURGE_GOAL:g} s, no step redone", ours.pause <= SURGE_GOAL and not ours.again
    else:
        words, met = f"≤ {goal:g} s", ours.first_step <= goal
    return Row(
        f"{name} → first new step",
        ours.first_step,
        "s",
        "KubeRay alone" if alone is not None else f"KubeRay alone: not within {ALONE:g} s",
        alone.first_step if alone is not None else None,
        words,
        met,
        {
            COUNTED: ours.counted,
            DOWNTIME: ours.pause,
            REDONE: ours.again,
            OVERLAP: paid,
            f"KubeRay alone: {DOWNTIME}": None if alone is None else alone.pause,
            f"KubeRay alone: {REDONE}": None if alone is None else alone.again,
        },
    )


def groups() -> list[Group]:
    """The losses with short and with Kubernetes' own timeouts."""
    stock = [loss for loss in (*LOSSES, *SILENT_LOSSES) if loss.name in STOCK_GOALS]
    own = {f"{loss.name}, stock timeouts": loss for loss in stock}
    return [
        Group(
            lambda: installed("losses", image.build(), "kuberay"),
            {loss.name: of_loss(loss, loss.name, GOAL) for loss in LOSSES},
        ),
        Group(
            lambda: installed("stock", image.build(), "kuberay", stock_timeouts=True),
            {name: of_loss(loss, name, STOCK_GOALS[loss.name], SEEN_RENEWING) for name, loss in own.items()},
        ),
    ]


NOTE = (
    "For each loss another node is free. With *stock timeouts*, Kubernetes marks a silent node after 40 to 50 s, "
    "otherwise after 10 s. Downtime is the time between two steps. A job trains on after a notice, and for a while "
    f"after its nodes are cut off. {PRICES}"
)

if __name__ == "__main__":
    parts.main(groups(), "Lost nodes on a real cluster", note=NOTE, skipped=provider.missing())
