"""How attempts and jobs end: outcomes, exhausted tiers, suspension, edits, handover, and misleading observations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.core.accounting.held_nodes import rewound
from spotladder.core.lifecycle import decide
from spotladder.core.model import (
    Attempt,
    Delete,
    Ending,
    Exhausted,
    Exit,
    Finish,
    Handover,
    JobState,
    Launch,
    Observation,
    Progress,
    Spell,
    Stage,
    TierChoice,
    TierRecord,
    TierView,
    Timers,
)
from spotladder.core.policies.ordered import Ordered
from spotladder.core.reasons import Cause, Reason
from spotladder.core.situation import HANDOVER_GRACE_PERIOD
from spotladder.errors import InvalidSpec
from tests.core.builders import START, SteppedJob, all_ready, attempt, head, lost, noticed, pending, spec, tier, worker


def test_success_finishes_the_job_and_removes_the_remaining_objects() -> None:
    job = SteppedJob().running()
    decision = job.see(all_ready(1, exit=Exit.SUCCEEDED), after=1)
    assert job.state.stage is Stage.SUCCEEDED
    assert decision.actions == (Delete(1, Reason.COMPLETED), Finish(True, Reason.COMPLETED))
    assert job.see(after=1).wake_at is None


def test_an_application_error_fails_the_job_without_changing_the_tier() -> None:
    job = SteppedJob().running()
    job.see(all_ready(1, exit=Exit.FAILED, message="exit code 1"), after=1)
    assert (job.state.stage, job.state.reason, job.state.message) == (
        Stage.FAILED,
        Reason.APPLICATION_FAILED,
        "exit code 1",
    )
    assert job.state.failures == 0


def test_application_failures_restart_on_the_same_tier_up_to_the_limit() -> None:
    job = SteppedJob(spec(application_failures=2))
    for number in (1, 2, 3):
        job.running(number)
        job.see(all_ready(number, exit=Exit.FAILED), after=1)
        if number < 3:
            job.see(after=1)
            assert (job.state.tier, job.reasons[-1]) == ("spot-a", Reason.STARTED)
    assert (job.state.stage, job.state.application_failures) == (Stage.FAILED, 3)


@pytest.mark.parametrize(
    "ending",
    [
        attempt(1, head(), lost("w1-0", Cause.NODE_LOST), worker("w1-1"), exit=Exit.FAILED),
        attempt(1, head(), noticed("w1-0"), worker("w1-1"), exit=Exit.FAILED),
    ],
    ids=["lost with it", "noticed before"],
)
def test_an_application_error_during_an_eviction_counts_as_the_eviction(ending: object) -> None:
    job = SteppedJob(spec(tier("spot-a", 1), tier("on-demand"))).running()
    job.see(ending, after=1)  # type: ignore[arg-type]
    assert job.reasons[-1] is Reason.INTERRUPTED
    job.see(after=1)
    assert (job.state.tier, job.state.failures, job.state.application_failures) == ("spot-a", 1, 0)


@pytest.mark.parametrize(("later", "reason"), [(19, Reason.INTERRUPTED), (20, Reason.APPLICATION_FAILED)])
def test_a_failure_soon_after_a_recovery_is_attributed_to_the_loss(later: float, reason: Reason) -> None:
    """Replacement pods may be ready before the program ends because of the lost ones."""
    job = SteppedJob(spec(tier("spot-a", 1), attribution_window=20)).running()
    job.see(attempt(1, head(), lost("w1-0", Cause.NODE_LOST), worker("w1-1")), after=1)
    job.commit(10, start=1)  # The program has restarted without the lost pod.
    job.see(attempt(1, head(), worker("w1-2"), worker("w1-1")), after=15)
    assert job.state.stage is Stage.RUNNING
    failed = attempt(1, head(), worker("w1-2"), worker("w1-1"), exit=Exit.FAILED)
    job.see(failed, after=later)
    job.see(failed, after=20)
    assert reason in (job.state.reason, *job.reasons)
    assert (job.state.failures, job.state.application_failures) == (1, 0 if reason is Reason.INTERRUPTED else 1)


@pytest.mark.parametrize(("how", "losses"), [(Exit.INTERRUPTED, [Cause.INTERRUPTION]), (Exit.FENCED, [])])
def test_a_program_that_was_interrupted_or_fenced_by_its_own_log_restarts(how: Exit, losses: list[Cause]) -> None:
    job = SteppedJob(spec(tier("spot-a", 1))).running()
    job.see(all_ready(1, exit=how), after=1)
    assert job.reasons[-1] is Reason.INTERRUPTED
    assert [loss.cause for loss in job.losses] == losses


def test_a_job_fenced_by_another_controller_fails() -> None:
    job = SteppedJob().running()
    job.progress = Progress(5, 10, START, attempt=7)
    job.see(all_ready(1, exit=Exit.FENCED), after=1)
    assert (job.state.stage, job.state.reason) == (Stage.FAILED, Reason.FENCED)


def test_exhausted_restart_returns_to_the_first_tier_with_reset_counts() -> None:
    job = SteppedJob(spec(tier("spot-a", 0), tier("spot-b", 0), exhausted=Exhausted.RESTART)).running()
    job.lose_attempt(lost("w1-0"), worker("w1-1"))
    job.running(2).lose_attempt(lost("w2-0"), worker("w2-1"))
    assert job.reasons[-2:] == [Reason.BEGIN_AGAIN, Reason.STARTED]
    assert (job.state.tier, job.number, job.state.record("spot-a").failures) == ("spot-a", 3, 0)
    assert job.state.record("spot-a").attempts == 2


def test_exhausted_wait_holds_no_nodes_and_then_returns_to_the_first_tier() -> None:
    job = SteppedJob(spec(tier("spot-a", 0, 60), tier("spot-b", 0, 30), exhausted=Exhausted.WAIT)).running()
    job.lose_attempt(lost("w1-0"), worker("w1-1"))
    job.running(2).lose_attempt(lost("w2-0"), worker("w2-1"))
    assert (job.state.stage, job.last.actions) == (Stage.IDLE, ())
    job.see(after=59)
    assert job.state.stage is Stage.IDLE
    job.see(after=1)
    assert (job.state.tier, job.number) == ("spot-a", 3)


def test_suspend_drains_the_attempt_and_resume_continues_on_the_same_tier() -> None:
    job = SteppedJob().running()
    job.edit(suspend=True).see(all_ready(1), after=1)
    assert job.state.stage is Stage.DRAINING
    job.see(attempt(1, head(), exit=Exit.INTERRUPTED), after=1)
    job.see(after=1)
    assert (job.state.stage, job.state.failures) == (Stage.SUSPENDED, 0)
    assert job.see(after=9999).wake_at is None
    decision = job.edit(suspend=False).see(after=1)
    assert decision.actions == (Launch(2, "spot-a"),)


def test_removing_the_current_tier_from_the_spec_drains_the_attempt_and_falls_back() -> None:
    job = SteppedJob(spec(tier("spot-a", 0), tier("spot-b"))).running()
    job.edit(tiers=(tier("spot-b"),)).see(all_ready(1), after=1)
    assert (job.state.stage, job.reasons[-1]) == (Stage.DRAINING, Reason.TIER_REMOVED)
    job.see(attempt(1, exit=Exit.INTERRUPTED), after=1)
    job.see(after=1)
    assert job.state.tier == "spot-b"


def test_a_raised_max_failures_applies_to_the_running_attempt() -> None:
    job = SteppedJob(spec(tier("spot-a", 0), tier("spot-b"))).running()
    job.edit(tiers=(tier("spot-a", 1), tier("spot-b")))
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=1)
    assert job.state.stage is Stage.RECOVERING


def test_fenced_handover_starts_again_on_the_same_tier_before_a_stuck_attempt_is_gone() -> None:
    job = SteppedJob(spec(tier("spot-a", 5), recovery_timeout=1)).running()
    stuck = attempt(1, head(), lost("w1-0"), worker("w1-1"))
    job.see(stuck, after=1)
    job.see(stuck, after=1)
    job.see(stuck, after=HANDOVER_GRACE_PERIOD - 0.1)
    assert job.state.stage is Stage.ENDING
    decision = job.see(stuck, after=0.1)
    assert job.reasons[-2:] == [Reason.LEFT_BEHIND, Reason.STARTED]
    assert decision.actions == (Delete(1, Reason.RECOVERY_TIMEOUT), Launch(2, "spot-a"))


def test_pods_that_disappear_while_the_attempt_is_deleted_are_not_recorded() -> None:
    job = SteppedJob(spec(tier("spot-a"), tier("on-demand", -1), handover=Handover.WHEN_GONE)).running()
    job.see(attempt(1, head(), worker("w1-0"), lost("w1-1")))
    assert job.state.stage is Stage.ENDING
    before = job.state.attempt
    job.see(attempt(1, head()), after=1)
    job.see(attempt(1), after=1)
    assert job.state.attempt == before
    assert job.state.failures == 1


def test_handover_when_gone_waits_without_a_limit_for_the_old_attempt() -> None:
    job = SteppedJob(spec(tier("spot-a", 0), tier("on-demand"), handover=Handover.WHEN_GONE)).running()
    stuck = attempt(1, head(), lost("w1-0"), worker("w1-1"))
    job.see(stuck, after=1)
    decision = job.see(stuck, after=3600)
    assert decision.actions == (Delete(1, Reason.MAX_FAILURES_EXCEEDED),)
    assert decision.wake_at is not None
    assert decision.wake_at > job.now
    job.see(after=1)
    assert job.state.tier == "on-demand"


def test_an_unreachable_cluster_is_not_a_vanished_attempt() -> None:
    job = SteppedJob(spec(tier("spot-a", 5, 60), tier("on-demand"))).running()
    for _ in range(6):
        job.see(unavailable={"spot-a": "the API server does not answer"}, after=11)
    assert (job.state.stage, job.state.failures) == (Stage.RECOVERING, 0)
    job.see(unavailable={"spot-a": "the API server does not answer"}, after=11)
    assert job.reasons[-3:] == [Reason.CLUSTER_UNREACHABLE, Reason.LEFT_BEHIND, Reason.FELL_BACK]
    assert (job.state.failures, job.state.record("spot-a").exhausted_by) == (1, None)
    assert job.last.actions == (Launch(2, "on-demand"),)


def test_an_attempt_that_was_never_observed_leaves_an_unreachable_cluster_with_its_cause_and_without_a_failure() -> (
    None
):
    job = SteppedJob(spec(tier("spot-a", 5, 60), tier("on-demand"))).planned()
    for _ in range(7):
        job.see(unavailable={"spot-a": "the API server does not answer"}, after=11)
    left = next(move for move in job.moves if move.reason is Reason.CLUSTER_UNREACHABLE)
    assert "the API server does not answer" in left.message
    assert (job.state.failures, job.state.tier) == (0, "on-demand")


def test_an_older_observation_changes_nothing() -> None:
    job = SteppedJob().running()
    old = Observation(0, (attempt(1, lost("w1-0"), lost("w1-1")),))
    decision = decide(job.spec, job.state, old, job.now + 1, Ordered())
    assert (decision.state, decision.actions, decision.reason) == (job.state, (), Reason.STALE_OBSERVATION)


@pytest.mark.parametrize("step", [1.0, 59.0, 86_400.0])
def test_a_clock_that_steps_back_does_not_extend_timers_or_reduce_node_time(step: float) -> None:
    job = SteppedJob(spec(tier("spot-a", -1, 60), tier("on-demand")))
    job.see()
    stuck = attempt(1, head(), pending("w"))
    job.see(stuck, after=50)
    job.see(stuck, after=-step)
    node_seconds = job.state.record("spot-a").node_seconds
    job.see(stuck, after=60)
    assert job.end_reason is Reason.INSUFFICIENT_CAPACITY
    assert job.state.record("spot-a").node_seconds >= node_seconds


def test_unknown_attempts_are_deleted_and_their_numbers_never_reused() -> None:
    job = SteppedJob().running()
    decision = job.see(all_ready(1), attempt(40, worker("x")), after=1)
    assert decision.actions == (Delete(40, Reason.ALL_READY),)
    job.see(attempt(40, worker("x")), after=1)
    assert job.number == 41


def test_a_job_whose_state_was_lost_continues_after_the_newest_attempt_in_the_log() -> None:
    job = SteppedJob()
    job.progress = Progress(30, 100, START, attempt=12)
    job.see()
    assert (job.number, job.state.attempt and job.state.attempt.start_step) == (13, 30)


class Prefers:
    def __init__(self, name: str | None) -> None:
        self.name = name

    def choose(self, view: TierView) -> TierChoice:
        return TierChoice(self.name)


def test_a_policy_that_chooses_another_tier_drains_the_live_attempt() -> None:
    job = SteppedJob(policy=Prefers("on-demand")).running()
    job.policy = Prefers("spot-a")
    job.see(all_ready(1), after=1)
    assert (job.state.stage, job.reasons[-1]) == (Stage.DRAINING, Reason.POLICY)
    job.see(attempt(1, exit=Exit.INTERRUPTED), after=1)
    job.see(after=1)
    assert (job.state.tier, job.reasons[-1], job.state.failures) == ("spot-a", Reason.MIGRATED_BACK, 0)


@pytest.mark.parametrize("name", ["no-such-tier", None])
def test_a_job_waits_when_its_policy_names_no_usable_tier(name: str | None) -> None:
    job = SteppedJob(policy=Prefers(name))
    decision = job.see()
    assert (job.state.stage, decision.actions) == (Stage.IDLE, ())
    assert decision.wake_at is not None


def test_suspending_a_job_on_an_unreachable_cluster_waits_for_the_grace_period_only() -> None:
    job = SteppedJob(spec(tier("spot-a", 5, 600), grace=90)).running()
    cut_off = {"spot-a": "the API server does not answer"}
    job.edit(suspend=True).see(unavailable=cut_off, after=1)
    assert job.state.stage is Stage.DRAINING
    job.see(unavailable=cut_off, after=89)
    assert job.state.stage is Stage.DRAINING
    job.see(unavailable=cut_off, after=1)
    assert job.reasons[-3:] == [Reason.GRACE_EXCEEDED, Reason.LEFT_BEHIND, Reason.SUSPEND_REQUESTED]


def test_restarting_at_the_first_tier_restarts_provision_timeout() -> None:
    job = SteppedJob(spec(tier("spot-a", 0, 60), exhausted=Exhausted.RESTART))
    job.see()
    job.see(attempt(1, head(), pending("w")), after=60)
    job.see(after=1)
    assert (job.reasons[-1], job.state.timers.waiting_since) == (Reason.STARTED, job.now)


def test_a_spec_without_tiers_is_rejected() -> None:
    with pytest.raises(InvalidSpec, match=r"^spec\.tiers: a job needs at least one tier$"):
        decide(spec().__class__(tiers=()), JobState(), Observation(0), START, Ordered())


def test_the_history_keeps_the_newest_twenty_attempts_with_their_steps() -> None:
    job = SteppedJob(spec(tier("spot-a", -1)))
    for number in range(1, 26):
        job.running(number)
        job.commit(number).see(all_ready(number), after=1)
        job.see(after=1)
    records = job.state.history
    assert [record.number for record in records] == list(range(6, 26))
    assert [(record.start_step, record.end_step) for record in records[-2:]] == [(23, 24), (24, 25)]
    assert {record.reason for record in records} == {Reason.VANISHED}


def test_a_clock_that_steps_back_moves_timers_with_it_and_keeps_the_length_of_waits() -> None:
    late, early, step = START + 90, START + 10, 50.0
    ending = Ending(since=late, drain_by=START + 130)
    live = Attempt(1, "spot-a", late, True, late, late, ending=ending, exited_at=late)
    timers = Timers(waiting_since=late, recovering_since=late, paused_until=START + 160)
    state = JobState(
        stage=Stage.ENDING,
        attempt=live,
        tiers=(TierRecord("spot-a", spells=(Spell(True, START, early), Spell(False, early, late))),),
        clock=START + 100,
        started_at=late,
        progress_at=late,
        timers=timers,
    )
    now = state.clock - step
    back = rewound(state, now)
    ending = Ending(since=now, drain_by=START + 80)
    assert back.attempt == Attempt(1, "spot-a", now, True, now, now, ending=ending, exited_at=now)
    assert back.timers == Timers(waiting_since=now, recovering_since=now, paused_until=START + 110)
    assert (back.started_at, back.progress_at) == (now, now)
    assert back.record("spot-a").spells == (Spell(True, START, early), Spell(False, early, now)), "it is tried again"
    before = replace(state, started_at=early, progress_at=early, attempt=None, tiers=(), timers=Timers(early, early))
    assert rewound(before, now) == replace(before, clock=now), "earlier entries changed"
    assert rewound(state, state.clock) == state
