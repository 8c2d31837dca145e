"""Which errors of a worker group end the run, and from which Ray recovers in place."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from spotladder.checkpoints.store import StoreRefused
from spotladder.errors import Fenced, StoreUnavailable
from spotladder.train.interruption import HandedOver, Interrupted, RankLost

ray = pytest.importorskip("ray")

from ray.exceptions import RayActorError  # noqa: E402
from ray.train.v2._internal.exceptions import WorkerHealthCheckFailedError  # noqa: E402
from ray.train.v2._internal.execution.worker_group import WorkerGroupPollStatus  # noqa: E402
from ray.train.v2._internal.execution.worker_group.poll import WorkerStatus  # noqa: E402

from spotladder.train import rayworkers  # noqa: E402
from spotladder.train.rayworkers import UNEXPLAINED_LIMIT, RecoverInPlace, Routing  # noqa: E402

DEAD = WorkerHealthCheckFailedError("rank 1 is dead", RayActorError())


class FakeWorkerGroup:
    """A worker group on the nodes a and b. `hanging` ranks do not answer; `silent` nodes accept no connection but are
    live for Ray."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, elastic: bool = False) -> None:
        self.alive = {"a", "b"}
        self.silent: set[str] = set()
        self.killed: list[str] = []
        self.hanging: dict[int, object] = {}
        lost = SimpleNamespace(lost=lambda nodes: {node["NodeID"] for node in nodes} & self.silent)
        monkeypatch.setattr(rayworkers, "SILENT_NODES", lost)
        monkeypatch.setattr(rayworkers, "NODE_LOSS_WINDOW", 0.0)
        monkeypatch.setattr(ray, "nodes", lambda: [{"NodeID": name, "Alive": name in self.alive} for name in "abc"])
        monkeypatch.setattr(ray, "kill", self.killed.append)
        self.routing = Routing("attempts/0001/ray-1", 0, elastic=elastic)
        self.start()

    def start(self) -> None:
        workers = [SimpleNamespace(metadata=SimpleNamespace(node_id=name), actor=f"on {name}") for name in "ab"]
        self.group = SimpleNamespace(get_workers=lambda: workers, _world_rank_to_ongoing_poll=self.hanging)
        self.routing.after_worker_group_start(self.group)

    def errors(self, *errors: BaseException | None) -> list[BaseException | None]:
        """The errors of the ranks after a poll with these."""
        status = WorkerGroupPollStatus({rank: WorkerStatus(True, error) for rank, error in enumerate(errors)})
        self.routing.after_worker_group_poll_status(status)
        return [status.worker_statuses[rank].error for rank in range(len(errors))]

    def final(self, *errors: BaseException) -> bool:
        """Whether a poll with these errors ends the run."""
        self.errors(*errors)
        budget = RecoverInPlace()
        assert budget.max_failures == budget.max_preemption_failures
        return budget.max_failures == 0


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> FakeWorkerGroup:
    return FakeWorkerGroup(monkeypatch)


def test_a_handover_drains_the_leaving_nodes_and_restarts(
    group: FakeWorkerGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    drained: list[str] = []
    client = SimpleNamespace(drain_node=lambda node, *_: drained.append(node))
    monkeypatch.setattr("ray._private.worker.global_worker", SimpleNamespace(gcs_client=client))
    assert not group.final(HandedOver(7, ("b",)), HandedOver(7, ("b",)))
    assert not group.final(HandedOver(7, ("b",)))
    assert drained == ["b"], "drained twice: Ray polls the same errors again"


def test_a_handover_restarts_even_if_ray_cannot_drain(
    group: FakeWorkerGroup, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ray._private.worker.global_worker", SimpleNamespace())
    assert not group.final(HandedOver(7, ("b",)))
    assert "b is not drained" in caplog.text


@pytest.mark.parametrize(
    ("errors", "alive"),
    [
        pytest.param([HandedOver(7, ("b",)), Interrupted(7)], "ab", id="another rank was interrupted"),
        pytest.param([KeyError("a bug")], "ab", id="a bug of the program"),
        pytest.param([StoreRefused("no rights")], "ab", id="the store refuses the job"),
        pytest.param([Interrupted(7), DEAD], "a", id="interrupted, despite a lost node"),
        pytest.param([Fenced("replaced"), DEAD], "a", id="fenced, despite a lost node"),
    ],
)
def test_these_errors_end_the_run(group: FakeWorkerGroup, errors: list[BaseException], alive: str) -> None:
    group.alive = set(alive)
    assert group.final(*errors)


@pytest.mark.parametrize(
    ("errors", "alive"),
    [
        pytest.param([StoreUnavailable("503"), RankLost("rank 0 is lost")], "ab", id="an outage of the store"),
        pytest.param([DEAD], "b", id="a lost node"),
    ],
)
def test_these_errors_never_end_the_run(group: FakeWorkerGroup, errors: list[BaseException], alive: str) -> None:
    group.alive = set(alive)
    for _ in range(10):
        group.start()
        assert not group.final(*errors)


@pytest.mark.parametrize("error", [DEAD, RankLost("rank 1 is lost")])
def test_unexplained_losses_are_retried_up_to_a_limit(group: FakeWorkerGroup, error: BaseException) -> None:
    answers = []
    for _ in range(UNEXPLAINED_LIMIT + 1):
        group.start()
        answers.append(group.final(error))
    assert answers == [False] * UNEXPLAINED_LIMIT + [True]


def test_repeated_polls_of_the_same_errors_count_once(group: FakeWorkerGroup) -> None:
    assert not any(group.final(DEAD) for _ in range(10))


@pytest.fixture
def elastic(monkeypatch: pytest.MonkeyPatch) -> FakeWorkerGroup:
    return FakeWorkerGroup(monkeypatch, elastic=True)


def test_an_elastic_rank_that_hangs_on_a_silent_node_is_lost_and_never_ends_the_run(elastic: FakeWorkerGroup) -> None:
    elastic.silent.add("b")
    elastic.hanging[1] = "its poll"
    for _ in range(10):
        elastic.start()
        first, second = elastic.errors(None, None)
        assert first is None
        assert isinstance(second, RankLost)
        assert RecoverInPlace().max_failures == -1


@pytest.mark.parametrize(
    ("silent", "hanging"),
    [
        pytest.param(set(), {1: "its poll"}, id="it hangs on a node that answers"),
        pytest.param({"b"}, {}, id="it answers from a silent node"),
    ],
)
def test_an_elastic_rank_is_not_lost(elastic: FakeWorkerGroup, silent: set[str], hanging: dict[int, object]) -> None:
    elastic.silent |= silent
    elastic.hanging |= hanging
    assert elastic.errors(None, None) == [None, None]


def test_the_ranks_of_an_elastic_job_on_silent_nodes_end_before_the_others_are_asked_to(
    elastic: FakeWorkerGroup,
) -> None:
    elastic.silent.add("b")
    elastic.routing.before_worker_group_shutdown(elastic.group)
    assert elastic.killed == ["on b"]
