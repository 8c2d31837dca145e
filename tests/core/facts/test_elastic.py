"""Elastic attempts: when they are ready, continue with fewer workers, and end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.changes.replacing import COMMIT_RESERVE
from spotladder.core.facts.elastic import BEGIN_DELAY
from spotladder.core.model import AttemptSeen, Drain, OnInsufficientCapacity, PodSeen, Progress, Replace, Resize, Stage
from spotladder.core.reasons import Cause, Reason
from spotladder.core.situation import REMOVAL_DELAY
from tests.core.builders import START, SteppedJob, attempt, head, lost, noticed, pending, refused, spec, tier, worker

PROVISION = 600.0


def job(max_failures: int = 3, *, least: int | None = 2, **more: Any) -> SteppedJob:
    """A job of four workers that can train with two."""
    tiers = tier("spot-a", max_failures, PROVISION), tier("on-demand", -1)
    return SteppedJob(spec(*tiers, workers=4, min_workers=least, **more))


def seen(*pods: PodSeen, size: int | None = None, moved_at: float | None = None, **more: Any) -> AttemptSeen:
    return attempt(1, head(), *pods, size=size, moved_at=moved_at, **more)


def workers(*names: str) -> list[PodSeen]:
    return [worker(name) for name in names]


def running(made: SteppedJob) -> SteppedJob:
    """Bring the job to an attempt that trains with four workers."""
    made.see()
    made.see(attempt(1))
    made.see(seen(*workers("a", "b", "c", "d"), size=4), after=10)
    made.progress = Progress(5, 100, START, 1)
    assert made.state.stage is Stage.RUNNING
    return made


@pytest.mark.parametrize(
    ("least", "ready", "stage"),
    [
        (2, 1, Stage.STARTING),
        (2, 2, Stage.RUNNING),
        (2, 4, Stage.RUNNING),
        (None, 3, Stage.STARTING),
        (None, 4, Stage.RUNNING),
    ],
)
def test_an_attempt_is_ready_with_the_smallest_size(least: int | None, ready: int, stage: Stage) -> None:
    made = job(least=least)
    made.see()
    pods = [worker(f"w{index}") if index < ready else pending(f"w{index}") for index in range(4)]
    made.see(seen(*pods), after=1)
    assert made.state.stage is stage


@pytest.mark.parametrize(("ready", "leaves"), [(1, True), (2, False), (3, False)])
def test_provision_timeout_runs_only_below_the_smallest_size(ready: int, leaves: bool) -> None:
    made = running(job())
    names = "abcd"
    pods = [worker(name) if index < ready else pending(f"{name}2") for index, name in enumerate(names)]
    made.see(seen(*pods, size=4), after=1)
    assert made.state.stage is Stage.RECOVERING
    made.see(seen(*pods, size=min(4, ready)), after=2)
    made.see_again(after=PROVISION)
    assert (Reason.INSUFFICIENT_CAPACITY in made.reasons) is leaves
    assert (made.state.record("spot-a").exhausted_by is Reason.INSUFFICIENT_CAPACITY) is leaves


def test_a_loss_is_counted_and_the_attempt_recovers_with_fewer_workers() -> None:
    made = running(job())
    made.see(seen(*workers("a", "b", "c"), lost("d"), pending("e"), size=4, moved_at=made.now), after=1)
    assert (made.state.stage, made.state.failures) == (Stage.RECOVERING, 1)
    assert made.state.message == "d (Interruption); the program continues with up to 3 of 4 workers"
    made.see(seen(*workers("a", "b", "c"), pending("e"), size=4, moved_at=made.now + 1), after=2)
    assert made.state.stage is Stage.RECOVERING, "a late heartbeat of the larger group is no progress"
    made.see(seen(*workers("a", "b", "c"), pending("e"), size=3, moved_at=made.now), after=10)
    assert (made.state.stage, made.number, made.state.failures) == (Stage.RUNNING, 1, 1)
    assert made.state.message == "3 of 4 workers"
    made.see(seen(*workers("a", "b", "c", "e"), size=3, moved_at=made.now), after=60)
    made.see(seen(*workers("a", "b", "c", "e"), size=4, moved_at=made.now), after=10)
    assert made.reasons == [Reason.STARTED, Reason.ALL_READY, Reason.RECOVERING, Reason.ALL_READY]


def test_a_program_that_does_not_restart_with_fewer_workers_gets_a_new_attempt() -> None:
    made = running(job(recovery_timeout=90.0))
    for seconds in (1, 89, 2):
        made.see(seen(*workers("a", "b", "c"), pending("e"), size=4), after=seconds)
    assert made.reasons[-1] is Reason.RECOVERY_TIMEOUT
    assert made.state.failures == 1


def test_the_failure_beyond_max_failures_ends_the_attempt_although_enough_workers_are_left() -> None:
    made = running(job(max_failures=0))
    made.see(seen(*workers("a", "b", "c"), lost("d"), pending("e"), size=4), after=1)
    assert made.end_reason is Reason.MAX_FAILURES_EXCEEDED


def test_a_notice_that_leaves_enough_workers_does_not_end_the_attempt() -> None:
    made = running(job())
    ends = made.now + 60
    decision = made.see(seen(*workers("a", "b", "c"), noticed("d", ends), size=4), after=1)
    assert (made.state.stage, made.state.failures, decision.actions) == (Stage.RECOVERING, 1, ())
    made.see(seen(*workers("a", "b", "c"), noticed("d", ends), size=3), after=10)
    assert made.state.stage is Stage.RUNNING
    made.see(seen(*workers("a", "b", "c"), lost("d"), pending("e"), size=3), after=60)
    assert (made.state.stage, made.state.failures) == (Stage.RUNNING, 1), "counted at the notice"


@pytest.mark.parametrize(
    ("max_failures", "going", "ends"),
    [(9, "d", False), (9, "cd", False), (9, "bcd", True), (0, "d", True)],
)
def test_a_notice_below_the_smallest_size_or_beyond_max_failures_drains_the_attempt(
    max_failures: int, going: str, ends: bool
) -> None:
    made = running(job(max_failures))
    pods = [noticed(name, made.now + 60) if name in going else worker(name) for name in "abcd"]
    decision = made.see(seen(*pods, size=4), after=1)
    assert (made.state.stage is Stage.DRAINING) is ends
    assert any(isinstance(action, Drain) for action in decision.actions) is ends


@pytest.mark.parametrize(("ready", "stage"), [(2, Stage.STARTING), (3, Stage.STARTING), (4, Stage.RUNNING)])
def test_a_program_that_begins_with_all_workers_needs_them_until_it_has_begun(ready: int, stage: Stage) -> None:
    made = job()
    made.see()
    pods = [worker(f"w{index}") if index < ready else pending(f"w{index}") for index in range(4)]
    made.see(seen(*pods, waits_for_all_workers=True), after=1)
    assert made.state.stage is stage
    if stage is Stage.RUNNING:
        made.see(seen(*workers("w0", "w1"), size=2), after=1)
        assert made.state.stage is Stage.RUNNING
    else:
        made.see_again(after=PROVISION)
        assert Reason.INSUFFICIENT_CAPACITY in made.reasons


def starting(*pods: PodSeen, surplus: int | None = 0, **more: Any) -> AttemptSeen:
    """An attempt whose program begins only when all requested workers are ready."""
    return seen(*pods, waits_for_all_workers=True, surplus=surplus, **more)


def resized(made: SteppedJob) -> list[int]:
    """The numbers of workers that the newest decision asks for."""
    return [todo.workers for todo in made.last.actions if isinstance(todo, Resize)]


def waiting_for_two(made: SteppedJob, *missing: PodSeen) -> SteppedJob:
    """An attempt of four workers of which two are ready and two have no node."""
    made.see()
    made.see(starting(*workers("a", "b"), *(missing or (pending("c"), pending("d")))), after=10)
    return made


def test_a_program_begins_without_the_workers_that_have_had_no_node_for_a_while() -> None:
    made = waiting_for_two(job())
    assert (made.state.stage, resized(made)) == (Stage.STARTING, [])
    assert made.last.wake_at == made.now + BEGIN_DELAY
    explained = made.explanation
    assert (explained.timer, explained.until) == ("elastic.min", made.now + BEGIN_DELAY)
    made.see_again(after=BEGIN_DELAY)
    assert (made.state.stage, resized(made)) == (Stage.STARTING, [2])
    made.see(starting(*workers("a", "b"), surplus=-2), after=2)
    assert made.state.stage is Stage.STARTING, "KubeRay has not submitted the program yet"
    made.see(seen(*workers("a", "b"), surplus=-2), after=2)
    assert (made.state.stage, made.state.message, resized(made)) == (Stage.RUNNING, "2 of 4 workers", [4])
    made.see(seen(*workers("a", "b"), pending("e"), pending("f"), surplus=0, size=2), after=2)
    assert (resized(made), made.state.failures, made.state.stage) == ([], 0, Stage.RUNNING)


@pytest.mark.parametrize(
    ("pods", "capacity"),
    [
        ((pending("a"), pending("b"), pending("c"), refused("d")), []),
        ((pending("a"), pending("b"), refused("c"), refused("d")), []),
        ((pending("a"), refused("b"), refused("c"), refused("d")), [False]),
        ((*workers("a", "b"), pending("c"), refused("d")), [True]),
        ((*workers("a"), refused("b"), refused("c"), refused("d")), [False]),
    ],
    ids=["3 may come", "2 may come", "1 may come", "2 are ready", "1 is ready"],
)
def test_a_tier_has_no_capacity_when_too_few_workers_for_the_smallest_size_may_come(
    pods: tuple[PodSeen, ...], capacity: list[bool]
) -> None:
    made = job()
    made.see()
    made.see(starting(*pods), after=1)
    assert [spell.available for spell in made.state.record("spot-a").spells] == capacity


def test_a_refusal_ends_an_attempt_only_below_the_smallest_size() -> None:
    impatient = tier("spot-a", 3, PROVISION, on_insufficient_capacity=OnInsufficientCapacity.FALLBACK)
    made = SteppedJob(spec(impatient, tier("on-demand", -1), workers=4, min_workers=2))
    made.see()
    made.see(starting(pending("a"), pending("b"), refused("c"), refused("d")), after=1)
    assert made.state.stage is Stage.STARTING
    made.see(starting(pending("a"), refused("b"), refused("c"), refused("d")), after=1)
    assert made.state.tier == "on-demand"


def test_a_program_waits_for_workers_that_have_a_node() -> None:
    made = waiting_for_two(job())
    placed = replace(pending("c", unschedulable=False), scheduled=True)
    made.see(starting(*workers("a", "b"), placed, pending("d")), after=BEGIN_DELAY)
    assert resized(made) == []
    made.see(starting(*workers("a", "b", "c"), pending("d")), after=1)
    assert resized(made) == [3], "the time runs from the moment at which enough workers were ready"


def test_provision_timeout_does_not_run_while_enough_workers_are_ready_to_begin() -> None:
    made = SteppedJob(spec(tier("spot-a", 3, 20.0), tier("on-demand", -1), workers=4, min_workers=2))
    waiting_for_two(made)
    for _ in range(5):
        made.see_again(after=10)
    assert made.number == 1
    made.see(starting(*workers("a"), pending("b2"), pending("c"), pending("d")), after=1)
    for _ in range(5):
        made.see_again(after=10)
    assert Reason.INSUFFICIENT_CAPACITY in made.reasons


def on_a_cluster(made: SteppedJob, **more: Any) -> SteppedJob:
    """The job on a backend that replaces pods and asks the program to continue without them."""
    running(made)
    made.progress = replace(made.progress, **{"hands_over": True, **more})
    return made


def asked(made: SteppedJob) -> list[tuple[tuple[str, ...], bool, bool]]:
    return [(todo.pods, todo.hand_over, todo.remove) for todo in made.last.actions if isinstance(todo, Replace)]


def test_a_program_that_does_not_see_notices_is_asked_to_continue_without_the_noticed_pod() -> None:
    made = on_a_cluster(job())
    rest, going = workers("a", "b", "c"), noticed("d", made.now + 60)
    made.see(seen(*rest, going, size=4, surplus=0), surge_room=0, after=1)
    made.see_again(after=0)
    assert (made.state.stage, made.state.failures) == (Stage.REPLACING, 1)
    assert asked(made) == [(("d",), True, False)]
    made.see_again(after=REMOVAL_DELAY)
    assert asked(made) == [(("d",), True, True)]
    made.see(seen(*rest, pending("e"), size=3, surplus=0), after=5)
    assert (made.state.stage, made.state.failures, made.number) == (Stage.RUNNING, 1, 1)
    assert made.moves[-1].message == "3 of 4 workers are ready without 1 noticed pod"


def test_without_capacity_for_a_replacement_the_program_continues_with_fewer_workers() -> None:
    made = on_a_cluster(SteppedJob(spec(tier("spot-a", 3), tier("on-demand", -1), workers=4, min_workers=2)))
    pods = [*workers("a", "b", "c"), noticed("d", made.now + 60)]
    made.see(seen(*pods, size=4, surplus=0), after=1)
    assert asked(made) == [(("d",), False, False)]
    made.see(seen(*pods, pending("e"), size=4, surplus=1), after=60 - COMMIT_RESERVE)
    made.see_again(after=0)
    assert made.state.stage is Stage.REPLACING
    assert asked(made) == [(("d",), True, False)]


@pytest.mark.parametrize(
    ("going", "more"),
    [("bcd", {}), ("d", {"hands_over": False}), ("d", {"attempt": 0})],
    ids=["too few are left", "the program cannot hand over", "the program has not begun"],
)
def test_a_program_that_cannot_be_asked_to_continue_is_drained(going: str, more: dict[str, object]) -> None:
    made = on_a_cluster(job(9), **more)
    pods = [noticed(name, made.now + 60) if name in going else worker(name) for name in "abcd"]
    decision = made.see(seen(*pods, size=4, surplus=0), surge_room=0, after=1)
    assert made.state.stage is Stage.DRAINING
    assert any(isinstance(action, Drain) for action in decision.actions or made.see_again(after=0).actions)


def test_a_second_notice_while_the_program_hands_over_asks_it_to_continue_without_both() -> None:
    made = on_a_cluster(job())
    made.see(seen(*workers("a", "b", "c"), noticed("d"), size=4, surplus=0), surge_room=0, after=1)
    made.see(seen(*workers("a", "b"), noticed("c"), noticed("d"), size=4, surplus=0), surge_room=0, after=1)
    made.see_again(after=0)
    assert (made.state.stage, made.state.failures) == (Stage.REPLACING, 2)
    assert asked(made) == [(("d", "c"), True, False)]


def test_a_program_that_does_not_hand_over_is_drained_after_the_grace() -> None:
    made = on_a_cluster(job(grace=20.0))
    pods = [*workers("a", "b", "c"), noticed("d", made.now + 99)]
    for seconds in (1.0, 0.0, 21.0):
        made.see(seen(*pods, size=4, surplus=0), surge_room=0, after=seconds)
    assert (made.state.stage, made.reasons[-1]) == (Stage.DRAINING, Reason.EVICTION_NOTICE)


def test_each_size_is_paid_for_its_nodes() -> None:
    made = running(job())
    before = made.state.node_seconds
    made.see(seen(*workers("a", "b", "c"), lost("d", Cause.NODE_LOST), size=4), after=0)
    made.see(seen(*workers("a", "b", "c"), size=3), after=100)
    assert made.state.node_seconds - before == pytest.approx(300)
