"""While the first tier has no machines, the next tier is started beside it. The attempt that is ready first trains."""

from __future__ import annotations

from spotladder.core.reasons import Reason
from tests.e2e.losses import SPOT
from tests.e2e.world import E2eCluster

ON_DEMAND = "on-demand"
PROGRAM = "chain.py --steps 100000"
HEDGE = {"hedgeAfter": "10s", "budget": "1"}
TIERS = ({"name": SPOT, "provisionTimeout": "30m"}, {"name": ON_DEMAND, "maxFailures": -1})


def test_the_next_tier_trains_when_the_first_has_no_machines(here: E2eCluster) -> None:
    hedged(here, spare=2)
    here.runs(ON_DEMAND)
    status = here.status()
    assert (status["attempt"], status["failures"]) == (2, 0)
    assert here.path() == [(SPOT, Reason.HEDGED)]
    assert [tier["name"] for tier in status["tiers"] if tier.get("spent")] == []
    here.until("the pods of attempt 1 are removed", lambda: attempts(here) == {"2"})
    here.suspend()
    here.is_the_uninterrupted_result(steps=here.steps())


def test_the_next_tier_is_given_back_when_the_first_gets_its_machines(here: E2eCluster) -> None:
    hedged(here, spare=0)
    here.until("attempt 2 waits beside it", lambda: attempts(here) == {"1", "2"})
    here.give(SPOT, 2)
    here.runs(SPOT)
    status = here.status()
    assert (status["attempt"], status["failures"], here.path()) == (1, 0, [])
    assert "standby" not in status
    here.until("the pods of attempt 2 are removed", lambda: attempts(here) == {"1"})


def hedged(here: E2eCluster, *, spare: int) -> None:
    """A job whose first tier has no machines, and which has started its second tier beside it. `spare` is the number of
    machines of the second tier."""
    here.heads(2)
    here.pool(SPOT, 0)
    here.pool(ON_DEMAND, spare)
    here.submit(*TIERS, program=PROGRAM, overlap=HEDGE)
    hedge = here.until("the next tier is started", lambda: here.status().get("standby"))
    assert (hedge["number"], hedge["tier"], hedge["reason"]) == (2, ON_DEMAND, Reason.HEDGED)
    assert here.status()["attempt"] == 1


def attempts(here: E2eCluster) -> set[str]:
    """The attempts with pods that are not being deleted."""
    return {pod["metadata"]["labels"]["spotladder.io/attempt"] for pod in here.pods()}
