"""Every row of the table of impediments: its facts, its timer, whether it counts, and its message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from spotladder.core.diagnosis.impediment import BY_REASON, IMPEDIMENTS, Timer, classify
from spotladder.core.history.crashes import FIRST_BACKOFF
from spotladder.core.model import (
    Blocker,
    Exhausted,
    Exit,
    PodPhase,
    PodRole,
    PodSeen,
    QueueSeen,
    Stage,
)
from spotladder.core.reasons import Cause, Reason
from spotladder.core.situation import MISFIT_TIMEOUT
from tests.core.builders import (
    SteppedJob,
    all_ready,
    attempt,
    head,
    pending,
    placed,
    silent,
    spec,
    tier,
    worker,
)

LIMITS = {"attribution_window": 60.0, "contact_timeout": 100.0, "start_timeout": 900.0, "stall_timeout": 600.0}
PROVISION, QUEUE = 300.0, 1000.0


def queued() -> SteppedJob:
    return SteppedJob(
        spec(tier("spot-a", 0, PROVISION, queue_timeout=QUEUE), tier("on-demand", -1), **LIMITS)
    ).planned()


def starting(**more: Any) -> SteppedJob:
    job = SteppedJob(spec(tier("spot-a", 0, PROVISION), tier("on-demand", -1), **{**LIMITS, **more}))
    job.see()
    job.see(attempt(1, head(), pending("w-0"), pending("w-1")), after=1)
    return job


def running() -> SteppedJob:
    return SteppedJob(spec(tier("spot-a", 0, PROVISION), tier("on-demand", -1), **LIMITS)).running()


def waits(**facts: Any) -> Callable[[SteppedJob], object]:
    def see(job: SteppedJob) -> None:
        job.see(attempt(1, head(), pending("w-0"), pending("w-1"), **facts), after=1)

    return see


def held(queue: QueueSeen) -> Callable[[SteppedJob], object]:
    return lambda job: job.see(attempt(1, queue=queue), after=1)


def trains(**facts: Any) -> Callable[[SteppedJob], object]:
    return lambda job: job.see(all_ready(1, **facts), after=1)


def crash(job: SteppedJob) -> None:
    gone = PodSeen("head", PodRole.HEAD, PodPhase.LOST, ready=False, cause=Cause.APP_ERROR, exit_code=2)
    job.see(attempt(1, replace(gone, exit_message="no such option: --bogus-flag")), after=1)
    job.see(after=1)


def unsafe(job: SteppedJob) -> None:
    job.see(all_ready(1, exit=Exit.UNSAFE, message="the store is not safe for checkpoints"), after=1)
    job.see(after=1)


@dataclass(frozen=True)
class RuleCase:
    """How the facts of the rule are produced, and the message for the user; `ends` is the reason at the timer's end."""

    occur: Callable[[SteppedJob], object]
    says: str
    ends: Reason | None = None
    limit: float = 0.0
    begin: Callable[[], SteppedJob] = starting


ROWS = {
    Reason.PROGRAM_ENDED: RuleCase(
        trains(exit=Exit.FAILED, message="exit code 1"), "has ended (exit code 1)",
        Reason.APPLICATION_FAILED, LIMITS["attribution_window"], running,
    ),
    Reason.CLUSTER_UNREACHABLE: RuleCase(
        lambda job: job.see(unavailable={"spot-a": "cluster b does not answer"}, after=1),
        "cluster b does not answer", Reason.MAX_FAILURES_EXCEEDED, PROVISION, running,
    ),
    Reason.CONTACT_LOST: RuleCase(
        lambda job: job.see(
            attempt(1, silent("head", PodRole.HEAD), silent("w1-0"), silent("w1-1"), nodes=3, silent_nodes=3), after=1
        ),
        "nodes of the job are silent", Reason.MAX_FAILURES_EXCEEDED, LIMITS["contact_timeout"], running,
    ),
    Reason.OPERATOR_SILENT: RuleCase(waits(operator_silent="KubeRay does not act on it"), "KubeRay does not act on it"),
    Reason.ACCESS_DENIED: RuleCase(
        waits(blocked="pods is forbidden", blocked_by=Blocker.FORBIDDEN), "pods is forbidden",
    ),
    Reason.WAITING_FOR_QUOTA: RuleCase(
        held(QueueSeen("team", held=True, message="1 more needed")), "1 more needed",
        Reason.QUEUE_TIMEOUT, QUEUE, queued,
    ),
    Reason.INADMISSIBLE: RuleCase(
        held(QueueSeen("team", held=True, message="no such queue", inadmissible=True)), "no such queue",
        Reason.QUEUE_TIMEOUT, QUEUE, queued,
    ),
    Reason.QUOTA_EXCEEDED: RuleCase(
        waits(blocked="exceeded quota: gpu", blocked_by=Blocker.QUOTA), "exceeded quota: gpu"
    ),
    Reason.IMAGE_UNAVAILABLE: RuleCase(waits(blocked="ErrImagePull", blocked_by=Blocker.IMAGE), "ErrImagePull"),
    Reason.VOLUME_UNAVAILABLE: RuleCase(
        waits(blocked="claim data: Multi-Attach error", blocked_by=Blocker.VOLUME), "claim data: Multi-Attach error"
    ),
    Reason.POD_DOES_NOT_FIT: RuleCase(
        lambda job: job.see(attempt(1, head(), pending("w-0", misfit="it requests cpu 64"), worker("w-1")), after=1),
        "w-0 fits no node of spot-a: it requests cpu 64", Reason.POD_DOES_NOT_FIT, PROVISION,
    ),
    Reason.BLOCKED: RuleCase(waits(blocked='secret "key" not found'), 'secret "key" not found'),
    Reason.MAINTENANCE: RuleCase(
        lambda job: job.see(
            attempt(1, head(), PodSeen("w1-1", noticed=True, cause=Cause.MAINTENANCE, node="n1"), worker("w1-0")),
            after=1,
        ),
        "node n1 is cordoned or drained: the job commits and moves off it (w1-1)", begin=running,
    ),
    Reason.STORE_UNAVAILABLE: RuleCase(
        trains(store_unavailable_since=1.0, store_message="connection refused"), "(connection refused)",
        Reason.MAX_FAILURES_EXCEEDED, LIMITS["stall_timeout"], running,
    ),
    Reason.STORE_UNSAFE: RuleCase(
        unsafe, "the store is not safe for checkpoints", Reason.STARTED, FIRST_BACKOFF, lambda: running().commit(10)
    ),
    Reason.CRASH_LOOP: RuleCase(crash, "exit code 2 (AppError)", Reason.STARTED, FIRST_BACKOFF),
    Reason.WAITING_FOR_PODS: RuleCase(
        lambda job: job.see(attempt(1, head(), placed("w-0"), worker("w-1", ready=False)), after=1),
        "not all are ready yet", Reason.START_TIMEOUT, LIMITS["start_timeout"],
    ),
    Reason.WAITING_FOR_CAPACITY: RuleCase(
        waits(), "pods wait for nodes and images", Reason.INSUFFICIENT_CAPACITY, PROVISION
    ),
}  # fmt: skip


def test_the_table_covers_every_impediment_and_this_test_every_row() -> None:
    assert set(ROWS) == set(BY_REASON)
    assert len(BY_REASON) == len(IMPEDIMENTS), "one reason, one row"


def test_only_missing_capacity_or_quota_or_a_misfit_exhausts_a_tier_without_a_failure() -> None:
    exhausting = [rule.reason for rule in IMPEDIMENTS if rule.exhausts]
    assert exhausting == [
        Reason.INADMISSIBLE,
        Reason.WAITING_FOR_QUOTA,
        Reason.POD_DOES_NOT_FIT,
        Reason.WAITING_FOR_CAPACITY,
    ]
    assert {rule.reason for rule in IMPEDIMENTS if rule.counted} == {
        Reason.CLUSTER_UNREACHABLE,
        Reason.CONTACT_LOST,
        Reason.STORE_UNAVAILABLE,
    }


@pytest.mark.parametrize("reason", ROWS)
def test_an_impediment_has_the_message_timer_and_effect_of_its_row(reason: Reason) -> None:
    row, rule = ROWS[reason], BY_REASON[reason]
    job = row.begin()
    row.occur(job)
    if rule.timer is Timer.GRACE:  # The attempt ends at once; then the stage has the reason.
        assert (job.state.stage, job.state.reason, job.state.failures) == (Stage.DRAINING, reason, 0)
        assert row.says in job.state.message
        return
    assert job.impeded.reason is reason
    since = job.impeded.since
    found = classify(job.situation)
    assert found is not None
    assert row.says in found.message
    assert job.state.failures == 0
    if rule.timer is Timer.NONE:
        for _ in range(5):
            job.now += 3600
            row.occur(job)
        assert job.state.impeded == replace(job.impeded, reason=reason, since=since)
        assert (job.state.stage, job.state.record("spot-a").exhausted_by, job.state.failures) == (
            Stage.STARTING,
            None,
            0,
        )
        return
    before = len(job.moves)
    job.see_again(after=row.limit - 4)
    assert len(job.moves) == before, "the timer has not expired yet"
    job.see_again(after=5)
    assert row.ends in [move.reason for move in job.moves[before:]]
    assert (job.state.failures > 0) is rule.counted
    exhausted = job.state.record("spot-a").exhausted_by
    assert (exhausted in (Reason.INSUFFICIENT_CAPACITY, Reason.QUEUE_TIMEOUT, Reason.POD_DOES_NOT_FIT)) is rule.exhausts
    assert (exhausted is Reason.MAX_FAILURES_EXCEEDED) is rule.counted


def test_a_misfit_that_no_wait_mends_ends_the_attempt_early() -> None:
    job = starting()
    large = pending("w-0", misfit="it requests cpu 64", misfit_lasts=True)
    job.see(attempt(1, head(), large, pending("w-1")), after=1)
    found = job.explanation
    assert found.message == "w-0 fits no node of spot-a, and waiting does not help: it requests cpu 64"
    assert (found.until, found.then) == (job.now + MISFIT_TIMEOUT, "the job leaves the tier")
    job.see_again(after=MISFIT_TIMEOUT - 1)
    assert job.state.stage is Stage.STARTING
    assert job.last.wake_at == job.now + 1
    job.see_again(after=1)
    assert job.state.record("spot-a").exhausted_by is Reason.POD_DOES_NOT_FIT
    job.see(after=1)
    job.see(attempt(2, head(), large, worker("w-1")), after=1)
    job.see_again(after=MISFIT_TIMEOUT)
    job.see(after=1)
    assert (job.state.stage, job.state.reason) == (Stage.FAILED, Reason.POD_DOES_NOT_FIT)
    assert "w-0 fits no node of on-demand, and waiting does not help: it requests cpu 64" in job.state.message


def test_a_misfit_that_ends_within_the_timeout_is_none() -> None:
    job = starting()
    large = pending("w-0", misfit="it requests cpu 64", misfit_lasts=True)
    for _ in range(3):
        job.see(attempt(1, head(), large, pending("w-1")), after=1)
        job.see_again(after=MISFIT_TIMEOUT - 1)
        job.see(attempt(1, head(), pending("w-0"), pending("w-1")), after=1)
    assert (job.state.stage, job.state.record("spot-a").exhausted_by) == (Stage.STARTING, None)


def test_since_is_kept_while_the_reason_of_the_impediment_stays() -> None:
    job = starting()
    first = job.state.impeded
    job.see(attempt(1, head(), pending("w-0"), pending("w-1")), after=60)
    assert job.state.impeded == first
    job.see(attempt(1, head(), placed("w-0"), placed("w-1")), after=1)
    assert (job.impeded.reason, job.impeded.since) == (Reason.WAITING_FOR_PODS, job.now)


def test_the_wait_before_a_restart_at_the_first_tier_is_a_wait_for_capacity() -> None:
    job = SteppedJob(spec(tier("spot-a", 0, 30), exhausted=Exhausted.WAIT))
    job.see()
    job.see(attempt(1, head(), pending("w-0")), after=31)
    job.see(after=1)
    assert job.impeded.reason is Reason.WAITING_FOR_CAPACITY


def test_a_webhook_that_does_not_answer_exhausts_no_tier() -> None:
    job = starting()
    waits(blocked="failed calling webhook", blocked_by=Blocker.NO_ANSWER)(job)
    job.see_again(after=10 * PROVISION)
    assert (job.impeded.reason, job.state.tier) == (Reason.OPERATOR_SILENT, "spot-a")
    assert job.state.record("spot-a").exhausted_by is None
