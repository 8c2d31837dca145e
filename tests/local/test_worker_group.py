"""The workers of an attempt, with fake nodes and a stepped clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from spotladder.core.model import Launch, PodPhase, PodSeen
from spotladder.core.reasons import Cause
from spotladder.errors import EnvironmentFailure
from spotladder.local.pools import PoolClock, PoolPlan, Window
from spotladder.local.worker_group import WorkerGroup
from spotladder.records.model import NodeChange, NodeChanged, Record
from tests.local.rig import BEGAN, FakeNode


@dataclass
class Bench:
    """A fleet, its pool, and the nodes that it started."""

    pool: PoolClock
    size: int = 2
    head_is_up: bool = True
    nodes: dict[str, FakeNode] = field(default_factory=dict)
    emitted: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        start: Any = self._start
        self.fleet = WorkerGroup(Launch(1, "spot-a"), self.size, self.pool, start, self.emitted.append)

    def _start(self, name: str) -> FakeNode | None:
        return self.nodes.setdefault(name, FakeNode(name)) if self.head_is_up else None

    def at(self, seconds: float, *, replace: bool = True, step: int = 0, starting: bool = False) -> list[PodSeen]:
        self.fleet.advance(BEGAN + seconds, replace=replace, step=step, starting=starting)
        return list(self.fleet.seen())

    def up(self) -> None:
        for node in self.nodes.values():
            node.up = True

    def changes(self, node: str) -> list[NodeChange]:
        return [record.change for record in self.emitted if isinstance(record, NodeChanged) and record.node == node]


def bench(size: int = 2, *, head_is_up: bool = True, **plan: object) -> Bench:
    fitted = {"nodes": size, **plan}
    return Bench(PoolClock(PoolPlan("a", **fitted), BEGAN, BEGAN), size, head_is_up)  # type: ignore[arg-type]


def phases(pods: list[PodSeen]) -> list[PodPhase]:
    return [pod.phase for pod in pods]


def test_a_pool_of_zero_nodes_is_named_as_the_cause_of_the_wait() -> None:
    """A regression test: a job on its last tier with such a pool waited without a message."""
    causes = {pod.waiting_message for pod in bench(nodes=0).at(60)}
    assert causes == {'the pool "a" has 0 nodes: set pools.a.nodes in the world file'}
    assert {pod.waiting_message for pod in bench(size=2, nodes=1).at(60)} == {""}, "a pool with nodes may get more"


def test_nodes_start_after_the_provision_delay_and_are_ready_with_ray() -> None:
    rig = bench(provision_delay=3.0)
    rig.at(0)
    assert not rig.nodes
    rig.at(2.9)
    assert not rig.nodes
    rig.at(3)
    assert len(rig.nodes) == 2
    assert phases(rig.at(4)) == [PodPhase.PENDING] * 2
    rig.up()
    assert phases(rig.at(5)) == [PodPhase.RUNNING] * 2
    assert rig.fleet.can_start(None)
    assert rig.changes("a1-w1") == [NodeChange.ASKED, NodeChange.UP]


def test_a_node_is_taken_at_a_step_only_after_a_step_with_all_nodes() -> None:
    rig = bench(nodes=3, notice=60.0, taken_at_steps=(10, 20))
    rig.at(0)
    rig.up()
    rig.at(1)
    assert [pod.noticed for pod in rig.at(2, step=30, starting=True)] == [False, False], "the program starts"
    assert [pod.noticed for pod in rig.at(3, step=31)] == [True, False]
    rig.fleet.replace(["a1-w1"])
    rig.at(4, step=40)
    rig.up()
    assert [pod.noticed for pod in rig.at(5, step=50)] == [True, False, False], "the first has not gone yet"
    rig.fleet.remove(["a1-w1"])
    rig.nodes["a1-w1-1"].alive = False
    rig.at(6, step=60)
    assert [pod.noticed for pod in rig.at(7, step=60) if pod.phase is not PodPhase.LOST] == [False, False]
    assert [pod.noticed for pod in rig.at(8, step=60, starting=True) if pod.phase is not PodPhase.LOST] == [False] * 2
    assert [pod.noticed for pod in rig.at(9, step=61) if pod.phase is not PodPhase.LOST] == [True, False]


def test_an_elastic_program_can_start_with_enough_nodes_when_the_others_lack_capacity() -> None:
    rig = bench(size=3, nodes=2)
    rig.at(0)
    assert not rig.fleet.can_start(2)
    rig.nodes["a1-w1-1"].up = True
    rig.at(1)
    assert not rig.fleet.can_start(1), "a node is starting"
    rig.nodes["a1-w2-1"].up = True
    rig.at(2)
    assert [rig.fleet.can_start(least) for least in (1, 2, 3, None)] == [True, True, False, False]


def test_pods_are_unschedulable_while_the_pool_is_unavailable() -> None:
    rig = bench(dry=(Window(0, 10),))
    assert all(pod.unschedulable for pod in rig.at(9))
    assert not any(pod.unschedulable for pod in rig.at(10))


def test_a_pool_that_becomes_unavailable_cancels_pending_nodes() -> None:
    rig = bench(provision_delay=5.0, dry=(Window(2, 10),))
    rig.at(0)
    assert all(pod.unschedulable for pod in rig.at(3))
    assert rig.pool.held == 0
    rig.at(10)
    assert not rig.nodes, "the provision delay restarts"
    rig.at(15)
    assert len(rig.nodes) == 2


def test_an_interruption_gives_notice_then_kills_the_node_which_is_replaced() -> None:
    rig = bench(taken_at=(20.0,), notice=5.0)
    rig.at(0)
    rig.up()
    rig.at(1)
    pods = rig.at(20)
    assert [pod.noticed for pod in pods] == [True, False]
    assert pods[0].notice_ends_at == BEGAN + 25
    assert pods[0].phase is PodPhase.RUNNING
    assert rig.nodes["a1-w1-1"].noticed == 1
    assert rig.fleet.can_start(None), "the node counts until it is reclaimed"
    pods = rig.at(25)
    assert (pods[0].phase, pods[0].cause) == (PodPhase.LOST, Cause.INTERRUPTION)
    assert not rig.nodes["a1-w1-1"].alive
    assert pods[2].phase is PodPhase.PENDING
    rig.at(26)
    rig.nodes["a1-w3-1"].up = True
    rig.at(27)
    assert rig.fleet.can_start(None)
    assert rig.changes("a1-w1") == [NodeChange.ASKED, NodeChange.UP, NodeChange.NOTICED, NodeChange.GONE]


def test_a_node_drained_by_ray_is_present_until_its_notice_ends() -> None:
    """Ray stops an idle node at once; the machine stays, and the program on it keeps its whole notice period."""
    rig = bench(taken_at=(20.0,), notice=30.0)
    rig.at(0)
    rig.up()
    rig.at(1)
    rig.at(20)
    rig.nodes["a1-w1-1"].alive = False
    assert phases(rig.at(49.9)) == [PodPhase.RUNNING] * 2
    assert rig.fleet.lost == []
    pods = rig.at(50)
    assert (pods[0].phase, pods[0].cause) == (PodPhase.LOST, Cause.INTERRUPTION)
    assert rig.fleet.lost == ["a1-w1"]


def replacing(nodes: int = 3) -> Bench:
    """A group of two of whose workers one has a notice of 30 s, and its replacement is requested."""
    rig = bench(nodes=nodes, taken_at=(20.0,), notice=30.0)
    rig.at(0)
    rig.up()
    rig.at(1)
    rig.at(20)
    for _ in range(2):
        rig.fleet.replace(["a1-w1"])
    return rig


def test_a_removed_pod_is_gone_without_a_loss_when_its_node_has_drained() -> None:
    rig = replacing()
    rig.at(21)
    rig.up()
    rig.at(25)
    rig.fleet.hand_over(["a1-w1"], BEGAN + 40)
    assert rig.nodes["a1-w1-1"].handed_over == [BEGAN + 40]
    rig.fleet.remove(["a1-w1"])
    assert phases(rig.at(26)) == [PodPhase.RUNNING] * 3, "the program may still commit there"
    rig.nodes["a1-w1-1"].alive = False
    rig.at(27)
    assert (rig.fleet.surplus, rig.fleet.lost, rig.pool.held) == (0, [], 2)
    rig.fleet.remove(["a1-w1"])
    assert [pod.uid for pod in rig.at(60)] == ["a1-w2", "a1-w3"]


def test_without_a_notice_period_the_node_is_killed_at_once() -> None:
    rig = bench(taken_at=(20.0,), notice=0.0)
    rig.at(0)
    rig.up()
    rig.at(1)
    pods = rig.at(20)
    assert (pods[0].phase, pods[0].cause, pods[0].noticed) == (PodPhase.LOST, Cause.INTERRUPTION, False)
    assert rig.nodes["a1-w1-1"].noticed == 0


def test_a_failed_node_start_is_retried_and_then_an_error_with_the_cause() -> None:
    rig = bench(size=1)
    rig.at(0)
    for start in (1, 2):
        rig.nodes[f"a1-w1-{start}"].why = "it said nothing"
        assert phases(rig.at(start)) == [PodPhase.PENDING]
        rig.at(start + 0.5)
    rig.nodes["a1-w1-3"].why = "Address already in use"
    with pytest.raises(EnvironmentFailure, match=r"Address already in use.*--continue"):
        rig.at(3)


def test_close_ends_all_nodes_and_returns_them_to_the_pool() -> None:
    rig = bench()
    rig.at(0)
    rig.up()
    rig.at(1)
    rig.fleet.close(BEGAN + 2)
    assert not any(node.alive for node in rig.nodes.values())
    assert rig.pool.held == 0
    assert phases(list(rig.fleet.seen())) == [PodPhase.LOST] * 2
    rig.fleet.close(BEGAN + 3)
    assert rig.pool.held == 0


def test_a_pending_pod_gets_the_node_that_another_attempt_returns() -> None:
    first = bench(size=1)
    first.at(0)
    second = Bench(first.pool, 1)
    assert second.at(1)[0].unschedulable
    first.fleet.close(BEGAN + 2)
    assert not second.at(2)[0].unschedulable
