"""Machines are lost in every way that `losses` lists. The job continues without help, and its result equals the
uninterrupted one."""

from __future__ import annotations

from tests.e2e.losses import LOSSES, SPOT, lose
from tests.e2e.world import HEADS, E2eCluster

LIMIT = 150.0
"""Maximum seconds from a loss to a new step on a busy machine. docs/benchmarks.md has the figures."""


def test_every_way_to_lose_a_machine(here: E2eCluster) -> None:
    here.heads(1)
    spot = here.pool(SPOT, 3)
    here.submit({"name": SPOT, "maxFailures": -1}, program="chain.py --steps 100000")
    here.runs(SPOT)
    for loss in LOSSES:
        for pool in (HEADS, SPOT):
            here.give(pool, loss.spare(pool))
        here.kube.patch("capacitytier", spot, {"spec": {"notice": f"{loss.notice:g}s"}})
        seen = lose(here, loss)
        print(seen)
        assert seen.first_step <= LIMIT, seen
        assert seen.again <= loss.tolerated(seen.counted), seen
    here.suspend()
    here.is_the_uninterrupted_result(steps=here.steps())
