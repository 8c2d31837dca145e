"""Two observations of a job give the notices about what happened between them."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.notify.notices import Kind, notices
from spotladder.places.place import Object

SPEC = {"tiers": [{"name": "spot"}, {"name": "on-demand"}], "budget": "50"}


def look(phase: str = "Running", **status: Any) -> Object:
    """A TieredJob object."""
    metadata = {"name": "digits", "namespace": "team-a", "uid": "u1"}
    return {"metadata": metadata, "spec": SPEC, "status": {"phase": phase, "attempt": 2, **status}}


def condition(kind: str, reason: str, message: str = "", status: str = "True") -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status, "reason": reason, "message": message}]}


LEFT = "about 50m of training are left until the deadline"
SPENT = "team-a/digits has spent "

CASES = [
    pytest.param(look(tier="spot"), look(tier="spot"), [], id="nothing"),
    pytest.param(
        look(tier="spot"), look(tier="on-demand", message="3 workers were lost"),
        [(Kind.FELL_BACK, "team-a/digits fell back from spot to on-demand: 3 workers were lost")], id="fallback",
    ),
    pytest.param(
        look(tier="on-demand"), look(tier="spot"),
        [(Kind.RETURNED, "team-a/digits returned from on-demand to spot")], id="return",
    ),
    pytest.param(look("Pending", tier=""), look(tier="spot"), [], id="first tier"),
    pytest.param(look(tier="removed"), look(tier="spot"), [], id="a tier that the spec had before"),
    pytest.param(
        look(), look(**condition("Degraded", "StoreUnavailable", "s3://b does not answer")),
        [(Kind.DEGRADED, "team-a/digits is degraded (StoreUnavailable): s3://b does not answer")], id="degraded",
    ),
    pytest.param(
        look(**condition("Degraded", "StoreUnavailable", "for 10s")),
        look(**condition("Degraded", "StoreUnavailable", "for 20s")), [], id="degraded as before",
    ),
    pytest.param(
        look(), look(**condition("DeadlineAtRisk", "NoSlack", LEFT)),
        [(Kind.DEADLINE, f"team-a/digits has no time to lose before its deadline: {LEFT}")], id="deadline at risk",
    ),
    pytest.param(
        look(**condition("DeadlineAtRisk", "NoSlack", "about 50m")),
        look(**condition("DeadlineAtRisk", "NoSlack", "about 49m")), [], id="deadline at risk as before",
    ),
    pytest.param(look(), look(**condition("Degraded", "Fine", status="False")), [], id="not degraded any more"),
    pytest.param(
        look(cost={"spent": "39.00"}), look(cost={"spent": "40.00"}),
        [(Kind.BUDGET, SPENT + "$40.00 of its budget of $50.00")], id="80 % of the budget",
    ),
    pytest.param(
        look(cost={"spent": "10"}), look(cost={"spent": ">51"}),
        [(Kind.BUDGET, SPENT + "$51.00 of its budget of $50.00")], id="both shares at once are one notice",
    ),
    pytest.param(look(cost={"spent": "41"}), look(cost={"spent": "45"}), [], id="between the shares"),
    pytest.param(look(cost={"spent": "unknown"}), look(cost={"spent": "unknown"}), [], id="unknown cost"),
    pytest.param(
        look(), look("Failed", **condition("Completed", "TiersExhausted", "all tiers are exhausted")),
        [(Kind.FAILED, "team-a/digits has failed: TiersExhausted: all tiers are exhausted")], id="failed",
    ),
    pytest.param(
        {}, look("Succeeded", progress={"text": "100/100"}, cost={"spent": "1.20"}),
        [(Kind.SUCCEEDED, "team-a/digits has succeeded with step 100/100 for $1.20")], id="a new job that has ended",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "told"), CASES)
def test_a_change_is_told_once(before: Object, after: Object, told: list[tuple[Kind, str]]) -> None:
    assert [(notice.kind, notice.text) for notice in notices("west", before, after, 0.0)] == told
    assert notices("west", after, after, 0.0) == []


def test_the_id_names_the_event() -> None:
    before, after = look(tier="spot"), look(tier="on-demand")
    one, again = notices("west", before, after, 1.0)[0], notices("west", before, after, 2.0)[0]
    assert one.id == again.id == "u1/2/FellBack/on-demand"
