"""An administrator cordons or drains nodes: the job commits and leaves them, and no failure is counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.core.model import Exit, FailureUnit, PodPhase, PodRole, PodSeen, Stage
from spotladder.core.reasons import Cause, Reason
from tests.core.builders import Job, all_ready, attempt, head, lost, noticed, pending, spec, tier, worker


def leaving(uid: str, role: PodRole = PodRole.WORKER) -> PodSeen:
    return PodSeen(uid, role, noticed=True, cause=Cause.MAINTENANCE, node="n1", name=uid)


def strict() -> Job:
    return Job(spec(tier("spot-a", 0), tier("on-demand", -1))).running()


@pytest.mark.parametrize("pod", [leaving("w1-1"), leaving("head", PodRole.HEAD)], ids=["worker", "head"])
def test_the_job_commits_leaves_the_node_and_stays_on_its_tier(pod: PodSeen) -> None:
    job = strict()
    others = [other for other in (head(), worker("w1-0"), worker("w1-1")) if other.uid != pod.uid]
    job.see(attempt(1, pod, *others), after=1)
    assert (job.state.stage, job.state.reason) == (Stage.DRAINING, Reason.MAINTENANCE)
    assert f"node n1 is cordoned or drained: the job commits and moves off it ({pod.uid})" == job.state.message
    gone = replace(pod, phase=PodPhase.LOST, noticed=False)
    job.see(attempt(1, gone, *others, exit=Exit.INTERRUPTED), after=1)
    job.see(after=1)
    assert (job.state.stage, job.state.tier, job.state.failures) == (Stage.STARTING, "spot-a", 0)
    assert job.state.history[-1].reason is Reason.MAINTENANCE


@pytest.mark.parametrize("unit", FailureUnit)
def test_a_pod_evicted_by_maintenance_is_no_failure(unit: FailureUnit) -> None:
    job = Job(spec(tier("spot-a", 0), failure_unit=unit)).running()
    job.see(attempt(1, head(), worker("w1-0"), lost("w1-1", Cause.MAINTENANCE)), after=1)
    assert (job.state.stage, job.state.failures) == (Stage.RECOVERING, 0)
    assert [(loss.pod, loss.cause) for loss in job.losses] == [("w1-1", Cause.MAINTENANCE)]


def test_a_program_that_fails_during_maintenance_counts_as_interrupted() -> None:
    job = strict()
    job.see(attempt(1, head(), worker("w1-0"), leaving("w1-1"), exit=Exit.FAILED), after=1)
    assert (job.state.reason, job.state.failures, job.state.application_failures) == (Reason.INTERRUPTED, 0, 0)


def test_an_attempt_that_does_not_run_yet_ends_at_once() -> None:
    job = Job(spec(tier("spot-a", 0)))
    job.see()
    job.see(attempt(1, leaving("head", PodRole.HEAD), pending("w")), after=1)
    assert (job.state.stage, job.state.reason) == (Stage.ENDING, Reason.MAINTENANCE)


def test_a_reclaim_during_maintenance_counts() -> None:
    job = Job(spec(tier("spot-a", 5))).running()
    job.see(attempt(1, head(), leaving("w1-0"), replace(noticed("w1-1"), cause=Cause.INTERRUPTION)), after=1)
    assert (job.state.stage, job.state.reason, job.state.failures) == (Stage.DRAINING, Reason.EVICTION_NOTICE, 1)


def test_a_pod_deleted_by_a_user_counts_with_cause_deleted() -> None:
    job = Job(spec(tier("spot-a", 5))).running()
    deleted = PodSeen("w1-1", phase=PodPhase.LOST, ready=False, cause=Cause.DELETED)
    job.see(attempt(1, head(), worker("w1-0"), deleted, exit=Exit.INTERRUPTED), after=1)
    assert [loss.cause for loss in job.losses] == [Cause.DELETED]
    assert job.state.failures == 1


def test_exit_75_without_a_lost_pod_counts_as_an_interruption() -> None:
    job = Job(spec(tier("spot-a", 5))).running()
    job.see(all_ready(1, exit=Exit.INTERRUPTED), after=1)
    assert [loss.cause for loss in job.losses] == [Cause.INTERRUPTION]
