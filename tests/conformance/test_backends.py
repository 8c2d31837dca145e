"""The contract of AttemptBackend, tested with the fake, the simulator, the operator on a fake API
server in memory, and this machine: with real Ray where Ray takes part, with light nodes elsewhere.

A rig controls the world of its backend; the suite waits only through the rig.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from spotladder.core.history.losses import lost_pods
from spotladder.core.model import (
    AskToCommit,
    Attempt,
    AttemptSeen,
    Delete,
    Drain,
    Exit,
    Finish,
    Launch,
    PodPhase,
    PodRole,
    Replace,
    Resize,
    TakeOver,
)
from spotladder.core.reasons import Cause, Reason
from spotladder.sim.trace import Trace
from tests.conformance.jobset import JobSetRig
from tests.conformance.kubernetes import KubernetesRig
from tests.conformance.rigs import WORKERS, FakeRig, LocalRig, SimRig, all_ready, ready_workers
from tests.core.fake_backend import FakeBackend

Rig = FakeRig | LocalRig | SimRig | KubernetesRig


@pytest.fixture(scope="module")
def real_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRig]:
    """One Ray head for the whole module; each test deletes its attempts and uses new numbers."""
    rig = LocalRig(tmp_path_factory.mktemp("conforms"))
    yield rig
    rig.close()


REPLACING = ("fake", "sim", "kubernetes")
"""The rigs whose attempts can replace one pod. A JobSet cannot."""

RAY = pytest.param("ray", marks=pytest.mark.ray)


@pytest.fixture(params=[*REPLACING, "jobset", "local"])
def rig(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    if request.param in ("fake", "sim"):
        yield FakeRig() if request.param == "fake" else SimRig()
        return
    if request.param in ("kubernetes", "jobset"):
        kubernetes = KubernetesRig() if request.param == "kubernetes" else JobSetRig()
        yield kubernetes
        kubernetes.close()
        return
    if request.param == "local":
        light = LocalRig(tmp_path)
        light.without_ray(monkeypatch)
        yield light
        light.close()
        return
    local: LocalRig = request.getfixturevalue("real_ray")
    yield local
    for seen in local.backend.observe().attempts:
        local.backend.delete(Delete(seen.number, Reason.TIER_REMOVED))


_numbers = itertools.count(1)
_lock = threading.Lock()


@pytest.fixture
def number(rig: Rig) -> int:
    """An attempt number that has not been used on this rig."""
    with _lock:
        return next(_numbers) if isinstance(rig, LocalRig) else 1


def seen_of(rig: Rig, number: int) -> AttemptSeen:
    """The attempt now, which exists."""
    found = rig.backend.observe().attempt(number)
    assert found is not None
    return found


def ended(rig: Rig, number: int) -> AttemptSeen:
    """The attempt, once its program has ended."""
    found = rig.until(lambda seen: (now := seen.attempt(number)) is not None and now.exit is not None).attempt(number)
    assert found is not None
    return found


def workers_of(seen: AttemptSeen) -> list[str]:
    return [pod.uid for pod in seen.pods if pod.role is PodRole.WORKER and pod.phase is not PodPhase.LOST]


def test_a_launched_attempt_is_in_the_next_observation(rig: Rig, number: int) -> None:
    assert rig.backend.observe().attempt(number) is None
    rig.backend.launch(Launch(number, "spot-a"))
    seen = seen_of(rig, number)
    assert seen.exit is None
    assert len(workers_of(seen)) == WORKERS


def test_letting_an_attempt_take_over_is_idempotent_and_no_request_to_stop(rig: Rig, number: int) -> None:
    rig.backend.take_over(TakeOver(number))
    rig.backend.launch(Launch(number, "spot-a", standby=True))
    rig.bring_up(number)
    for _ in range(2):
        rig.backend.take_over(TakeOver(number))
    assert seen_of(rig, number).exit is None


def test_a_request_to_commit_is_idempotent_and_no_request_to_stop(rig: Rig, number: int) -> None:
    rig.backend.ask_to_commit(AskToCommit(number, (), Reason.EVICTION_NOTICE, time.time()))
    rig.backend.launch(Launch(number, "spot-a"))
    pods = tuple(pod.uid for pod in rig.bring_up(number).pods)
    for asked_at in (1.0, 1.0, 2.0):
        rig.backend.ask_to_commit(AskToCommit(number, pods, Reason.EVICTION_NOTICE, asked_at))
    seen = rig.backend.observe()
    assert [attempt.exit for attempt in seen.attempts] == [None]
    assert all_ready(seen, number)
    rig.backend.drain(Drain(number, time.time() + 30, Reason.EVICTION_NOTICE))
    if isinstance(rig, FakeRig):
        rig.let_program_end(number)
    assert ended(rig, number).exit is Exit.INTERRUPTED, "a later drain ends it as usual"


@pytest.mark.parametrize("first", [True, False], ids=["the live attempt", "its hedge"])
def test_two_attempts_share_no_pods_and_either_can_be_deleted(rig: Rig, number: int, first: bool) -> None:
    hedge = next(_numbers) if isinstance(rig, LocalRig) else number + 1
    rig.backend.launch(Launch(number, "spot-a"))
    rig.backend.launch(Launch(hedge, "spot-b", standby=True))
    if not isinstance(rig, JobSetRig):  # Its pods are places of their own set.
        assert not set(workers_of(seen_of(rig, number))) & set(workers_of(seen_of(rig, hedge)))
    given_back, kept = (number, hedge) if first else (hedge, number)
    rig.backend.delete(Delete(given_back, Reason.HEDGED))
    rig.until(lambda seen: seen.attempt(given_back) is None)
    rig.bring_up(kept)
    rig.backend.take_over(TakeOver(kept))
    seen = rig.backend.observe()
    assert [(attempt.number, attempt.exit) for attempt in seen.attempts] == [(kept, None)]
    assert all_ready(seen, kept)


def test_the_next_attempt_starts_while_the_ended_one_is_removed(rig: Rig, number: int) -> None:
    """Every call is made twice, as after a crash."""
    following = next(_numbers) if isinstance(rig, LocalRig) else number + 1
    rig.backend.launch(Launch(number, "spot-a"))
    rig.bring_up(number)
    for _ in range(2):
        rig.backend.delete(Delete(number, Reason.MAX_FAILURES_EXCEEDED))
        rig.backend.launch(Launch(following, "spot-b"))
    assert rig.backend.observe().attempt(following) is not None
    rig.until(lambda seen: seen.attempt(number) is None)
    rig.bring_up(following)
    seen = rig.backend.observe()
    assert [(attempt.number, attempt.exit) for attempt in seen.attempts] == [(following, None)]
    assert all_ready(seen, following)


def test_launching_twice_creates_one_attempt(rig: Rig, number: int) -> None:
    rig.backend.launch(Launch(number, "spot-a"))
    before = seen_of(rig, number)
    rig.backend.launch(Launch(number, "spot-a"))
    assert workers_of(seen_of(rig, number)) == workers_of(before)


def test_revisions_never_decrease(rig: Rig, number: int) -> None:
    revisions = [rig.backend.observe().revision]
    rig.backend.launch(Launch(number, "spot-a"))
    revisions.append(rig.backend.observe().revision)
    rig.backend.delete(Delete(number, Reason.POLICY))
    revisions.append(rig.backend.observe().revision)
    assert revisions == sorted(revisions)


def test_draining_and_deleting_a_missing_attempt_has_no_effect(rig: Rig, number: int) -> None:
    rig.backend.drain(Drain(number, time.time(), Reason.POLICY))
    rig.backend.delete(Delete(number, Reason.POLICY))
    assert rig.backend.observe().attempt(number) is None


def test_a_deleted_attempt_disappears_permanently(rig: Rig, number: int) -> None:
    rig.backend.launch(Launch(number, "spot-a"))
    rig.backend.observe()
    rig.backend.delete(Delete(number, Reason.POLICY))
    rig.until(lambda seen: seen.attempt(number) is None)
    rig.backend.delete(Delete(number, Reason.POLICY))
    assert rig.backend.observe().attempt(number) is None


@pytest.mark.parametrize("rig", [*REPLACING, "jobset", "local", RAY], indirect=True)
def test_a_lost_worker_is_replaced_and_a_drain_interrupts_the_program(rig: Rig, number: int) -> None:
    rig.backend.launch(Launch(number, "spot-a"))
    seen = rig.bring_up(number)
    assert all(pod.placed and not pod.silent and pod.exit_code is None for pod in seen.pods)
    assert (seen.blocked, seen.operator_silent, seen.store_unavailable_since) == ("", "", None)

    lost = workers_of(seen)[0]
    rig.kill_worker(lost)
    again = rig.until(lambda seen: all_ready(seen, number)).attempt(number)
    assert again is not None
    (gone,) = [pod for pod in again.pods if pod.phase is PodPhase.LOST]
    assert gone.cause is Cause.NODE_LOST
    assert again.exit is None
    assert len(workers_of(again)) == WORKERS
    assert gone.uid not in workers_of(again)
    assert isinstance(rig, JobSetRig) or gone.uid == lost, "a JobSet keeps its places"

    drain = Drain(number, time.time() + 30, Reason.SUSPEND_REQUESTED)
    rig.backend.drain(drain)
    rig.backend.drain(drain)
    if isinstance(rig, FakeRig):
        rig.let_program_end(number)
    assert ended(rig, number).exit is Exit.INTERRUPTED


@pytest.mark.parametrize("rig", [*REPLACING, RAY], indirect=True)
def test_a_pod_is_replaced_before_it_is_removed(rig: Rig, number: int) -> None:
    """Every call is made twice, as after a crash."""
    rig.backend.launch(Launch(number, "spot-a"))
    seen = rig.bring_up(number)
    assert seen.surplus == 0
    going, deadline = workers_of(seen)[0], time.time() + 30

    def replace(*, hand_over: bool, remove: bool) -> AttemptSeen:
        for _ in range(2):
            rig.backend.replace(Replace(number, (going,), hand_over, remove, deadline))
        return seen_of(rig, number)

    more = replace(hand_over=False, remove=False)
    assert (more.surplus, len(workers_of(more))) == (1, WORKERS + 1)
    rig.bring_up(number)
    handed_over = replace(hand_over=True, remove=False)
    assert going in workers_of(handed_over), "the pod receives the notice while it runs"
    replace(hand_over=True, remove=True)
    left = rig.until(lambda seen: (found := seen.attempt(number)) is not None and found.surplus == 0).attempt(number)
    assert left is not None
    assert left.exit is None
    assert going not in workers_of(left)
    assert all(pod.ready for pod in left.pods if pod.phase is PodPhase.RUNNING)
    assert all_ready(rig.until(lambda seen: all_ready(seen, number)), number)


@pytest.fixture(params=["fake", "sim", "kubernetes"])
def scarce(request: pytest.FixtureRequest) -> Iterator[FakeRig | SimRig | KubernetesRig]:
    """An elastic job of two workers, for which only one node comes at first. On this machine a program begins as soon
    as enough nodes are up, so the number of workers is never changed there."""
    if request.param == "fake":
        yield FakeRig(FakeBackend(WORKERS, begins_with_all_workers=True))
    elif request.param == "sim":
        yield SimRig((1, WORKERS), Trace("spot-a", np.array([0.0, 600.0]), np.array([1, WORKERS]), 10**6))
    else:
        kubernetes = KubernetesRig()
        yield kubernetes
        kubernetes.close()


@pytest.mark.parametrize("standby", [False, True], ids=["live", "standby"])
def test_a_program_begins_with_fewer_workers_and_all_are_asked_for_again(
    scarce: FakeRig | SimRig | KubernetesRig, standby: bool
) -> None:
    """Every call is made twice, as after a crash."""

    def resize(workers: int) -> AttemptSeen:
        for _ in range(2):
            scarce.backend.resize(Resize(1, workers))
        return seen_of(scarce, 1)

    scarce.backend.launch(Launch(1, "spot-a", standby=standby))
    waits = scarce.bring_up(1, 1)
    assert (waits.waits_for_all_workers, waits.surplus, len(workers_of(waits))) == (True, 0, WORKERS)
    small = resize(1)
    assert (small.surplus, small.exit, len(workers_of(small))) == (1 - WORKERS, None, 1)
    assert not small.waits_for_all_workers, "it begins when all requested workers are ready"
    all_workers = resize(WORKERS)
    assert (all_workers.surplus, all_workers.waits_for_all_workers, len(workers_of(all_workers))) == (0, False, WORKERS)
    again = scarce.bring_up(1, WORKERS if isinstance(scarce, SimRig) else 1)
    assert ready_workers(scarce.backend.observe(), 1) == WORKERS
    assert again.exit is None
    scarce.backend.take_over(TakeOver(1))
    found = seen_of(scarce, 1)
    assert (found.exit, found.waits_for_all_workers) == (None, False)
    assert not (standby and isinstance(scarce, SimRig)) or found.size == 1, "the size with which it was held"


def test_a_crash_of_the_program_is_an_exit_and_no_loss(rig: Rig, number: int) -> None:
    """A crash of the program is an exit, not a loss: it must not count against the tier."""
    rig.backend.launch(Launch(number, "spot-a"))
    rig.bring_up(number)
    rig.let_program_crash(number)
    found = ended(rig, number)
    assert (found.exit, "3" in found.message) == (Exit.FAILED, True)
    assert lost_pods(Attempt(number, "spot-a", 0.0), found) == []


@pytest.mark.parametrize("rig", ["kubernetes", "jobset"], indirect=True)
def test_no_pod_of_an_attempt_can_use_a_node_that_it_avoids(rig: KubernetesRig) -> None:
    rig.backend.launch(Launch(1, "spot-a", avoids=("n1", "n2")))
    rig.backend.launch(Launch(2, "spot-a"))
    assert [rig.allows(1, node) for node in ("n1", "n2", "n3")] == [False, False, True]
    assert rig.allows(2, "n1")


def test_a_successful_exit_is_observed_and_finish_deletes_all_attempts(rig: Rig, number: int) -> None:
    rig.backend.launch(Launch(number, "spot-a"))
    rig.bring_up(number)
    rig.let_program_end(number)
    found = ended(rig, number)
    assert found.exit is Exit.SUCCEEDED
    rig.backend.finish(Finish(succeeded=True, reason=Reason.COMPLETED))
    rig.backend.finish(Finish(succeeded=True, reason=Reason.COMPLETED))
    assert rig.until(lambda seen: not seen.attempts).attempts == ()
