"""The next attempt on another tier starts while the ended one is being removed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.model import (
    Delete,
    Exit,
    Handover,
    Launch,
    LeftAttempt,
    OnInsufficientCapacity,
    QueueEviction,
    QueueSeen,
    Stage,
    TierChoice,
    TierView,
)
from spotladder.core.reasons import Reason
from spotladder.core.situation import HANDOVER_GRACE_PERIOD
from tests.core.builders import (
    START,
    SteppedJob,
    all_ready,
    attempt,
    head,
    lost,
    priced,
    refused,
    spec,
    tier,
    worker,
)

HURT = attempt(1, head(), lost("w1-0"), worker("w1-1"))
"""An attempt on a tier that tolerates no failure. It holds one node."""


def job(**more: Any) -> SteppedJob:
    return SteppedJob(spec(tier("spot-a", 0), tier("on-demand", -1), **more)).running()


def test_the_next_attempt_on_another_tier_is_launched_with_the_deletion_of_the_ended_one() -> None:
    made = job()
    decision = made.see(HURT, after=1)
    assert made.reasons[-3:] == [Reason.MAX_FAILURES_EXCEEDED, Reason.MOVED_ON, Reason.FELL_BACK]
    assert decision.actions == (Delete(1, Reason.MAX_FAILURES_EXCEEDED), Launch(2, "on-demand"))
    assert made.state.left == (LeftAttempt(1, "spot-a", made.now, 1),)
    assert (made.state.stage, made.state.failures) == (Stage.STARTING, 1)


def test_an_attempt_that_is_left_is_deleted_until_it_is_gone_and_its_losses_are_not_counted() -> None:
    made = job()
    made.see(HURT, after=1)
    for seconds in (1, 100):
        decision = made.see(attempt(1, head(), lost("w1-0"), lost("w1-1")), attempt(2), after=seconds)
        assert decision.actions == (Delete(1, Reason.MAX_FAILURES_EXCEEDED),)
        assert decision.wake_at is not None
        assert (made.state.failures, len(made.state.left)) == (1, 1)
    assert made.see(attempt(2), after=1).actions == ()
    assert made.state.left == ()


def test_an_attempt_that_is_left_is_paid_for_until_its_pods_are_gone() -> None:
    made = SteppedJob(spec(priced("spot-a", 3.6, 7.2), priced("on-demand", 7.2, 7.2, max_failures=-1))).running()
    made.see(all_ready(1))
    spent = made.state.record("spot-a").cost
    made.see(HURT, after=0)
    assert made.last.wake_at is not None
    made.see(HURT, attempt(2, head(), worker("w2-0")), after=10)
    made.see(attempt(1, head()), attempt(2, head(), worker("w2-0")), after=10)
    made.see(attempt(2, head(), worker("w2-0")), after=10)
    assert made.state.record("spot-a").cost == pytest.approx(spent + 20 * 0.001)
    assert made.state.record("on-demand").cost == pytest.approx(20 * 0.002)


def test_the_last_attempt_is_paid_for_until_its_pods_are_gone() -> None:
    made = SteppedJob(spec(priced("spot-a", 3.6, 7.2), tier("on-demand", -1))).running()
    made.see(all_ready(1))
    spent = made.state.record("spot-a").cost
    made.see(all_ready(1, exit=Exit.SUCCEEDED), after=0)
    assert (made.state.stage, made.state.left) == (Stage.SUCCEEDED, (LeftAttempt(1, "spot-a", made.now, 2),))
    made.see(attempt(1, head(), worker("w1-0")), after=10)
    made.see(after=10)
    assert made.state.left == ()
    made.see(after=10)
    assert made.state.record("spot-a").cost == pytest.approx(spent + 30 * 0.001)


@pytest.mark.parametrize(
    ("wanted", "more"),
    [
        pytest.param({"handover": Handover.WHEN_GONE}, {}, id="no fence"),
        pytest.param({}, {"unavailable": {"on-demand": "no answer"}}, id="a tier that is unavailable"),
        pytest.param({"backoff_limit": 0}, {}, id="the job fails"),
        pytest.param({"deadline": START + 11}, {}, id="the deadline has passed"),
        pytest.param({"tiers": (tier("spot-a", 0),)}, {}, id="no other tier"),
    ],
)
def test_the_job_waits_until_the_attempt_is_gone(wanted: dict[str, Any], more: dict[str, Any]) -> None:
    made = job().edit(**wanted)
    decision = made.see(HURT, after=1, **more)
    assert (made.state.stage, made.number, made.state.left) == (Stage.ENDING, 1, ())
    assert [type(action) for action in decision.actions] == [Delete]


@pytest.mark.parametrize(
    ("queues", "waits"), [(("home/a", "home/a"), True), (("home/a", "home/b"), False), (("", ""), True)]
)
def test_the_job_waits_where_both_tiers_share_an_admission_queue(queues: tuple[str, str], waits: bool) -> None:
    """Without the name of a queue, the attempt is in the default queue of its namespace."""
    tiers = (tier("spot-a", 0, queue=queues[0]), tier("on-demand", -1, queue=queues[1]))
    made = SteppedJob(spec(*tiers)).running()
    made.see(replace(HURT, queue=QueueSeen()), after=1)
    assert made.state.stage is (Stage.ENDING if waits else Stage.STARTING)


class ReturnsAtOnce:
    """A policy that always wants the other tier of an attempt that has ended."""

    def choose(self, view: TierView) -> TierChoice:
        names = [entry.name for entry in view.tiers]
        if view.live or not view.current:
            return TierChoice(view.current or names[0])
        return TierChoice(names[1 - names.index(view.current)])


def returning() -> SteppedJob:
    """A job that has left spot-a for spot-b, whose provisioner has no capacity."""
    fast = OnInsufficientCapacity.FALLBACK
    tiers = (tier("spot-a", 5), tier("spot-b", 5, on_insufficient_capacity=fast))
    made = SteppedJob(spec(*tiers, recovery_timeout=1), ReturnsAtOnce()).running()
    for _ in range(2):
        made.see(HURT, after=1)
    assert (made.state.tier, [one.number for one in made.state.left]) == ("spot-b", [1])
    return made


def test_no_attempt_starts_on_a_tier_on_which_an_earlier_one_is_being_removed() -> None:
    made = returning()
    decision = made.see(HURT, attempt(2, head(), refused("w2-0")), after=1)
    assert (made.state.stage, made.number) == (Stage.ENDING, 2)
    decision = made.see(HURT, after=1)
    assert (made.state.stage, made.state.attempt) == (Stage.IDLE, None)
    assert decision.wake_at is not None
    assert decision.wake_at <= made.state.left[0].since + HANDOVER_GRACE_PERIOD
    assert made.see(after=1).actions == (Launch(3, "spot-a"),)


def test_such_a_wait_is_limited() -> None:
    made = returning()
    made.see(HURT, attempt(2, head(), refused("w2-0")), after=1)
    made.see(HURT, after=1)
    wait = made.state.left[0].since + HANDOVER_GRACE_PERIOD - made.now
    made.see(HURT, after=wait - 0.1)
    assert made.state.stage is Stage.IDLE
    assert made.see(HURT, after=0.1).actions == (Delete(1, Reason.RECOVERY_TIMEOUT), Launch(3, "spot-a"))


def test_the_reason_of_the_deletion_is_why_the_attempt_ended() -> None:
    """The controller shortens the grace period of the pods unless it is `Preempted`."""
    tiers = (tier("spot-a", 5, queue="home/a"), tier("spot-b", 5, queue="home/b"))
    made = SteppedJob(spec(*tiers), ReturnsAtOnce()).running()
    evicted = QueueSeen("a", eviction=QueueEviction.PREEMPTED)
    made.see(replace(all_ready(1), queue=evicted), after=1)
    assert made.last.actions == (Delete(1, Reason.PREEMPTED), Launch(2, "spot-b"))


def test_an_attempt_that_is_left_and_cannot_be_observed_is_forgotten_and_deleted_when_it_is_observed_again() -> None:
    made = job()
    made.see(HURT, after=1)
    assert made.see(attempt(2), after=1, unavailable={"spot-a": "no answer"}).actions == ()
    assert made.see(HURT, attempt(2), after=1).actions == (Delete(1, Reason.MAX_FAILURES_EXCEEDED),)
