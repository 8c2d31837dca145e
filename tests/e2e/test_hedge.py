"""While the first tier has no machines, the next tier is started beside it. The attempt that is ready first trains."""

from __future__ import annotations

from spotladder.core.reasons import Reason
from tests.e2e.losses import SPOT
from tests.e2e.world import E2eCluster

ON_DEMAND = "on-demand"
PROGRAM = "chain.py --steps 100000"
HEDGE = {"hedgeAfter": "10s", "budget": "1"}
TIERS = ({"name": SPOT, "provisionTimeout": "30m"}, {"name": ON_DEMAND, "maxFailures": -1})


def test_the_next_tier_trains_when_the_first_has_no_nodes(e2e: E2eCluster) -> None:
    hedged(e2e)
    e2e.runs(ON_DEMAND)
    status = e2e.status()
    assert (status["attempt"], status["failures"]) == (2, 0)
    assert e2e.path() == [(SPOT, Reason.HEDGED)]
    assert [tier["name"] for tier in status["tiers"] if tier.get("spent")] == []
    e2e.until("the pods of attempt 1 are removed", lambda: attempts(e2e) == {"2"})
    e2e.suspend()
    e2e.is_the_uninterrupted_result(steps=e2e.steps())


def hedged(e2e: E2eCluster) -> None:
    """A job whose first tier has no machines, and which has started its second tier beside it."""
    e2e.heads(2)
    e2e.pool(SPOT, 0)
    e2e.pool(ON_DEMAND, 2)
    e2e.submit(*TIERS, program=PROGRAM, overlap=HEDGE)
    hedge = e2e.until("the next tier is started", lambda: e2e.status().get("standby"))
    assert (hedge["number"], hedge["tier"], hedge["reason"]) == (2, ON_DEMAND, Reason.HEDGED)
    assert e2e.status()["attempt"] == 1


def attempts(e2e: E2eCluster) -> set[str]:
    """The attempts with pods that are not being deleted."""
    return {pod["metadata"]["labels"]["spotladder.io/attempt"] for pod in e2e.pods()}
