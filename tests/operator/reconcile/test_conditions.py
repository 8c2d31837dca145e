"""The conditions of a job: what each says at every stage, and why it is degraded."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from spotladder.api.status import Condition
from spotladder.core.model import (
    Attempt,
    Decision,
    Ending,
    JobSpec,
    JobState,
    KnownPods,
    Loss,
    Observation,
    Progress,
    Stage,
    Standby,
    TierRecord,
    UpdateStrategy,
)
from spotladder.core.reasons import Cause, Reason
from spotladder.operator.condition_types import ConditionReason, ConditionType, ConditionUpdate, Diagnosis
from spotladder.operator.reading import Reading
from spotladder.operator.reconcile import conditions
from spotladder.operator.reconcile.preflight import Ahead
from tests.core.builders import START, SteppedJob, all_ready, attempt, spec, tier

LIVE = Attempt(1, "spot-a", START, seen=True, known=KnownPods(("w1-0", "w1-1")), workers=2)
READ = Reading(True)


def updates(
    state: JobState, seen: Observation | None = None, reading: Reading = READ, job: JobSpec | None = None
) -> dict[ConditionType, ConditionUpdate]:
    observation = seen or Observation(1, progress=state.progress)
    return dict(conditions.of_decision(job or spec(), Decision(state), observation, reading))


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(
            JobState(stage=Stage.SUCCEEDED, reason=Reason.COMPLETED, message="done", progress=Progress(5, 5, START)),
            ConditionUpdate("True", "Completed", "done"),
            id="with a commit",
        ),
        pytest.param(
            JobState(stage=Stage.FAILED, reason=Reason.APPLICATION_FAILED, message="exit code 1"),
            ConditionUpdate("True", "ApplicationFailed", "exit code 1; nothing was committed"),
            id="without a commit",
        ),
        pytest.param(
            JobState(stage=Stage.FAILED, reason=Reason.APPLICATION_FAILED),
            ConditionUpdate("True", "ApplicationFailed", "nothing was committed"),
            id="without a message",
        ),
        pytest.param(JobState(stage=Stage.SUSPENDED), None, id="suspended"),
        pytest.param(JobState(stage=Stage.RUNNING, attempt=LIVE, tier="spot-a"), None, id="running"),
    ],
)
def test_only_an_ended_job_is_completed(state: JobState, expected: ConditionUpdate | None) -> None:
    found = updates(state)
    assert found.get(ConditionType.COMPLETED) == expected
    assert (ConditionType.CHECKPOINTING in found) == (expected is None), "the end of the log sets it"


def test_the_evicted_condition_names_the_lost_pods_until_the_gang_is_ready_without_a_counted_loss() -> None:
    state = JobState(stage=Stage.RUNNING, attempt=LIVE, tier="spot-a", clock=START)
    losses = (Loss("w-0", Cause.NODE_LOST, 1, "spot-a"), Loss("w-1", Cause.INTERRUPTION, 1, "spot-a"))
    found = conditions.of_decision(spec(), Decision(state, losses=losses), Observation(1), READ)
    assert found[ConditionType.EVICTED] == ConditionUpdate("True", Cause.INTERRUPTION, "w-0, w-1")
    assert updates(state)[ConditionType.EVICTED] == ConditionUpdate("False", "Whole")
    assert ConditionType.EVICTED not in updates(replace(state, loss_counted=True))
    assert ConditionType.EVICTED not in updates(replace(state, stage=Stage.STARTING))


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (JobState(tier="spot-a"), ConditionUpdate("False", "OnFirstTier", "spot-a")),
        (JobState(tier="on-demand"), ConditionUpdate("True", "AfterFirstTier", "on-demand")),
        (
            JobState(tier="on-demand", tiers=(TierRecord("spot-a", exhausted_by=Reason.MAX_FAILURES_EXCEEDED),)),
            ConditionUpdate("True", "MaxFailuresExceeded", "on-demand"),
        ),
        (JobState(), None),
    ],
    ids=["on the first tier", "on another", "the first is exhausted", "no attempt yet"],
)
def test_the_fell_back_condition_compares_the_tier_with_the_first_one(
    state: JobState, expected: ConditionUpdate | None
) -> None:
    assert updates(state).get(ConditionType.FELL_BACK) == expected


@pytest.mark.parametrize(
    ("progress", "reading", "expected"),
    [
        (Progress(), READ, ConditionUpdate("False", "NothingCommitted")),
        (Progress(40, 100, START), READ, ConditionUpdate("True", "Committed", "step 40")),
        (
            Progress(40, 100, START, skipped="step 60 was not resumed from: torn"),
            READ,
            ConditionUpdate("True", "Committed", "step 40; step 60 was not resumed from: torn"),
        ),
        (
            Progress(40, 100, START),
            Reading(True, unreadable="no route"),
            ConditionUpdate("Unknown", "CheckpointsUnreadable", "no route"),
        ),
    ],
    ids=["nothing", "a commit", "a skipped commit", "unreadable"],
)
def test_the_checkpointing_condition_has_the_newest_commit(
    progress: Progress, reading: Reading, expected: ConditionUpdate
) -> None:
    assert updates(JobState(progress=progress), reading=reading)[ConditionType.CHECKPOINTING] == expected


@pytest.mark.parametrize(
    ("progress", "waited", "stage", "reason"),
    [
        (Progress(), 599, Stage.RUNNING, "NothingCommitted"),
        (Progress(), 601, Stage.RUNNING, "NoStartEntry"),
        (Progress(attempt=1), 601, Stage.RUNNING, "NothingCommitted"),
        (Progress(), 601, Stage.STARTING, "NothingCommitted"),
    ],
    ids=["within stallTimeout", "no start entry", "a start entry", "not running yet"],
)
def test_the_checkpointing_condition_names_a_program_without_the_library(
    progress: Progress, waited: float, stage: Stage, reason: str
) -> None:
    state = JobState(stage=stage, attempt=replace(LIVE, all_ready_at=START), tier="spot-a", clock=START + waited)
    found = updates(state, Observation(1, (all_ready(1),), progress), job=spec(stall_timeout=600.0))
    update = found[ConditionType.CHECKPOINTING]
    assert (update.status, update.reason) == ("False", reason)
    assert ("does not use spotladder.train" in update.message) == (reason == "NoStartEntry")


CHANGED = "the spec's pods changed"
PENDING_NEXT_ATTEMPT = ConditionUpdate(
    "False",
    "PendingNextAttempt",
    f"{CHANGED}: the next attempt starts with the new pods (updateStrategy AtNextAttempt)",
)
WITH_STANDBY = JobState(stage=Stage.RUNNING, attempt=LIVE, tier="spot-a", standby=Standby(Attempt(2, "spot-a", START)))


def changed(strategy: UpdateStrategy = UpdateStrategy.AT_NEXT_ATTEMPT) -> JobSpec:
    tiers = (tier("spot-a", 1, template="new"), tier("on-demand", -1, template="new"))
    return spec(*tiers, update_strategy=strategy)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(
            JobState(stage=Stage.RUNNING, attempt=replace(LIVE, template="new"), tier="spot-a"),
            ConditionUpdate("True", "UpToDate"),
            id="unchanged",
        ),
        pytest.param(
            JobState(stage=Stage.RUNNING, attempt=LIVE, tier="spot-a"),
            PENDING_NEXT_ATTEMPT,
            id="waits for the next attempt",
        ),
        pytest.param(
            JobState(stage=Stage.DRAINING, attempt=replace(LIVE, ending=Ending(Reason.SPEC_UPDATED)), tier="spot-a"),
            ConditionUpdate("False", "Replacing", f"{CHANGED}: the next attempt starts with the new pods"),
            id="the attempt ends",
        ),
        pytest.param(
            replace(WITH_STANDBY, standby=replace(WITH_STANDBY.standby, reason=Reason.SPEC_UPDATED)),
            ConditionUpdate("False", "Replacing", f"{CHANGED}: attempt 2 with the new pods starts beside attempt 1"),
            id="a standby attempt starts",
        ),
        pytest.param(
            replace(WITH_STANDBY, standby=replace(WITH_STANDBY.standby, reason=Reason.POLICY)),
            PENDING_NEXT_ATTEMPT,
            id="a standby attempt for another reason",
        ),
    ],
)
def test_the_updated_condition_states_when_a_changed_spec_applies(state: JobState, expected: ConditionUpdate) -> None:
    assert updates(state, job=changed())[ConditionType.UPDATED] == expected


@pytest.mark.parametrize(
    ("ahead", "expected"),
    [
        (Ahead(), ConditionUpdate("True", "AllFound")),
        (Ahead(missing="no Secret"), ConditionUpdate("False", "ReferencesMissing", "no Secret")),
        (Ahead(conflicts="Ray 2.40"), ConditionUpdate("False", "VersionConflict", "Ray 2.40")),
        (Ahead("no Secret", "Ray 2.40"), ConditionUpdate("False", "ReferencesMissing", "no Secret; Ray 2.40")),
    ],
)
def test_the_preflight_condition_lists_missing_objects_before_version_conflicts(
    ahead: Ahead, expected: ConditionUpdate
) -> None:
    assert conditions.of_preflight(ahead) == {ConditionType.PREFLIGHT: expected}
    assert conditions.of_preflight(None) == {}


def test_the_degraded_condition_has_the_first_reason_and_all_messages() -> None:
    problems = [Diagnosis(ConditionReason.BLOCKED, "a"), Diagnosis(ConditionReason.PRICE_UNKNOWN, "b")]
    expected = ConditionUpdate("True", "Blocked", "a; b")
    assert conditions.of_diagnoses(problems) == {ConditionType.DEGRADED: expected}
    assert conditions.of_diagnoses([]) == {ConditionType.DEGRADED: ConditionUpdate("False", "AsExpected")}


def test_an_impediment_degrades_a_job_once_and_comes_first() -> None:
    job = SteppedJob()
    job.see()
    job.see(attempt(1, blocked="exceeded quota: gpu"), after=5)
    other = Diagnosis(ConditionReason.PRICE_UNKNOWN, "no price")
    found = conditions.with_impediment([other], job.spec, job.state, job.last_seen)
    assert [problem.reason for problem in found] == ["Blocked", "PriceUnknown"]
    assert "exceeded quota: gpu" in found[0].message
    again = conditions.with_impediment(found, job.spec, job.state, job.last_seen)
    assert again == found, "it is among them already"


def test_a_deadline_is_at_risk_until_the_job_ends() -> None:
    job = spec(tier("on-demand", -1), deadline=START + 3600, work=3000.0, overhead=120.0)
    late = JobState(clock=START + 500)
    said = "about 50m of training are left until the deadline"
    assert updates(late, job=job)[ConditionType.DEADLINE_AT_RISK] == ConditionUpdate("True", "NoSlack", said)
    in_time = updates(replace(late, clock=START), job=job)
    assert in_time[ConditionType.DEADLINE_AT_RISK] == ConditionUpdate("False", "InTime")
    ended = updates(replace(late, stage=Stage.SUCCEEDED, reason=Reason.COMPLETED), job=job)
    assert ended[ConditionType.DEADLINE_AT_RISK] == ConditionUpdate("False", "Ended")
    assert ConditionType.DEADLINE_AT_RISK not in updates(late), "the job has no deadline"
    at = datetime.fromtimestamp(START, UTC)
    held = [Condition(type="DeadlineAtRisk", status="True", reason="NoSlack", last_transition_time=at)]
    removed = conditions.of_decision(spec(), Decision(late), Observation(1), READ, held=held)
    assert removed[ConditionType.DEADLINE_AT_RISK] == ConditionUpdate("False", "NoDeadline")


@pytest.mark.parametrize(
    ("stage", "ready", "stalled", "runs"),
    [
        (Stage.IDLE, "False", "False", "False"),
        (Stage.STARTING, "False", "False", "False"),
        (Stage.RUNNING, "True", "False", "True"),
        (Stage.REPLACING, "True", "False", "True"),
        (Stage.RECOVERING, "True", "False", "True"),
        (Stage.DRAINING, "False", "False", "False"),
        (Stage.ENDING, "False", "False", "False"),
        (Stage.SUSPENDED, "False", "False", "False"),
        (Stage.SUCCEEDED, "True", "False", "False"),
        (Stage.FAILED, "False", "True", "False"),
    ],
)
def test_tools_that_know_kstatus_and_users_see_what_a_job_does(
    stage: Stage, ready: str, stalled: str, runs: str
) -> None:
    state = JobState(stage=stage, attempt=LIVE, tier="spot-a", clock=START, reason=Reason.ALL_READY, message="why")
    found = updates(state, Observation(1, (all_ready(1),)))
    assert (found[ConditionType.READY].status, found[ConditionType.READY].reason) == (ready, state.phase)
    assert found[ConditionType.STALLED].status == stalled
    assert found[ConditionType.PROVISIONED].status == runs
    assert found[ConditionType.RUNNING] == ConditionUpdate(runs, "Whole", "why")


def test_a_job_with_an_invalid_spec_is_stalled() -> None:
    invalid = conditions.of_validity(Diagnosis(ConditionReason.INVALID_SPEC, "spec.tiers: is empty"))
    assert invalid[ConditionType.STALLED] == ConditionUpdate("True", "InvalidSpec", "spec.tiers: is empty")
