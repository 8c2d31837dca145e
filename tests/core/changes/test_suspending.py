"""Time in which a job waits for something else than capacity is left out of provisionTimeout and recoveryTimeout."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.core.model import AttemptSeen, Blocker, Handover, Launch, PodPhase, PodRole, Stage, TierChoice, TierView
from spotladder.core.reasons import Reason
from tests.core.builders import SteppedJob, all_ready, attempt, head, pending, placed, silent, spec, tier, worker

DAY = 86_400.0
UNREACHABLE: dict[str, Any] = {"unavailable": {"spot-a": "cluster b does not answer"}}


def waiting(**facts: Any) -> AttemptSeen:
    """The first attempt, whose workers have no node."""
    return attempt(1, head(), pending("w-0"), pending("w-1"), **facts)


IMPEDED = {
    Reason.CONTACT_LOST: attempt(1, silent("head", PodRole.HEAD), silent("w-0"), nodes=2, silent_nodes=2),
    Reason.OPERATOR_SILENT: waiting(operator_silent="KubeRay does not act on it"),
    Reason.ACCESS_DENIED: waiting(blocked="pods is forbidden", blocked_by=Blocker.FORBIDDEN),
    Reason.QUOTA_EXCEEDED: waiting(blocked="exceeded quota: gpu", blocked_by=Blocker.QUOTA),
    Reason.IMAGE_UNAVAILABLE: waiting(blocked="ErrImagePull", blocked_by=Blocker.IMAGE),
    Reason.VOLUME_UNAVAILABLE: waiting(blocked="Multi-Attach error", blocked_by=Blocker.VOLUME),
    Reason.BLOCKED: waiting(blocked='secret "key" not found'),
    Reason.WAITING_FOR_PODS: attempt(1, head(), placed("w-0"), placed("w-1")),
}


def reason(job: SteppedJob) -> Reason | None:
    return job.state.impeded.reason if job.state.impeded is not None else None


@pytest.mark.parametrize("why", IMPEDED)
def test_a_long_impediment_without_a_decision_does_not_use_up_provision_timeout(why: Reason) -> None:
    """The controller gets no event while an image is not pulled, and decides when the first pod has it."""
    job = SteppedJob(spec(tier("spot-a", 0, 300.0), contact_timeout=2 * DAY)).planned()
    job.see(waiting())
    job.see(waiting(), after=100)
    job.see(IMPEDED[why], after=1)
    assert reason(job) is why
    job.see(waiting(), after=DAY)
    assert (job.state.stage, reason(job)) == (Stage.STARTING, Reason.WAITING_FOR_CAPACITY)
    job.see(waiting(), after=199)
    assert job.state.record("spot-a").exhausted_by is None
    job.see(waiting(), after=1)
    assert job.state.record("spot-a").exhausted_by is Reason.INSUFFICIENT_CAPACITY


@pytest.mark.parametrize("step", [10.0, 350.0], ids=["with decisions", "without a decision"])
def test_an_attempt_that_could_not_be_launched_for_long_is_launched_and_has_its_whole_provision_timeout(
    step: float,
) -> None:
    job = SteppedJob(spec(tier("spot-a", 0, 300.0)))
    job.see(**UNREACHABLE)
    for _ in range(int(350 / step)):
        job.see(after=step, **UNREACHABLE)
    assert job.see(after=1).actions == (Launch(1, "spot-a"),)
    job.see(waiting(), after=1)
    job.see(waiting(), after=298)
    assert job.state.record("spot-a").exhausted_by is None
    job.see(waiting(), after=1)
    assert job.state.record("spot-a").exhausted_by is Reason.INSUFFICIENT_CAPACITY


def test_provision_timeout_continues_when_the_cluster_answers_again() -> None:
    job = SteppedJob(spec(tier("spot-a", 0, 300.0), tier("on-demand", -1))).planned()
    job.see(waiting())
    job.see(waiting(), after=200)
    for _ in range(9):
        job.see(after=10, **UNREACHABLE)
    assert job.state.stage is Stage.STARTING
    job.see(waiting(), after=5)
    job.see(waiting(), after=99)
    assert job.state.stage is Stage.STARTING
    job.see(waiting(), after=1)
    job.see(after=1)
    assert (job.state.tier, job.state.failures) == ("on-demand", 0)


def test_a_job_leaves_an_unreachable_cluster_after_provision_timeout_if_another_tier_is_reachable() -> None:
    """The wait for capacity before counts: a user bounds how long the job waits on the tier."""
    job = SteppedJob(spec(tier("spot-a", 1, 300.0), tier("on-demand", -1))).planned()
    job.see(waiting())
    job.see(waiting(), after=200)
    job.see(after=1, **UNREACHABLE)
    assert job.last.wake_at == job.now + 99
    job.see(after=99, **UNREACHABLE)
    assert Reason.CLUSTER_UNREACHABLE in job.reasons
    assert (job.state.tier, job.state.record("spot-a").exhausted_by) == ("on-demand", None)


class WaitsForTier:
    """A policy that starts no attempt on a tier that cannot be used now."""

    def choose(self, view: TierView) -> TierChoice:
        return TierChoice(next((tier.name for tier in view.tiers if tier.name in view.available), None))


def test_a_wait_between_two_attempts_until_the_tier_is_available_is_not_missing_capacity() -> None:
    job = SteppedJob(spec(tier("spot-a", 5, 300.0)), WaitsForTier()).running()
    job.see(attempt(1, head(PodPhase.LOST)), after=1)
    for _ in range(35):
        job.see(after=10, **UNREACHABLE)
    assert job.state.stage is Stage.IDLE
    job.see(after=1)
    assert job.see(after=1).actions == (Launch(2, "spot-a"),)


@pytest.mark.parametrize(("handover", "step"), [(Handover.FENCED, 350.0), (Handover.WHEN_GONE, 10.0)], ids=str)
def test_the_removal_of_an_attempt_is_not_missing_capacity(handover: Handover, step: float) -> None:
    """Regression: the controller did not run for minutes, or the pods of a lost node were not gone for minutes, and the
    tier was exhausted before the next attempt was launched there."""
    job = SteppedJob(spec(tier("spot-a", 5, 300.0), tier("on-demand", -1), handover=handover)).running()
    removed = attempt(1, head(PodPhase.LOST))
    job.see(removed, after=1)
    for _ in range(int(350 / step) - 1):
        job.see(removed, after=step)
    job.see(after=step)
    assert job.see(after=1).actions == (Launch(2, "spot-a"),)


def test_a_worker_that_is_not_ready_when_an_unreachable_cluster_answers_has_recovery_timeout() -> None:
    job = SteppedJob(spec(tier("spot-a", 0, 300.0), recovery_timeout=90.0)).running()
    for _ in range(20):
        job.see(after=10, **UNREACHABLE)
    unready = attempt(1, head(), worker("w1-0"), worker("w1-1", ready=False))
    job.see(unready, after=1)
    job.see(unready, after=89)
    assert (job.state.stage, job.state.failures) == (Stage.RECOVERING, 0)
    job.see(unready, after=1)
    assert job.end_reason is Reason.MAX_FAILURES_EXCEEDED


# --- an operator that does not act ---


NOT_ACTING = "KubeRay does not act: RayJob a has no status"


def test_no_tier_is_exhausted_while_kuberay_does_not_act_on_the_attempt() -> None:
    job = SteppedJob(spec(tier("spot-a", 0, 20.0), tier("on-demand", -1, 20.0)))
    job.see()
    job.see(after=10)
    for _ in range(100):
        decision = job.see(after=10, operator_silent=NOT_ACTING)
        assert decision.actions == (Launch(1, "spot-a"),)
    assert (job.impeded.reason, job.state.record("spot-a").exhausted_by) == (Reason.OPERATOR_SILENT, None)
    job.see(all_ready(1), after=5)
    assert job.state.stage is Stage.RUNNING


def test_provision_timeout_expires_only_after_the_operator_has_acted() -> None:
    """Before the operator has acted, it is unknown whether there is capacity."""
    job = SteppedJob(spec(tier("spot-a", 0, 3.0), tier("on-demand", -1, 3.0)))
    job.see()
    job.see(launched=True, after=1)
    for _ in range(5):
        job.see(launched=True, after=3)
    assert job.state.record("spot-a").exhausted_by is None
    job.see(attempt(1), after=1)
    assert job.state.record("spot-a").exhausted_by is Reason.INSUFFICIENT_CAPACITY
