"""Which errors of a worker group end the run, and which Ray recovers from in place."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from spotladder.checkpoints.store import StoreRefused
from spotladder.errors import Fenced, StoreUnavailable
from spotladder.train.interruption import HandedOver, Interrupted, RankLost

ray = pytest.importorskip("ray")

from ray.exceptions import RayActorError  # noqa: E402
from ray.train.v2._internal.exceptions import WorkerHealthCheckFailedError  # noqa: E402

from spotladder.train import rayworkers  # noqa: E402
from spotladder.train.rayworkers import UNEXPLAINED_LIMIT, RecoverInPlace, Routing  # noqa: E402

RECLAIMED = WorkerHealthCheckFailedError("rank 1 is dead", RayActorError(preempted=True))
DEAD = WorkerHealthCheckFailedError("rank 1 is dead", RayActorError())


class Group:
    """A worker group on the nodes a and b, and what Ray says of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.alive = {"a", "b"}
        monkeypatch.setattr(rayworkers, "NODE_LOSS_WINDOW", 0.0)
        monkeypatch.setattr(
            rayworkers.ray, "nodes", lambda: [{"NodeID": name, "Alive": name in self.alive} for name in ("a", "b", "c")]
        )
        self.routing = Routing("attempts/0001/ray-1", 0)
        self.start()

    def start(self) -> None:
        workers = [SimpleNamespace(metadata=SimpleNamespace(node_id=name)) for name in ("a", "b")]
        self.routing.after_worker_group_start(SimpleNamespace(get_workers=lambda: workers))

    def final(self, *errors: BaseException) -> bool:
        self.routing.after_worker_group_poll_status(SimpleNamespace(errors=dict(enumerate(errors))))
        budget = RecoverInPlace()
        assert budget.max_failures == budget.max_preemption_failures
        return budget.max_failures == 0


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Group:
    return Group(monkeypatch)


def test_a_handover_starts_again_without_the_nodes_that_go(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    drained: list[str] = []
    client = SimpleNamespace(drain_node=lambda node, *_: drained.append(node))
    monkeypatch.setattr("ray._private.worker.global_worker", SimpleNamespace(gcs_client=client))
    assert not group.final(HandedOver(7, ("b",)), HandedOver(7, ("b",)))
    assert not group.final(HandedOver(7, ("b",)))
    assert drained == ["b"], "once: Ray asks about the same errors again"


def test_a_handover_without_ray_s_help_starts_again_all_the_same(
    group: Group, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ray._private.worker.global_worker", SimpleNamespace())
    assert not group.final(HandedOver(7, ("b",)))
    assert "b is not drained" in caplog.text


def test_an_interruption_of_another_rank_ends_the_run(group: Group) -> None:
    assert group.final(HandedOver(7, ("b",)), Interrupted(7))


def test_a_bug_of_the_program_ends_the_run(group: Group) -> None:
    assert group.final(KeyError("a bug"))


def test_an_error_beside_a_lost_node_does_not(group: Group) -> None:
    group.alive.discard("b")
    assert not group.final(RuntimeError("connection reset by peer"), DEAD)
    assert not group.final(RuntimeError("connection reset by peer"))


@pytest.mark.parametrize("error", [Interrupted(7), Fenced("replaced")])
def test_an_interruption_ends_the_run_whatever_else_was_lost(group: Group, error: BaseException) -> None:
    group.alive.discard("b")
    assert group.final(error, DEAD)


@pytest.mark.parametrize("error", [DEAD, RankLost("rank 1 is lost")])
def test_what_may_pass_is_tried_again_a_few_times(group: Group, error: BaseException) -> None:
    answers = []
    for _ in range(UNEXPLAINED_LIMIT + 1):
        group.start()
        answers.append(group.final(error))
    assert answers == [False] * UNEXPLAINED_LIMIT + [True]


def test_the_same_errors_seen_again_count_once(group: Group) -> None:
    assert not any(group.final(DEAD) for _ in range(10))


def test_a_store_that_is_away_never_ends_the_run(group: Group) -> None:
    for _ in range(10):
        group.start()
        assert not group.final(StoreUnavailable("503"), RankLost("rank 0 is lost"))


def test_a_bucket_that_refuses_will_refuse_again(group: Group) -> None:
    assert group.final(StoreRefused("no rights"))


def test_a_reclaimed_worker_is_no_fault_of_its_own(group: Group) -> None:
    for _ in range(10):
        group.start()
        assert not group.final(RECLAIMED)


def test_lost_nodes_are_not_counted(group: Group) -> None:
    group.alive.discard("a")
    for _ in range(10):
        group.start()
        assert not group.final(DEAD)
