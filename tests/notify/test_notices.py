"""Two observations of a job give the notices about what happened between them."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from spotladder.core.model import Exhausted, Observation
from spotladder.notify.messages import VERBS
from spotladder.notify.notices import Kind, notices
from spotladder.operator.condition_types import merged
from spotladder.operator.reading import Reading
from spotladder.operator.reconcile import conditions, status
from spotladder.places.place import Object
from spotladder.records.job_object import job_object
from spotladder.records.model import Began, Record
from tests.core.builders import START, SteppedJob, lost, spec, tier, worker
from tests.packaging.build import ROOT

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


def local(job: SteppedJob) -> Object:
    began: list[Record] = [Began(START, "digits", "team-a", job.spec)]
    return job_object("team-a", "digits", str(job.state.phase), START, state=job.state, records=began, active=True)


def of_cluster(job: SteppedJob) -> Object:
    updates = conditions.of_decision(job.spec, job.last, Observation(1), Reading(True))
    found = status.of_state(job.state, merged([], updates, START, 1), generation=1, uri="", clusters={}, tiers=[])
    tiers = [{"name": each.name} for each in job.spec.tiers]
    return {
        "metadata": {"name": "digits", "namespace": "team-a"},
        "spec": {"tiers": tiers},
        "status": status.plain(found),
    }


def test_a_large_budget_of_a_run_keeps_its_digits() -> None:
    assert local(SteppedJob(spec(tier("spot-a", 0), budget=1_234_567.89)))["spec"]["budget"] == "1234567.89"


@pytest.mark.parametrize("seen", [local, of_cluster])
@pytest.mark.parametrize(
    ("end", "told"),
    [
        (Exhausted.FAIL, [Kind.FELL_BACK, Kind.FAILED]),
        (Exhausted.WAIT, [Kind.FELL_BACK, Kind.EXHAUSTED]),
        (Exhausted.RESTART, [Kind.FELL_BACK, Kind.EXHAUSTED]),
    ],
)
def test_the_end_of_the_last_tier_is_one_notice(
    seen: Callable[[SteppedJob], Object], end: Exhausted, told: list[Kind]
) -> None:
    """Regression: a job that began again had "returned"."""
    job = SteppedJob(spec(tier("spot-a", 0), tier("spot-b", 0), exhausted=end))
    looks = []
    for number in (1, 2):
        looks.append(seen(job.running(number)))
        job.lose_attempt(lost(f"w{number}-0"), worker(f"w{number}-1"))
        looks.append(seen(job))
    if end is Exhausted.WAIT:
        job.see(after=600)
        looks.append(seen(job))
    if end is not Exhausted.FAIL:
        looks.append(seen(job.running(3)))
    found = [notice for before, after in pairwise(looks) for notice in notices("west", before, after, 0.0)]
    assert [notice.kind for notice in found] == told


def test_the_kinds_have_a_verb_and_are_values_of_the_chart() -> None:
    schema = json.loads(Path(ROOT, "charts/spotladder/values.schema.json").read_text())
    assert schema["properties"]["notify"]["properties"]["kinds"]["items"]["enum"] == list(Kind)
    assert list(VERBS) == list(Kind)


def test_the_id_names_the_event() -> None:
    before, after = look(tier="spot"), look(tier="on-demand")
    one, again = notices("west", before, after, 1.0)[0], notices("west", before, after, 2.0)[0]
    assert one.id == again.id == "u1/2/FellBack/on-demand"
