from __future__ import annotations

from spotladder.operator.settings import SETTLE
from spotladder.workloads.rayjob import KEPT_AFTER_THE_END

NODE_GRACE = 50.0
"""Kubernetes' --node-monitor-grace-period, since 1.32."""

NODE_PERIOD = 5.0
"""Kubernetes' --node-monitor-period."""


def test_a_failure_is_judged_after_kubernetes_can_know_that_a_node_is_lost_and_while_its_pods_are_there() -> None:
    assert NODE_GRACE + NODE_PERIOD < SETTLE <= KEPT_AFTER_THE_END
