"""Which changes cause a status write, and when a deferred write is due."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from spotladder.api.status import Condition, TieredJobStatus
from spotladder.core.model import (
    Attempt,
    Exit,
    JobState,
    KnownPods,
    LeftAttempt,
    Observation,
    Stage,
    TierRecord,
    Timers,
    codec,
)
from spotladder.core.reasons import Cause
from spotladder.operator.condition_types import ConditionType
from spotladder.operator.reading import Reading
from spotladder.operator.reconcile import conditions, status
from tests.core.builders import START, SteppedJob, attempt, head, lost, pending, spec

BEFORE = JobState(
    stage=Stage.RUNNING,
    attempt=Attempt(1, "spot-a", START, seen=True, known=KnownPods(("w0", "w1"))),
    tier="spot-a",
    tiers=(TierRecord("spot-a", attempts=1),),
    timers=Timers(waiting_since=START),
    clock=START,
    nodes=2,
)


LEFT = (LeftAttempt(1, "spot-a", START, 2),)


def held(state: JobState = BEFORE, *entries: Condition) -> TieredJobStatus:
    return TieredJobStatus(
        state=codec.dump(state), message=state.message, conditions=list(entries), observed_generation=1
    )


def worth_writing(after: JobState, *, generation: int = 1) -> bool:
    return status.worth_writing(held(), [], BEFORE, after, generation=generation)


def later(seconds: float, **changes: Any) -> JobState:
    return replace(BEFORE, clock=START + seconds, **changes)


def with_pods(*uids: str) -> Attempt:
    assert BEFORE.attempt is not None
    return replace(BEFORE.attempt, known=KnownPods(uids))


@pytest.mark.parametrize(
    ("after", "worth"),
    [
        pytest.param(later(0), False, id="nothing"),
        pytest.param(later(100, revision=7), False, id="only time"),
        pytest.param(later(299, tiers=(TierRecord("spot-a", attempts=1, cost=0.1),)), False, id="cost, a little later"),
        pytest.param(later(300), True, id="cost, much later"),
        pytest.param(later(1, nodes=1), False, id="a node went"),
        pytest.param(later(15, nodes=1), True, id="a node is gone, later"),
        pytest.param(later(1, left=LEFT), False, id="an earlier attempt is being removed"),
        pytest.param(later(15, left=LEFT), True, id="an earlier attempt is being removed, later"),
        pytest.param(later(1, attempt=with_pods("w0")), False, id="a pod went"),
        pytest.param(later(15, attempt=with_pods("w0")), True, id="a pod is gone, later"),
        pytest.param(later(1, attempt=replace(with_pods("w0", "w1"), seen=False)), False, id="the attempt is seen"),
        pytest.param(later(15, attempt=replace(with_pods("w0", "w1"), seen=False)), True, id="it is seen, later"),
        pytest.param(later(1, failures=1), True, id="a failure, as every other change"),
        pytest.param(later(59, timers=Timers(START + 59)), False, id="blocked for some time"),
        pytest.param(later(60, timers=Timers(START + 60)), True, id="blocked for long"),
    ],
)
def test_which_state_changes_cause_a_status_write(after: JobState, worth: bool) -> None:
    assert worth_writing(after) is worth


@pytest.mark.parametrize(("jobs", "seconds"), [(1, 300.0), (1500, 300.0), (10_000, 2000.0)])
def test_the_costs_of_many_jobs_are_written_less_often(jobs: int, seconds: float) -> None:
    assert status.due_in(BEFORE, later(0), jobs=jobs) == seconds
    for after, worth in ((seconds - 1, False), (seconds, True)):
        assert status.worth_writing(held(), [], BEFORE, later(after), generation=1, jobs=jobs) is worth


@pytest.mark.parametrize(
    ("after", "seconds"),
    [
        pytest.param(later(100), 200.0, id="the cost"),
        pytest.param(later(12, nodes=1), 3.0, id="who is there"),
        pytest.param(later(12, attempt=with_pods("w0")), 3.0, id="a pod by its name"),
        pytest.param(later(17, nodes=1), 0.1, id="overdue"),
    ],
)
def test_a_deferred_status_write_is_due_after_its_interval(after: JobState, seconds: float) -> None:
    assert status.due_in(BEFORE, after) == pytest.approx(seconds)
    assert worth_writing(replace(after, clock=after.clock + seconds))


def test_a_tier_removed_from_the_spec_keeps_its_cost_and_is_marked_as_removed() -> None:
    state = JobState(tiers=(TierRecord("spot-a", cost=1.5), TierRecord("spot-b", cost=0.5)))
    written = status.of_state(state, [], generation=2, uri="", clusters={}, tiers=["spot-b"])
    assert [(tier.name, tier.removed) for tier in written.tiers] == [("spot-a", True), ("spot-b", False)]
    assert written.cost.spent == "2.00"


def test_running_is_false_during_the_failure_attribution_window() -> None:
    job = SteppedJob(spec(attribution_window=60.0)).running()
    seen = attempt(
        1, head(), lost("w1-0", Cause.UNKNOWN), lost("w1-1", Cause.UNKNOWN), exit=Exit.FAILED, message="exit code 1"
    )
    decision = job.see(seen, after=1)
    assert job.state.stage is Stage.RUNNING, "pods that disappear after the program ended change nothing"
    updates = conditions.of_decision(job.spec, decision, job.last_seen, Reading())
    update = updates[ConditionType.RUNNING]
    until = datetime.fromtimestamp(job.now + 60, UTC)
    assert (update.status, update.reason) == ("False", "ProgramEnded")
    assert update.message == (
        "the program has ended (exit code 1); a pod that is lost within 1m may still explain it"
        f" (until {until:%H:%M:%S} UTC)"
    )
    later = job.see(seen, after=30)
    assert conditions.of_decision(job.spec, later, job.last_seen, Reading())[ConditionType.RUNNING] == update


def test_the_provisioned_condition_has_the_reason_of_the_wait_its_start_and_its_end() -> None:
    job = SteppedJob()
    job.see()
    waiting = replace(pending("w-0"), waiting_message="0/5 nodes are available")
    seen = (attempt(1, head(), waiting, pending("w-1")),)
    decision = job.see(*seen)
    updates = conditions.of_decision(job.spec, decision, Observation(9, seen), Reading(True, job.progress))
    assert updates[ConditionType.PROVISIONED].reason == "WaitingForCapacity"
    assert updates[ConditionType.PROVISIONED].message == (
        "pods wait for nodes and images: 0/5 nodes are available (since 2027-01-15T08:00:00Z; provisionTimeout ends "
        "2027-01-15T08:10:00Z: the job leaves the tier)"
    )
