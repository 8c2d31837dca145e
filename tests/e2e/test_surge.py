"""A node gets a notice while another node is free: its worker is replaced first, and the attempt continues."""

from __future__ import annotations

import pytest

from tests.e2e.losses import LOSSES, SPOT, handover, lose
from tests.e2e.world import E2eCluster


@pytest.mark.smoke
def test_a_notice_with_a_free_node_costs_one_restart_inside_the_attempt(e2e: E2eCluster) -> None:
    e2e.pool(SPOT, 3, notice="30s")
    e2e.submit({"name": SPOT, "maxFailures": -1}, program="chain.py --steps 100000")
    e2e.runs(SPOT)
    loss = next(loss for loss in LOSSES if loss.name == "notice of 45 s")
    seen = lose(e2e, loss)
    gap = handover(e2e.done())
    print(f"surge: {gap:.1f} s without a step; {seen}")
    assert seen.next_attempt is None, f"another attempt instead of the same\n{e2e.picture()}"
    assert seen.again == 0, seen
    e2e.until("the noticed worker is gone", lambda: len(e2e.pods("worker")) == 2)
    status = e2e.status()
    assert (status["attempt"], status["failures"]) == (1, 1)
    cluster = e2e.kube.list("rayclusters")[0]
    assert cluster["spec"]["workerGroupSpecs"][0]["replicas"] == 2
    e2e.suspend()
    e2e.is_the_uninterrupted_result(steps=e2e.steps())
