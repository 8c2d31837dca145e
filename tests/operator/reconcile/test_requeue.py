"""When a job is reconciled again without an event, and when a deleted job is released."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spotladder.core.acting import ACTION_RETRY_INTERVAL
from spotladder.core.model import Attempt, Decision, JobState, Move, Stage
from spotladder.operator.condition_types import ConditionReason, ConditionType, ConditionUpdate, Diagnosis
from spotladder.operator.reading import Reading
from spotladder.operator.reconcile.preflight import MISSING_RETRY_INTERVAL
from spotladder.operator.reconcile.reconciler import OUTCOME_RETRY_INTERVAL, Reconciler
from spotladder.operator.storage import credentials

READ = Reading(True)
UNREADABLE = Reading(True, unreadable="no rights")
MISSING = ConditionUpdate("False", ConditionReason.REFERENCES_MISSING)
PENDING = ConditionUpdate("Unknown", ConditionReason.CHECKPOINTS_UNREADABLE)
NOW = 1_800_000_000.0
IDLE = JobState(clock=NOW)
COUNTED = JobState(clock=NOW - 100, nodes=2)
"""A state whose cost was written 100 s ago: it is written again after 300 s."""


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"wake_at": NOW + 7.0}, 7.0, id="the decision"),
        pytest.param({"wake_at": NOW - 7.0}, 0.0, id="the decision, overdue"),
        pytest.param({"persisted": COUNTED}, 200.0, id="the cost"),
        pytest.param({"updates": {ConditionType.CHECKPOINTING: PENDING}}, OUTCOME_RETRY_INTERVAL, id="the outcome"),
        pytest.param({"reading": UNREADABLE}, credentials.SECRET_TTL, id="the log cannot be read"),
        pytest.param(
            {"reading": Reading(True, unreadable="no Secret", locked=True)},
            credentials.MISSING_RETRY_INTERVAL,
            id="a missing Secret",
        ),
        pytest.param({"updates": {ConditionType.PREFLIGHT: MISSING}}, MISSING_RETRY_INTERVAL, id="missing objects"),
        pytest.param(
            {"updates": {ConditionType.PREFLIGHT: ConditionUpdate("True", "AllFound")}}, None, id="no missing objects"
        ),
        pytest.param({"polls": True}, ACTION_RETRY_INTERVAL, id="an action"),
        pytest.param({"wake_at": NOW + 0.5, "persisted": COUNTED, "polls": True}, 0.5, id="the earliest"),
    ],
)
def test_a_job_is_reconciled_again_at_the_earliest_of_its_times(given: dict[str, Any], seconds: float | None) -> None:
    reconciler: Any = SimpleNamespace(clock=SimpleNamespace(now=lambda: NOW), jobs=("digits",))
    persisted = given.get("persisted", IDLE)
    decision = Decision(replace(persisted, clock=NOW), wake_at=given.get("wake_at"))
    updates, reading = given.get("updates", {}), given.get("reading", READ)
    found = Reconciler._wake(reconciler, decision, persisted, updates, reading, polls=given.get("polls", False))
    assert found == seconds


ENDED = Decision(JobState(stage=Stage.SUSPENDED))


@pytest.mark.parametrize(
    ("decision", "found", "forced", "released"),
    [
        pytest.param(ENDED, {}, False, True, id="suspended"),
        pytest.param(Decision(JobState(stage=Stage.SUCCEEDED)), {}, False, True, id="succeeded"),
        pytest.param(ENDED, {1: object()}, False, False, id="objects are left"),
        pytest.param(
            Decision(JobState(stage=Stage.SUSPENDED), moves=(Move(*[cast("Any", None)] * 5),)),
            {},
            False,
            False,
            id="the suspension is not persisted yet",
        ),
        pytest.param(
            Decision(JobState(stage=Stage.ENDING, attempt=Attempt(1, "spot-a", NOW))), {}, False, False, id="it ends"
        ),
        pytest.param(Decision(JobState(stage=Stage.IDLE)), {}, False, False, id="it is not suspended yet"),
        pytest.param(
            Decision(JobState(stage=Stage.RUNNING, attempt=Attempt(1, "spot-a", NOW))),
            {1: object()},
            True,
            True,
            id="forced",
        ),
    ],
)
def test_a_deleted_job_is_released_when_it_is_suspended_or_ended_and_nothing_is_left(
    decision: Decision, found: dict[int, object], forced: bool, released: bool
) -> None:
    loaded: Any = SimpleNamespace(record=SimpleNamespace(forced=forced), found=SimpleNamespace(attempts=found))
    assert Reconciler._may_release(cast("Any", None), loaded, decision) is released


@pytest.mark.parametrize(
    ("reason", "valid", "seconds"),
    [
        (ConditionReason.INVALID_SPEC, False, None),
        (ConditionReason.UNKNOWN_CAPACITY_TIER, True, 5.0),
        (ConditionReason.CHECKPOINTS_NOT_ALLOWED, True, credentials.SECRET_TTL),
        (ConditionReason.CHECKPOINTS_NOT_ALLOWED, False, credentials.SECRET_TTL),
    ],
)
async def test_a_held_job_is_reconciled_again_if_its_spec_is_not_the_cause(
    reason: ConditionReason, valid: bool, seconds: float | None
) -> None:
    held: list[Any] = []

    async def record_held(*given: Any, valid: bool) -> None:
        held.append((*given, valid))

    reconciler: Any = SimpleNamespace(persistence=SimpleNamespace(held=record_held))
    record: Any = SimpleNamespace(deleting=False, forced=False)
    status: Any = object()
    problem = Diagnosis(reason, "why")
    assert await Reconciler._hold(reconciler, record, status, problem, valid=valid) == seconds
    assert held == [(record, status, problem, valid)]


@pytest.mark.parametrize(
    ("valid", "forced", "dismantled"), [(False, False, True), (True, True, True), (True, False, False)]
)
async def test_a_deleted_job_that_is_held_is_dismantled_unless_its_program_can_still_commit(
    valid: bool, forced: bool, dismantled: bool
) -> None:
    calls: list[str] = []

    async def record_held(*_: Any, valid: bool) -> None:
        calls.append("held")

    async def dismantle(_record: Any) -> float:
        calls.append("dismantled")
        return 2.0

    reconciler: Any = SimpleNamespace(persistence=SimpleNamespace(held=record_held), _dismantle=dismantle)
    record: Any = SimpleNamespace(deleting=True, forced=forced)
    problem = Diagnosis(ConditionReason.INVALID_SPEC, "why")
    found = await Reconciler._hold(reconciler, record, cast("Any", None), problem, valid=valid)
    assert (calls, found) == ((["dismantled"], 2.0) if dismantled else (["held"], 5.0))
