"""What the loss of a node costs a job on real nodes, compared with the same RayJob under KubeRay alone: with nodes that
count as lost after 10 s of silence. Silent losses also with Kubernetes' own timeouts, which are 40 to 50 s.

It has the requirements of `make test-e2e`. Without them it is skipped, and tests/bench/results.md keeps its figures.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

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


def of_loss(loss: MachineLoss) -> Part:
    """Measures the loss beside KubeRay alone."""

    def measured(site: E2eSite) -> Iterator[Row]:
        with site.world() as here:
            ours, paid = _lost(here, loss)
        with site.world() as here:
            alone = _lost_alone(here, loss)
        if loss.name == LONG_NOTICE:
            words, met = f"downtime ≤ {SURGE_GOAL:g} s, no step redone", ours.pause <= SURGE_GOAL and not ours.again
        else:
            words, met = f"≤ {GOAL:g} s", ours.first_step <= GOAL
        found = row(loss.name, ours, paid, words, met=met)
        if alone is None:
            yield replace(found, compared_with=f"KubeRay alone: not within {ALONE:g} s")
            return
        theirs = {f"KubeRay alone: {DOWNTIME}": alone.pause, f"KubeRay alone: {REDONE}": alone.again}
        yield replace(found, compared_with="KubeRay alone", reference=alone.first_step, also={**found.also, **theirs})

    return measured


def of_silent_loss(loss: MachineLoss, name: str) -> Part:
    """Measures the loss at Kubernetes' own timeouts, after the controller has seen the nodes' Leases renewed."""

    def measured(site: E2eSite) -> Iterator[Row]:
        with site.world() as here:
            ours, paid = _lost(here, loss, SEEN_RENEWING)
        goal = STOCK_GOALS[loss.name]
        yield row(name, ours, paid, f"≤ {goal:g} s", met=ours.first_step <= goal)

    return measured


def _lost(here: E2eCluster, loss: MachineLoss, trains_for: float = 0.0) -> tuple[Seen, float]:
    """What was seen of the loss, and what second nodes cost in USD."""
    here.heads(1 + loss.spare(HEADS))
    here.pool(SPOT, 2 + loss.spare(SPOT), notice=f"{loss.notice:g}s")
    here.submit({"name": SPOT, "maxFailures": -1}, program=PROGRAM)
    here.runs(SPOT)
    time.sleep(trains_for)
    seen = lose(here, loss)
    if loss.announced:
        here.until("the noticed worker is gone", lambda: len(here.pods("worker")) == 2)
    print(seen, flush=True)
    return seen, overlap_usd(here)


def _lost_alone(here: E2eCluster, loss: MachineLoss) -> Seen | None:
    here.heads(1 + loss.spare(HEADS))
    here.pool(SPOT, 2 + loss.spare(SPOT))
    here.submit_alone(SPOT, program=PROGRAM)
    seen = lose_alone(here, loss)
    print("KubeRay alone:", seen, flush=True)
    return seen


def row(name: str, ours: Seen, paid: float, goal: str, *, met: bool) -> Row:
    """The row of a loss."""
    also = {COUNTED: ours.counted, DOWNTIME: ours.pause, REDONE: ours.again, OVERLAP: paid}
    return Row(f"{name} → first new step", ours.first_step, "s", "-", None, goal, met, also)


def groups() -> list[Group]:
    """The losses with short and with Kubernetes' own timeouts."""
    stock = [loss for loss in (*LOSSES, *SILENT_LOSSES) if loss.name in STOCK_GOALS]
    own = {f"{loss.name}, stock timeouts": loss for loss in stock}
    return [
        Group(
            lambda: installed("losses", image.build(), "kuberay"),
            {loss.name: of_loss(loss) for loss in LOSSES},
        ),
        Group(
            lambda: installed("stock", image.build(), "kuberay", stock_timeouts=True),
            {name: of_silent_loss(loss, name) for name, loss in own.items()},
        ),
    ]


NOTE = (
    "For each loss another node is free. With *stock timeouts*, Kubernetes marks a silent node after 40 to 50 s, "
    "otherwise after 10 s; KubeRay alone is measured with the latter. Downtime is the time between two steps. A job "
    f"trains on after a notice, and for a while after its nodes are cut off. {PRICES}"
)

if __name__ == "__main__":
    parts.main(groups(), "Lost nodes on a real cluster", note=NOTE, skipped=provider.missing())
