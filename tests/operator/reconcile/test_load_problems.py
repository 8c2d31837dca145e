"""The problems that degrade a started job, and missing prices and CapacityTiers: the reason and the message of each."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spotladder.api.stored import CapacityRecord
from spotladder.core.model import (
    Attempt,
    AttemptSeen,
    JobSpec,
    JobState,
    Observation,
    Overlap,
    PodSeen,
    Price,
    Stage,
    Tier,
    TierRecord,
)
from spotladder.core.reasons import Reason
from spotladder.operator.condition_types import ConditionReason, Diagnosis
from spotladder.operator.inventory.clusters import Clusters, JobObjects, Located
from spotladder.operator.loaded import Tiers
from spotladder.operator.reading import Reading
from spotladder.operator.reconcile import load
from spotladder.workloads.rayjob.records import RayJobRecord
from spotladder.workloads.tiers import price_of
from spotladder.workloads.workload import AttemptObjects
from tests.workloads.builders import capacity, job, ray_template

RUNNING = JobState(stage=Stage.RUNNING, tier="spot-a", attempt=Attempt(1, "spot-a", 0.0), last_number=1)
LIVE = Observation(1, (AttemptSeen(1),))
READ = Reading(True)
NO_ROUTE = "s3://bucket/x: no route"


class OneMemberCluster:
    """The member cluster `east`; `doubt` is the problem of its new connection, `skew` that of its clock."""

    def __init__(self, doubt: str = "", skew: str = "") -> None:
        self._doubt, self._skew = doubt, skew

    def doubt(self, name: str) -> str:
        return self._doubt if name == "east" else ""

    def of(self, name: str) -> Any:
        return SimpleNamespace(skew=self._skew) if name == "east" else None


def problems(
    reading: Reading = READ,
    state: JobState = RUNNING,
    seen: Observation = LIVE,
    *,
    clusters: OneMemberCluster | None = None,
    missing: dict[str, Diagnosis] | None = None,
    found: JobObjects | None = None,
) -> list[tuple[str, str]]:
    tiers = Tiers({"spot-a": cast("Any", SimpleNamespace(cluster="east"))}, missing or {})
    objects = found or JobObjects({}, ())
    loaded: Any = SimpleNamespace(state=state, seen=seen, reading=reading, tiers=tiers, found=objects)
    problems = load.problems_of(loaded, cast("Clusters", clusters or OneMemberCluster()))
    return [(problem.reason, problem.message) for problem in problems]


@pytest.mark.parametrize(
    ("reading", "found"),
    [
        (READ, []),
        (
            Reading(True, refused=Diagnosis(ConditionReason.CHECKPOINTS_CORRUPT, "entry 3")),
            [(ConditionReason.CHECKPOINTS_CORRUPT, "entry 3")],
        ),
        (Reading(True, gone="step 40"), [(ConditionReason.CHECKPOINTS_GONE, "step 40")]),
        (Reading(True, unreadable=NO_ROUTE), [(ConditionReason.CHECKPOINTS_UNREADABLE, NO_ROUTE)]),
        (
            Reading(True, unreadable="s3://x", denied=True),
            [(ConditionReason.CHECKPOINTS_NOT_ALLOWED, "s3://x")],
        ),
    ],
)
def test_the_commit_log_degrades_a_job(reading: Reading, found: list[tuple[str, str]]) -> None:
    assert problems(reading) == found


def test_an_attempt_without_its_token_degrades_a_job_until_it_ends() -> None:
    attempts = {
        number: Located(
            cast("Any", None),
            AttemptObjects(top=RayJobRecord(name=f"a{number}", namespace="n", uid="u", token_refused=why)),
        )
        for number, why in ((1, "no permission"), (2, ""))
    }
    found = JobObjects(attempts, ())
    assert problems(found=found) == [(ConditionReason.TOKEN_REFUSED, "a1: no permission")]
    assert problems(found=found, state=replace(RUNNING, stage=Stage.SUCCEEDED)) == []


def test_an_unreachable_cluster_degrades_the_jobs_that_may_use_it() -> None:
    away = Observation(1, (AttemptSeen(1),), unavailable={"spot-a": "cluster east cannot be used: no answer"})
    found = [(ConditionReason.CLUSTER_UNREACHABLE, "cluster east cannot be used: no answer")]
    assert problems(seen=away) == found
    exhausted = JobState(tiers=(TierRecord("spot-a", exhausted_by=Reason.MAX_FAILURES_EXCEEDED),))
    assert problems(state=exhausted, seen=away) == []
    gone = Diagnosis(ConditionReason.UNKNOWN_CLUSTER, "why")
    assert problems(seen=away, missing={"spot-a": gone}) == [(ConditionReason.UNKNOWN_CLUSTER, "why")]


def test_a_cluster_with_a_new_connection_that_fails_or_a_wrong_clock_degrades_its_jobs() -> None:
    east = OneMemberCluster("exec: no such file", "3 minutes ahead of the controller's")
    assert problems(clusters=east) == [
        (
            ConditionReason.CLUSTER_MISCONFIGURED,
            "cluster east is used with its previous connection: exec: no such file",
        ),
        (
            ConditionReason.CLOCK_SKEWED,
            "the clock of cluster east is 3 minutes ahead of the controller's; notices are converted: set it",
        ),
    ]


PRICED, FREE = Tier("priced", price=Price(1.0)), Tier("free", price=Price(known=False))


def spec(*tiers: Tier, **more: Any) -> JobSpec:
    return JobSpec(tiers, **more)


def test_a_budget_names_the_tiers_whose_cost_is_not_counted() -> None:
    other = Tier("other", price=Price(known=False))
    assert load.unpriced(spec(PRICED, FREE, other, budget=5.0)) == Diagnosis(
        ConditionReason.PRICE_UNKNOWN, "spec.budget: no price is known for tier free, other: its cost is not counted"
    )
    assert load.unpriced(spec(PRICED, FREE)) is None
    assert load.unpriced(spec(PRICED, budget=5.0)) is None


def test_an_overlap_names_the_tiers_with_unbounded_cost() -> None:
    assert load.unbounded_overlap(spec(PRICED, FREE, overlap=Overlap())) == Diagnosis(
        ConditionReason.PRICE_UNKNOWN,
        "spec.overlap: no price is known for tier free, so nothing bounds the cost of a standby attempt and none "
        "starts: set maxDuration",
    )
    hedging = Overlap(max_duration=60.0, hedge_after=30.0)
    assert load.unbounded_overlap(spec(PRICED, FREE, overlap=hedging)) == Diagnosis(
        ConditionReason.PRICE_UNKNOWN,
        "spec.overlap.hedgeAfter: no price is known for tier free: it is not started early",
    )
    assert load.unbounded_overlap(spec(PRICED, FREE)) is None


JOB = job(ray_template())
FIRST = JOB.spec.tiers[0]


@pytest.mark.parametrize(
    ("record", "reason", "problem", "usable"),
    [
        (None, ConditionReason.UNKNOWN_CAPACITY_TIER, "does not exist", False),
        (
            CapacityRecord(name="c", uid="u", deleting=True, model=capacity()),
            ConditionReason.UNKNOWN_CAPACITY_TIER,
            "is being deleted",
            True,
        ),
        (
            CapacityRecord(name="c", uid="u", problem="spec.price: no"),
            ConditionReason.UNKNOWN_CAPACITY_TIER,
            "is not valid: spec.price: no",
            False,
        ),
        (
            CapacityRecord(name="c", uid="u", model=capacity(cluster="west")),
            ConditionReason.UNKNOWN_CLUSTER,
            'is in cluster "west"; known: east, home',
            True,
        ),
        (CapacityRecord(name="c", uid="u", model=capacity()), None, "", True),
    ],
    ids=["none", "being deleted", "not valid", "of an unknown cluster", "valid"],
)
def test_a_tier_without_usable_capacity_has_a_reason(
    record: CapacityRecord | None, reason: ConditionReason | None, problem: str, usable: bool
) -> None:
    found = load.resolve(JOB, lambda _: record, lambda _: None, frozenset({"home", "east"}), price_of)
    assert (FIRST.name in found.resolved) == usable
    if reason is None:
        assert found.missing == {}
        return
    message = f'spec.tiers[0].capacityTier: CapacityTier "{FIRST.capacity_tier}" {problem}'
    assert found.missing[FIRST.name] == Diagnosis(reason, message)


def test_a_capacitytier_that_was_deleted_while_in_use_keeps_its_last_price() -> None:
    known = CapacityRecord(name="c", uid="u", model=capacity(price={"perNodeHour": "2"}))
    found = load.resolve(JOB, lambda _: None, lambda _: known, frozenset({"home"}), price_of)
    assert found.resolved[FIRST.name].core.price.per_node_hour == 2.0
    assert found.missing[FIRST.name].message.endswith("does not exist")


def test_until_a_price_is_looked_up_it_is_the_one_that_an_earlier_controller_found() -> None:
    """Otherwise the nodes of all jobs have no price from the start of a controller until the first answer."""
    status = b'{"price": "0.4", "onDemandPrice": "1.2"}'
    known = CapacityRecord(name="c", uid="u", model=capacity(price={"source": "aws"}), status=status)
    found = load.resolve(JOB, lambda _: known, lambda _: None, frozenset({"home"}), price_of)
    assert found.resolved[FIRST.name].core.price == Price(0.4, 1.2)


def test_a_notice_is_converted_to_the_clock_of_the_controller() -> None:
    seen = AttemptSeen(1, (PodSeen("w-0", noticed=True, noticed_at=100.0, notice_ends_at=220.0), PodSeen("w-1")))
    noticed, other = load._by_controller_clock(seen, 60.0).pods
    assert (noticed.noticed_at, noticed.notice_ends_at) == (40.0, 160.0)
    assert (other.noticed_at, other.notice_ends_at) == (None, None)
    assert load._by_controller_clock(seen, 0.0) is seen
