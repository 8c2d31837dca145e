"""Machines are lost in every way that `losses` lists. The job continues without help, and its result equals the
uninterrupted one."""

from __future__ import annotations

from tests.e2e.losses import LOSSES, SPOT, lose
from tests.e2e.world import HEADS, E2eCluster


def test_every_way_to_lose_a_machine(e2e: E2eCluster) -> None:
    e2e.heads(1)
    spot = e2e.pool(SPOT, 3)
    e2e.submit({"name": SPOT, "maxFailures": -1}, program="chain.py --steps 100000")
    e2e.runs(SPOT)
    for loss in LOSSES:
        for pool in (HEADS, SPOT):
            e2e.give(pool, loss.spare(pool))
        e2e.kube.patch("capacitytier", spot, {"spec": {"notice": f"{loss.notice:g}s"}})
        seen = lose(e2e, loss)
        print(seen)
        assert seen.again <= loss.tolerated(seen.counted), seen
    e2e.suspend()
    e2e.is_the_uninterrupted_result(steps=e2e.steps())
