"""The explanation while a job waits: the message and its source, the start of the wait, and the next step with its
time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.explanation import Explanation, explain
from spotladder.core.model import Blocker, Exhausted, Exit, PodSeen
from spotladder.core.reasons import Cause, Reason
from tests.core.builders import START, SteppedJob, all_ready, attempt, head, lost, pending, placed, spec, tier, worker
from tests.core.test_contact import cut_off

PROVISION = 300.0
SCHEDULER = "0/5 nodes are available: 2 Insufficient cpu"
KUEUE = "Kueue holds the attempt in queue team: insufficient unused quota for cpu in flavor spot, 1 more needed"


def job(**more: Any) -> SteppedJob:
    limits = {"attribution_window": 60.0, "contact_timeout": 100.0, "start_timeout": 900.0, "recovery_timeout": 90.0}
    return SteppedJob(spec(tier("spot-a", 2, PROVISION), tier("on-demand", -1), **{**limits, **more}))


def says(uid: str, words: str) -> PodSeen:
    return replace(pending(uid), waiting_message=words)


def explanation_of(found: SteppedJob) -> Explanation | None:
    return explain(found.situation)


def waiting(*pods: PodSeen, **facts: Any) -> Callable[[], SteppedJob]:
    def build() -> SteppedJob:
        made = job()
        made.see()
        made.see(attempt(1, head(), *pods, **facts), after=10)
        return made

    return build


def recovering(*pods: PodSeen) -> Callable[[], SteppedJob]:
    def build() -> SteppedJob:
        made = job().running()
        made.see(attempt(1, head(), worker("w1-0"), lost("w1-1"), *pods), after=10)
        return made

    return build


def ended() -> SteppedJob:
    made = job().running()
    made.see(all_ready(1, exit=Exit.FAILED, message="exit code 1"), after=10)
    return made


@pytest.mark.parametrize(
    ("build", "message", "timer", "length", "then"),
    [
        pytest.param(
            waiting(says("w-1", "other words"), says("w-0", SCHEDULER)),
            f"pods wait for nodes and images: {SCHEDULER}", "provisionTimeout", PROVISION, "the job leaves the tier",
            id="the scheduler's message about the first pod by name",
        ),
        pytest.param(
            waiting(pending("w-0"), pending("w-1")),
            "pods wait for nodes and images", "provisionTimeout", PROVISION, "the job leaves the tier",
            id="no message",
        ),
        pytest.param(
            waiting(replace(says("w-0", SCHEDULER), refused=True)),
            f"the provisioner has no capacity: {SCHEDULER}", "provisionTimeout", PROVISION, "the job leaves the tier",
            id="the provisioner has none",
        ),
        pytest.param(
            waiting(blocked=KUEUE, blocked_by=Blocker.QUOTA), KUEUE, "", None, "",
            id="Kueue holds it: no timer runs",
        ),
        pytest.param(
            waiting(placed("w-0"), placed("w-1")),
            "every pod has a node and its image, but not all are ready yet",
            "startTimeout", 900.0, "the attempt ends",
            id="a slow start",
        ),
        pytest.param(
            recovering(says("w1-2", SCHEDULER)),
            f"pods wait for nodes and images: {SCHEDULER}", "provisionTimeout", PROVISION, "the job leaves the tier",
            id="recovering without capacity",
        ),
        pytest.param(
            recovering(), "pods wait for nodes and images", "recoveryTimeout", 90.0, "a new attempt starts",
            id="recovering",
        ),
    ],
)  # fmt: skip
def test_the_explanation_has_the_cause_of_the_wait_its_timer_and_the_next_step(
    build: Callable[[], SteppedJob], message: str, timer: str, length: float | None, then: str
) -> None:
    made = build()
    found = explanation_of(made)
    assert found is not None
    begun = {
        "provisionTimeout": made.state.timers.waiting_since,
        "recoveryTimeout": made.state.timers.recovering_since,
        "startTimeout": found.since,
    }.get(timer)
    until = None if length is None or begun is None else begun + length
    assert (found.message, found.timer, found.until, found.then) == (message, timer, until, then)
    assert START <= found.since <= made.now


def test_the_explanation_of_a_loss_of_contact_has_the_end_of_contact_timeout() -> None:
    made = recovering()()
    made.see(cut_off(), after=10)
    found = explanation_of(made)
    assert found is not None
    expected = (Reason.CONTACT_LOST, "contactTimeout", made.now + 100.0, "pods on silent nodes count as lost")
    assert (found.reason, found.timer, found.until, found.then) == expected


def test_the_end_of_a_running_timer_does_not_change() -> None:
    made = waiting(says("w-0", SCHEDULER), says("w-1", SCHEDULER))()
    first = explanation_of(made)
    made.see_again(after=120)
    assert first is not None
    assert explanation_of(made) == first


def test_pods_that_start_one_by_one_do_not_change_the_explanation() -> None:
    made = waiting(says("w-0", SCHEDULER), says("w-1", SCHEDULER))()
    first = explanation_of(made)
    made.see(attempt(1, head(), worker("w-0"), says("w-1", SCHEDULER)), after=1)
    assert explanation_of(made) == first


def test_the_explanation_of_the_pause_after_the_last_tier_has_an_end() -> None:
    made = SteppedJob(spec(tier("spot-a", 0, PROVISION), exhausted=Exhausted.WAIT))
    made.see()
    made.see(attempt(1, head(), pending("w-0")), after=PROVISION + 1)
    made.see(after=1)
    found = explanation_of(made)
    assert found is not None
    assert (found.timer, found.until, found.then) == (
        "pause",
        made.state.timers.paused_until,
        "the next attempt starts",
    )


def test_the_pause_after_the_last_tier_is_not_explained_by_an_earlier_failed_start() -> None:
    made = SteppedJob(spec(tier("spot-a", 0, PROVISION), exhausted=Exhausted.WAIT))
    made.see()
    made.see(attempt(1, head(), lost("w-0", Cause.APP_ERROR, exit_code=1)), after=1)
    made.see(after=1)
    made.see(after=made.spec.start_timeout)
    made.see(attempt(2, head(), pending("w-0")), after=1)
    made.see(attempt(2, head(), pending("w-0")), after=PROVISION)
    made.see(after=1)
    found = explanation_of(made)
    assert found is not None
    assert (found.reason, found.message) == (
        Reason.WAITING_FOR_CAPACITY,
        "every tier was exhausted; the job restarts after a pause",
    )


@pytest.mark.parametrize("build", [lambda: job().running(), ended])
def test_a_running_job_has_no_explanation(build: Callable[[], SteppedJob]) -> None:
    assert explanation_of(build()) is None
