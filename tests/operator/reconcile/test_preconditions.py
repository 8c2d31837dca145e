"""Preconditions of an attempt that depend on the commit log."""

from __future__ import annotations

from typing import Any, cast

import pytest

from spotladder.api.stored import JobRecord
from spotladder.core.model import Attempt, JobState, Progress, Stage
from spotladder.core.reasons import Reason
from spotladder.operator.condition_types import ConditionReason, Diagnosis
from spotladder.operator.loaded import Tiers
from spotladder.operator.reading import Reading
from spotladder.operator.reconcile.preconditions import UNBLAMED, Preconditions
from tests.clusters.stepped_clock import SteppedClock
from tests.workloads.builders import job, ray_template

JOB = job(ray_template())
NEW = JobState()
STARTED = JobState(last_number=3, progress=Progress(482, 1000, 40.0, 3))
RUNNING = JobState(stage=Stage.RUNNING, attempt=Attempt(3, "spot-a", 1.0), last_number=3, progress=STARTED.progress)
AWAY = Reading(True, unreadable="s3://bucket/x: no route", away_since=10.0)
DENIED = Reading(True, unreadable="s3://bucket/x: no rule allows it", denied=True)
EMPTY = Reading(True, Progress())


class NoJobs:
    def of(self, _folder: str) -> list[JobRecord]:
        return []


class Nothing:
    """Clusters that must not be queried."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"asked for {name}")


def to_begin(state: JobState, reading: Reading) -> Diagnosis | None:
    preconditions = Preconditions(
        jobs=cast("Any", NoJobs()), clusters=cast("Any", Nothing()), clock=SteppedClock(), rules=()
    )
    record = JobRecord(name="digits", namespace="team-a", uid="u")
    tiers = Tiers({}, {})
    return preconditions.to_begin(record, JOB, state, tiers=tiers, reading=reading.after(state.progress), known={})


def test_no_attempt_is_started_with_a_store_that_cannot_fence_it() -> None:
    unsafe = Diagnosis(Reason.STORE_UNSAFE, "s3://bucket/x: the store is not safe for checkpoints")
    problem = to_begin(NEW, Reading(True, refused=unsafe))
    assert problem == unsafe
    assert problem.reason not in UNBLAMED, "the spec must name another store"
    assert to_begin(NEW, EMPTY) is None


def test_no_attempt_is_started_with_a_store_that_no_rule_allows() -> None:
    assert to_begin(NEW, DENIED) == Diagnosis(ConditionReason.CHECKPOINTS_NOT_ALLOWED, DENIED.unreadable)


@pytest.mark.parametrize(
    ("state", "reading"),
    [
        (STARTED, AWAY),
        (STARTED, DENIED),
        (STARTED, Reading(True, STARTED.progress)),
        (STARTED, Reading(True, Progress(500, 1000, 50.0, 4))),
        (STARTED, Reading(True, Progress(470, 1000, 50.0, 4))),
        (RUNNING, EMPTY),
    ],
    ids=["its log is known", "its rule is gone", "nothing new", "new commits", "a commit was stepped over", "it runs"],
)
def test_a_started_job_has_no_unmet_precondition_during_a_bucket_outage_or_restart(
    state: JobState, reading: Reading
) -> None:
    assert to_begin(state, reading) is None


@pytest.mark.parametrize(
    ("reading", "says"),
    [(EMPTY, "has no commit"), (Reading(True, Progress(100, 1000, 5.0, 1)), "has step 100")],
    ids=["empty", "an older one"],
)
def test_no_attempt_starts_while_the_commit_log_lacks_recorded_commits(reading: Reading, says: str) -> None:
    problem = to_begin(STARTED, reading)
    assert problem is not None
    assert problem.reason is ConditionReason.CHECKPOINTS_GONE
    assert f"step 482 was committed, and the commit log {says} now" in problem.message
    assert problem.reason in UNBLAMED
