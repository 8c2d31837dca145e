"""An administrator cordons or drains nodes: the job commits and leaves them, and no failure is counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.core.changes.replacing import COMMIT_RESERVE
from spotladder.core.model import (
    AskToCommit,
    AttemptSeen,
    Delete,
    Drain,
    Exit,
    FailureUnit,
    Launch,
    Overlap,
    PodPhase,
    PodRole,
    PodSeen,
    Progress,
    Replace,
    Stage,
)
from spotladder.core.reasons import Cause, Reason
from spotladder.core.situation import MAINTENANCE_LIMIT, REMOVAL_DELAY
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
    spec,
    tier,
    worker,
)


def leaving(uid: str, role: PodRole = PodRole.WORKER) -> PodSeen:
    return PodSeen(uid, role, noticed=True, cause=Cause.MAINTENANCE, node="n1", name=uid)


def strict() -> SteppedJob:
    return SteppedJob(spec(tier("spot-a", 0), tier("on-demand", -1))).running()


@pytest.mark.parametrize("pod", [leaving("w1-1"), leaving("head", PodRole.HEAD)], ids=["worker", "head"])
def test_the_job_commits_leaves_the_node_and_stays_on_its_tier(pod: PodSeen) -> None:
    job = strict()
    others = [other for other in (head(), worker("w1-0"), worker("w1-1")) if other.uid != pod.uid]
    job.see(attempt(1, pod, *others), after=1)
    assert (job.state.stage, job.state.reason) == (Stage.DRAINING, Reason.MAINTENANCE)
    assert "node n1" in job.state.message
    assert pod.uid in job.state.message
    gone = replace(pod, phase=PodPhase.LOST, noticed=False)
    job.see(attempt(1, gone, *others, exit=Exit.INTERRUPTED), after=1)
    job.see(after=1)
    assert (job.state.stage, job.state.tier, job.state.failures) == (Stage.STARTING, "spot-a", 0)
    assert job.state.history[-1].reason is Reason.MAINTENANCE


@pytest.mark.parametrize("unit", FailureUnit)
def test_a_pod_evicted_by_maintenance_is_no_failure(unit: FailureUnit) -> None:
    job = SteppedJob(spec(tier("spot-a", 0), failure_unit=unit)).running()
    job.see(attempt(1, head(), worker("w1-0"), lost("w1-1", Cause.MAINTENANCE)), after=1)
    assert (job.state.stage, job.state.failures) == (Stage.RECOVERING, 0)
    assert [(loss.pod, loss.cause) for loss in job.losses] == [("w1-1", Cause.MAINTENANCE)]


def test_an_attempt_that_does_not_run_yet_ends_at_once() -> None:
    job = SteppedJob(spec(tier("spot-a", 0)))
    job.see()
    job.see(attempt(1, leaving("head", PodRole.HEAD), pending("w")), after=1)
    assert (job.state.stage, job.state.reason) == (Stage.ENDING, Reason.MAINTENANCE)


# --- the nodes are replaced before the program leaves them ---


def replaceable() -> SteppedJob:
    """A job whose program can hand over, and whose first failure exhausts the tier."""
    made = SteppedJob(spec(tier("on-demand", 0, 900.0), tier("other", -1), grace=20.0)).running()
    made.progress = Progress(5, 100, START, 1, hands_over=True)
    return made


def gang(*pods: PodSeen, surplus: int = 0) -> AttemptSeen:
    return attempt(1, head(), worker("w1-0"), *pods, surplus=surplus)


def test_a_worker_on_a_drained_node_is_replaced_while_the_program_trains() -> None:
    job = replaceable()
    job.see(gang(leaving("w1-1")), after=1)
    assert (job.state.stage, job.state.reason, job.state.failures) == (Stage.REPLACING, Reason.REPLACING, 0)
    assert "node n1" in job.state.message
    job.see_again(after=0)
    until = job.now + MAINTENANCE_LIMIT - COMMIT_RESERVE
    asked = AskToCommit(1, ("head", "w1-1"), Reason.MAINTENANCE, START + 11)
    assert job.last.actions == (asked, Replace(1, ("w1-1",), False, False, until))
    job.see(gang(leaving("w1-1"), worker("w1-2"), surplus=1), after=200)
    for after in (0, REMOVAL_DELAY):
        job.see_again(after=after)
    assert job.last.actions == (Replace(1, ("w1-1",), True, True, until),)
    job.see(gang(worker("w1-2")), after=3)
    assert (job.state.stage, job.state.failures, job.state.last_number) == (Stage.RUNNING, 0, 1)
    assert job.reasons[-2:] == [Reason.REPLACING, Reason.HANDED_OVER]
    assert [(loss.pod, loss.cause, loss.noticed) for loss in job.losses] == [("w1-1", Cause.MAINTENANCE, True)]


@pytest.mark.parametrize(("patience", "waits"), [(900.0, MAINTENANCE_LIMIT), (120.0, 120.0), (5.0, 20.0)])
def test_without_capacity_in_time_the_job_moves_off_the_node(patience: float, waits: float) -> None:
    """The time is the tier's provisionTimeout, within the limit, and at least the job's grace."""
    job = replaceable()
    job.edit(tiers=(replace(job.spec.tiers[0], provision_timeout=patience), job.spec.tiers[1]))
    seen = gang(leaving("w1-1"), pending("w1-2"), surplus=1)
    job.see(gang(leaving("w1-1")), after=1)
    job.see(seen, after=waits - COMMIT_RESERVE - 1)
    assert job.state.stage is Stage.REPLACING
    job.see(seen, after=1)
    assert (job.state.stage, job.state.reason, job.state.failures) == (Stage.DRAINING, Reason.MAINTENANCE, 0)
    assert "no capacity" in job.state.message
    job.see(attempt(1, head(), worker("w1-0"), leaving("w1-1"), exit=Exit.INTERRUPTED), after=1)
    job.see(after=1)
    assert (job.state.stage, job.state.tier, job.state.failures) == (Stage.STARTING, "on-demand", 0)


def test_a_node_that_is_uncordoned_does_not_end_the_attempt() -> None:
    job = replaceable()
    job.edit(stall_timeout=3600.0)
    job.see(gang(leaving("w1-1")), after=1)
    back = gang(worker("w1-1"), pending("w1-2"), surplus=1)
    job.see(back, after=MAINTENANCE_LIMIT)
    job.see(back)
    assert job.state.stage is Stage.REPLACING
    assert job.last.wake_at is not None
    assert job.last.wake_at > job.now + 5, "no busy loop"
    job.see(gang(leaving("w1-1"), pending("w1-2"), surplus=1), after=MAINTENANCE_LIMIT)
    assert job.state.reason is Reason.MAINTENANCE


def test_a_reclaimed_node_during_the_replacement_counts_and_shortens_it() -> None:
    job = replaceable()
    job.edit(tiers=(replace(job.spec.tiers[0], max_failures=3), job.spec.tiers[1]))
    job.see(gang(leaving("w1-1")), after=1)
    both = attempt(1, head(), noticed("w1-0", job.now + 60), leaving("w1-1"), pending("w1-2"), surplus=1)
    job.see(both, after=1)
    assert (job.state.stage, job.state.failures) == (Stage.REPLACING, 1)
    job.see(both, after=50)
    assert (job.state.stage, job.state.reason, job.state.failures) == (Stage.DRAINING, Reason.EVICTION_NOTICE, 1)


def test_a_drained_pod_that_is_evicted_by_force_is_no_failure() -> None:
    job = replaceable()
    job.see(gang(leaving("w1-1")), after=1)
    job.see(gang(lost("w1-1", Cause.MAINTENANCE), pending("w1-2"), surplus=1), after=5)
    assert (job.state.stage, job.state.failures) == (Stage.RECOVERING, 0)
    job.see(gang(worker("w1-2")), after=5)
    assert (job.state.stage, job.state.failures, job.state.last_number) == (Stage.RUNNING, 0, 1)


# --- the next attempt boots before the program leaves the node ---


def test_an_uncordoned_node_deletes_the_standby_attempt() -> None:
    job = SteppedJob(spec(priced("on-demand", 3.0, 3.0, max_failures=0), overlap=Overlap())).running()
    job.progress = Progress(5, 100, START, 1, stands_by=True)
    job.see(all_ready(1), after=1)
    seen = attempt(1, leaving("head", PodRole.HEAD), worker("w1-0"), worker("w1-1"))
    job.see(seen, after=1)
    job.see(seen)
    asked = AskToCommit(1, ("head", "w1-0", "w1-1"), Reason.MAINTENANCE, START + 12)
    assert job.last.actions == (asked, Launch(2, "on-demand", standby=True))
    assert (job.state.standby.reason, job.state.failures) == (Reason.MAINTENANCE, 0)
    job.see(all_ready(1), all_ready(2, held=False), after=30)
    job.see(all_ready(1), all_ready(2, held=False))
    assert (job.state.stage, job.state.standby.attempt) == (Stage.RUNNING, None)
    assert not any(isinstance(action, Drain) for action in job.last.actions)
    assert Delete(2, job.state.reason) in job.last.actions
    assert job.attempt.notice.leave_by is None
    job.see(seen, after=5)
    assert (job.state.standby.attempt and job.state.standby.attempt.number) == 3, "a second cordon is a notice again"
