"""Eviction notices that the live attempt does not survive: the next attempt boots during the notice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.model import (
    AskToCommit,
    AttemptSeen,
    Delete,
    Drain,
    Exit,
    JobSpec,
    Launch,
    OnInsufficientCapacity,
    Overlap,
    Progress,
    Stage,
    TakeOver,
)
from spotladder.core.reasons import Reason
from tests.core.builders import (
    START,
    SteppedJob,
    all_ready,
    attempt,
    head,
    lost,
    noticed,
    pending,
    priced,
    refused,
    spec,
    worker,
)
from tests.core.standby import Wish

NOTICE = 120.0


def tiers(**more: Any) -> JobSpec:
    chosen = (priced("spot", 1.0, 3.0, max_failures=0), priced("on-demand", 3.0, 3.0, max_failures=-1))
    return replace(spec(*chosen, overlap=Overlap()), **more)


def training(made: JobSpec | None = None, **progress: Any) -> SteppedJob:
    job = SteppedJob(made or tiers()).running()
    known = {"step": 5, "total": 100, "committed_at": START, "attempt": 1, "stands_by": True}
    job.progress = Progress(**{**known, **progress})
    job.see(all_ready(1), after=1)
    return job


def gang(ends_at: float | None = None, **more: Any) -> AttemptSeen:
    """Attempt 1 with one noticed worker."""
    return attempt(1, head(), worker("w1-0"), noticed("w1-1", ends_at), **more)


def warned(made: JobSpec | None = None, notice: float = NOTICE) -> tuple[SteppedJob, float]:
    """A job whose spot node has a notice, and the end of the notice. Its standby attempt has been launched."""
    job = training(made)
    ends_at = job.now + 1 + notice
    job.see(gang(ends_at), after=1)
    job.see(gang(ends_at))
    asked = AskToCommit(1, ("head", "w1-1"), Reason.EVICTION_NOTICE, START + 12)
    assert job.last.actions == (asked, Launch(2, "on-demand", standby=True))
    job.see(gang(ends_at), attempt(2, pending("o1"), pending("o2"), held=False), after=1)
    return job, ends_at


def test_the_next_tier_boots_during_the_notice_while_the_attempt_trains() -> None:
    job, ends_at = warned()
    job.see(gang(ends_at), all_ready(2, held=False), after=40)
    assert (job.state.stage, job.state.failures, job.number) == (Stage.RUNNING, 1, 1)
    assert job.state.record("spot").exhausted_by is Reason.MAX_FAILURES_EXCEEDED
    assert job.state.standby.reason is Reason.EVICTION_NOTICE
    assert not any(isinstance(action, Drain | Delete) for action in job.last.actions)
    job.see(gang(ends_at), all_ready(2, held=True), after=10)
    assert (job.state.stage, job.state.reason) == (Stage.DRAINING, Reason.EVICTION_NOTICE)
    assert "attempt 2 on on-demand stands by" in job.state.message
    job.see(gang(ends_at, exit=Exit.INTERRUPTED), all_ready(2, held=True), after=3)
    assert job.reasons[-3:] == [Reason.RELIEVED, Reason.FELL_BACK, Reason.ALL_READY]
    assert (job.number, job.state.tier, job.state.failures) == (2, "on-demand", 1)
    assert job.last.actions == (Delete(1, Reason.EVICTION_NOTICE), TakeOver(2))


def test_the_last_moment_for_a_commit_ends_the_wait_and_the_standby_continues_to_boot() -> None:
    job, ends_at = warned()
    boots = all_ready(2, held=False)
    job.see(gang(ends_at), boots, after=1)
    assert job.last.wake_at is not None
    assert job.last.wake_at <= ends_at - 10
    job.see(gang(ends_at), boots, after=ends_at - 10 - job.now)
    assert job.state.stage is Stage.DRAINING
    assert (job.state.attempt and job.state.attempt.ending.drain_by) == min(job.now + job.spec.grace, ends_at)
    job.see(gang(ends_at, exit=Exit.INTERRUPTED), attempt(2, head(), pending("o1"), pending("o2")), after=3)
    assert (job.number, job.state.stage) == (2, Stage.STARTING)


def test_a_second_notice_that_ends_sooner_moves_the_last_moment() -> None:
    job, ends_at = warned()
    sooner = job.now + 30
    both = attempt(1, head(), noticed("w1-0", sooner), noticed("w1-1", ends_at))
    job.see(both, all_ready(2, held=False))
    assert (job.state.stage, job.state.failures) == (Stage.RUNNING, 2)
    job.see(both, all_ready(2, held=False), after=20)
    assert job.state.stage is Stage.DRAINING


def test_a_node_that_is_lost_before_its_notice_ends_ends_the_attempt_without_a_second_failure() -> None:
    job, _ = warned()
    gone = attempt(1, head(), worker("w1-0"), lost("w1-1"))
    job.see(gone, all_ready(2, held=False), after=5)
    assert (job.number, job.state.failures) == (2, 1)
    assert job.state.history[-1].reason is Reason.EVICTION_NOTICE


def test_the_head_may_be_noticed_on_a_tier_that_stays_open() -> None:
    made = tiers()
    made = replace(made, tiers=(replace(made.tiers[0], max_failures=3), made.tiers[1]))
    job = training(made)
    ends_at = job.now + NOTICE
    seen = attempt(1, replace(head(), noticed=True, notice_ends_at=ends_at), worker("w1-0"), worker("w1-1"), surplus=0)
    job.see(seen, after=1)
    job.see(seen)
    asked = AskToCommit(1, ("head", "w1-0", "w1-1"), Reason.EVICTION_NOTICE, START + 12)
    assert job.last.actions == (asked, Launch(2, "spot", standby=True)), "every pod gets the request of the head"
    assert job.state.record("spot").exhausted_by is None


def test_workers_that_can_be_replaced_are_replaced_inside_the_attempt() -> None:
    made = tiers()
    made = replace(made, tiers=(replace(made.tiers[0], max_failures=3), made.tiers[1]))
    job = training(made, hands_over=True)
    job.see(gang(job.now + NOTICE, surplus=0), after=1)
    assert (job.state.stage, job.state.standby.attempt) == (Stage.REPLACING, None)


@pytest.mark.parametrize(
    ("made", "progress", "notice"),
    [
        ({"overlap": None}, {}, NOTICE),
        ({}, {"commit_seconds": 9.0}, 9.0),
        ({"backoff_limit": 0}, {}, NOTICE),
        ({"tiers": (priced("spot", 1.0, 3.0, max_failures=0),)}, {}, NOTICE),
    ],
    ids=["no overlap", "no time", "the job's last failure", "no other tier"],
)
def test_without_a_standby_the_notice_drains_at_once(
    made: dict[str, Any], progress: dict[str, Any], notice: float
) -> None:
    job = training(tiers(**made), **progress)
    job.see(gang(job.now + 1 + notice), after=1)
    assert (job.state.stage, job.state.reason, job.state.standby.attempt) == (
        Stage.DRAINING,
        Reason.EVICTION_NOTICE,
        None,
    )


def test_a_standby_without_capacity_is_given_up_and_the_attempt_drained() -> None:
    made = tiers()
    last = replace(made.tiers[1], on_insufficient_capacity=OnInsufficientCapacity.FALLBACK)
    job, ends_at = warned(replace(made, tiers=(made.tiers[0], last)))
    job.see(gang(ends_at), attempt(2, refused("o1")), after=5)
    assert (job.state.stage, job.state.standby.attempt, job.state.failures) == (Stage.DRAINING, None, 1)


def test_a_standby_of_another_move_serves_the_notice_too() -> None:
    """A job on demand returns to spot; then one of its nodes has a notice."""

    job = SteppedJob(tiers(), Wish("on-demand")).running()
    job.progress = Progress(5, 100, START, 1, stands_by=True)
    job.policy.name = "spot"
    job.see(all_ready(1), after=1)
    job.see(all_ready(1), after=1)
    ends_at = job.now + NOTICE
    job.see(gang(ends_at), all_ready(2, held=False), after=1)
    assert (job.state.stage, job.state.standby.attempt and job.state.standby.attempt.number) == (Stage.RUNNING, 2)
    job.see(gang(ends_at), all_ready(2, held=True), after=1)
    assert (job.state.stage, job.state.reason) == (Stage.DRAINING, Reason.EVICTION_NOTICE)


def test_a_standby_attempt_does_not_take_over_on_a_tier_that_another_failure_exhausts() -> None:
    job = training(tiers(tiers=(priced("spot", 1.0, 3.0, max_failures=1), priced("on-demand", 3.0, 3.0))))
    ends_at = job.now + 1 + NOTICE
    job.see(gang(ends_at), after=1)
    job.see(gang(ends_at), all_ready(2, held=False), after=1)
    assert job.standby.tier == "spot"
    job.see(attempt(1, head(), lost("w1-0"), noticed("w1-1", ends_at)), all_ready(2, held=False), after=1)
    job.see(after=1)
    assert (job.number, job.state.tier, Reason.RELIEVED in job.reasons) == (3, "on-demand", False)
