"""Standby attempts of elastic jobs: which workers they wait for, and with how many they take over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.facts.elastic import BEGIN_DELAY
from spotladder.core.model import (
    AttemptSeen,
    Delete,
    Drain,
    Exit,
    JobSpec,
    Launch,
    OnInsufficientCapacity,
    Overlap,
    PodSeen,
    Progress,
    Resize,
    Stage,
    TakeOver,
    Tier,
)
from spotladder.core.reasons import Reason
from tests.core.builders import START, SteppedJob, attempt, head, noticed, pending, priced, refused, spec, worker
from tests.core.standby import Wish

WORKERS = 4
NODES = [worker(f"s{index}") for index in range(WORKERS)]
MISSING = [pending(f"s{index}") for index in range(WORKERS)]
REFUSED = [refused(f"s{index}") for index in range(WORKERS)]
SPOT = priced("spot", 1.0, 3.0, max_failures=2)
ON_DEMAND = priced("on-demand", 3.0, 3.0, max_failures=-1)


def elastic(cheap: Tier = SPOT, **more: Any) -> JobSpec:
    """A job of four workers that can train with two."""
    chosen = {"workers": WORKERS, "min_workers": 2, "overlap": Overlap(), "stall_timeout": 1e6}
    return spec(cheap, ON_DEMAND, **{**chosen, **more})


def live(*pods: PodSeen, **more: Any) -> AttemptSeen:
    return attempt(1, head(), *(pods or [worker(f"w{index}") for index in range(WORKERS)]), surplus=0, **more)


def standby(*pods: PodSeen, begun: bool = False, **more: Any) -> AttemptSeen:
    """The standby attempt; its program begins only when all requested workers are ready."""
    seen = {"held": False, "surplus": 0, "waits_for_all_workers": not begun}
    return attempt(2, head(), *pods, **{**seen, **more})


def standing_by(made: JobSpec | None = None) -> SteppedJob:
    """A job that trains with four workers on demand, and whose policy returns to spot: a standby attempt has been
    launched."""
    job = SteppedJob(made or elastic(), Wish("on-demand"))
    job.see()
    job.see(attempt(1))
    job.see(live(), after=10)
    assert job.state.stage is Stage.RUNNING
    job.progress = Progress(5, 100, START, 1, stands_by=True)
    job.policy.name = "spot"
    job.see(live(), after=1)
    job.see(live(), after=1)
    assert [type(action) for action in job.last.actions] == [Launch]
    return job


def resized(job: SteppedJob) -> list[int]:
    """The numbers of workers that the newest decision asks for in the standby attempt."""
    return [todo.workers for todo in job.last.actions if isinstance(todo, Resize) and todo.attempt == 2]


def test_a_standby_begins_without_the_workers_that_have_had_no_node_and_takes_over_with_the_others() -> None:
    job = standing_by()
    job.see(live(), standby(*NODES[:2], *MISSING[2:]), after=1)
    assert (resized(job), job.last.wake_at) == ([], job.now + BEGIN_DELAY)
    job.see_again(after=BEGIN_DELAY)
    assert (resized(job), job.state.stage) == ([2], Stage.RUNNING)
    job.see(live(), standby(*NODES[:2], surplus=-2), after=1)
    assert resized(job) == [2], "KubeRay has not submitted the program yet"
    job.see(live(), standby(*NODES[:2], surplus=-2, begun=True), after=1)
    assert resized(job) == [WORKERS]
    boots = standby(*NODES[:2], *MISSING[2:], begun=True)
    job.see(live(), boots, after=1)
    assert (resized(job), job.state.stage) == ([], Stage.RUNNING), "its program is not held yet"
    job.see(live(), replace(boots, held=True), after=10)
    assert (job.state.stage, [type(action) for action in job.last.actions]) == (Stage.DRAINING, [Drain])
    job.see(live(exit=Exit.INTERRUPTED), replace(boots, held=True), after=3)
    assert job.reasons[-4:] == [Reason.DRAINED, Reason.RELIEVED, Reason.MIGRATED_BACK, Reason.ALL_READY]
    assert (job.number, job.state.stage, job.state.message) == (2, Stage.RUNNING, "2 of 4 workers")
    assert job.last.actions == (Delete(1, Reason.POLICY), TakeOver(2))
    job.progress = replace(job.progress, attempt=2, workers=2)
    job.see(replace(boots, held=None, size=2), after=1)
    assert (job.state.stage, job.state.failures, job.last.actions) == (Stage.RUNNING, 0, ())


@pytest.mark.parametrize(
    ("seen", "drains"),
    {
        "too few workers": (standby(*NODES[:1], *MISSING[1:], begun=True, held=True), False),
        "enough workers": (standby(*NODES[:2], *MISSING[2:], begun=True, held=True), True),
        "enough, and a backend that cannot tell": (standby(*NODES[:2], *MISSING[2:], begun=True, held=None), True),
        "the program has not begun": (standby(*NODES[:2], *MISSING[2:], held=None), False),
        "the number of workers cannot be changed": (standby(*NODES[:2], *MISSING[2:], surplus=None, held=None), False),
    }.values(),
    ids=lambda case: "",
)
def test_when_a_standby_is_ready(seen: AttemptSeen, drains: bool) -> None:
    job = standing_by()
    job.see(live(), seen, after=1)
    assert (job.state.stage is Stage.DRAINING) is drains


def test_a_refusal_of_the_provisioner_ends_a_standby_only_below_the_smallest_size() -> None:
    job = standing_by(elastic(replace(SPOT, on_insufficient_capacity=OnInsufficientCapacity.FALLBACK)))
    job.see(live(), standby(*NODES[:2], *REFUSED[2:]), after=1)
    assert (resized(job), job.last.standby_changes) == ([2], ()), "it begins at once"
    job.see(live(), standby(*MISSING[:1], *REFUSED[1:]), after=1)
    assert "no capacity" in job.last.standby_changes[0].message


def test_a_standby_that_does_not_become_ready_with_enough_workers_is_no_sign_of_missing_capacity() -> None:
    job = standing_by()
    job.see(live(), standby(*NODES[:2], *MISSING[2:], begun=True), after=1)
    job.see_again(after=SPOT.provision_timeout + job.spec.start_timeout)
    (change,) = job.last.standby_changes
    assert "not ready within 30m" in change.message
    assert job.state.record("spot").spells == ()


def test_a_standby_that_takes_over_before_it_is_ready_waits_for_its_workers_no_longer_than_others() -> None:
    job = standing_by()
    boots = standby(*NODES[:2], *MISSING[2:])
    job.see(live(), boots, after=1)
    job.see(live(exit=Exit.LOST), boots, after=10)
    job.see(boots, after=1)
    assert (job.number, job.state.stage, resized(job)) == (2, Stage.STARTING, [])
    job.see_again(after=BEGIN_DELAY - 11)
    assert resized(job) == [2], "the time runs from the moment at which enough workers were ready"


def test_the_standby_begins_while_the_live_attempt_is_drained() -> None:
    job = standing_by()
    draining = live(*(noticed(f"w{index}", job.now + 60) for index in range(WORKERS)))
    job.see(draining, standby(*MISSING), after=1)
    job.see_again(after=55)
    assert job.state.stage is Stage.DRAINING
    job.see(draining, standby(*NODES[:2], *REFUSED[2:]), after=1)
    assert (job.state.stage, resized(job)) == (Stage.DRAINING, [2])


def test_a_hedge_takes_over_with_enough_workers() -> None:
    job = SteppedJob(elastic(overlap=Overlap(budget=9.0, hedge_after=60.0)))
    job.see()
    waits = attempt(1, head(), worker("w0"), *MISSING[1:], surplus=0, waits_for_all_workers=True)
    job.see(waits, after=1)
    job.see(waits, after=60)
    job.see(waits, after=0)
    assert [action for action in job.last.actions if isinstance(action, Launch)] == [Launch(2, "on-demand", True)]
    job.see(waits, standby(*NODES[:2], *MISSING[2:]), after=1)
    job.see_again(after=BEGIN_DELAY)
    assert resized(job) == [2]
    job.see(waits, standby(*NODES[:2], *MISSING[2:], begun=True, held=True), after=1)
    assert (Reason.HEDGED in job.reasons, job.number, job.state.stage) == (True, 2, Stage.RUNNING)
    assert (job.state.failures, job.state.record("spot").exhausted_by) == (0, None)
