"""Elastic jobs in the in-job library: shares of a batch, sizes, restarts of the worker group. Ray is not started."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import ray

from spotladder import train
from spotladder.core.contract import Notice, NoticeKind
from spotladder.errors import InvalidSpec
from spotladder.train import rayelastic, raytrain, rayworkers
from spotladder.train.environment import Environment
from spotladder.train.interruption import RESIZED, HandedOver, interrupted
from spotladder.train.membership import leaving_of
from spotladder.train.ranks import ProcessRank
from spotladder.train.rayelastic import AllowedSizes
from spotladder.train.raynodes import LONGEST_SILENCE
from spotladder.train.session import Job
from tests.train.builders import Ranks, member, newest_of, variables
from tests.train.nodes import node


def share(rank: int, size: int, batch: int) -> list[int]:
    world: Any = SimpleNamespace(world=ProcessRank(rank, size), environment=SimpleNamespace(interval=None))
    return list(Job(world).share_of(batch))


@pytest.mark.parametrize(("size", "batch"), [(1, 8), (3, 8), (4, 8), (7, 64), (8, 8)])
def test_the_shares_of_all_ranks_are_the_batch_in_its_order(size: int, batch: int) -> None:
    shares = [share(rank, size, batch) for rank in range(size)]
    assert [position for positions in shares for position in positions] == list(range(batch))
    lengths = {len(positions) for positions in shares}
    assert max(lengths) - min(lengths) <= 1


def test_a_batch_with_fewer_examples_than_ranks_is_refused() -> None:
    with pytest.raises(ValueError, match="expected at least one example for each of 4 ranks"):
        share(0, 4, 3)


class SteppedPolicy:
    """The scaling policy with a stepped clock and a changing number of nodes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, grow_after: float = 600.0, **scaling: Any) -> None:
        from ray.train import ScalingConfig

        self.now, self.nodes, self.requests = 1000.0, 4, 0
        self.group = SimpleNamespace(start_time=self.now, num_workers=4)
        self.scaling = ScalingConfig(num_workers=(2, 4), **scaling)
        self.policy = AllowedSizes(self.scaling, (2, 4), grow_after)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(rayelastic, "ask_to_resize", self._ask)
        monkeypatch.setattr(rayelastic, "draining_nodes", dict)
        self.silent: dict[str, float] = {}
        monkeypatch.setattr(rayelastic, "SILENT_NODES", SimpleNamespace(ask=lambda _nodes: self.silent))
        monkeypatch.setattr(ray, "nodes", lambda: [node(f"n{index}") for index in range(self.nodes)])

    def _ask(self) -> None:
        self.requests += 1

    def begin(self, nodes: int) -> int | None:
        """The size of a new group with that many nodes."""
        self.nodes = nodes
        size = getattr(self.policy.make_decision_for_non_running_worker_group(), "num_workers", None)
        self.group = SimpleNamespace(start_time=self.now, num_workers=size)
        return size

    def labels(self) -> dict[str, str] | None:
        """The labels of the nodes of the new group."""
        return self.policy.on_controller_start_worker_group(scaling_config=self.scaling, num_workers=2)

    def requests_after(self, after: float, nodes: int) -> int:
        """The number of requests to grow so far, `after` seconds later and with that many nodes."""
        self.now, self.nodes = self.now + after, nodes
        decision = self.policy.make_decision_for_running_worker_group(self.group, None)
        assert not hasattr(decision, "num_workers"), "a running group is never killed to resize it"
        return self.requests


def test_a_group_starts_with_the_largest_allowed_size_and_waits_below_the_smallest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stepped = SteppedPolicy(monkeypatch)
    assert [stepped.begin(nodes) for nodes in (5, 4, 3, 2, 1, 0)] == [4, 4, 2, 2, None, None]


def test_a_group_waits_for_a_silent_node_until_it_counts_as_lost_and_starts_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stepped = SteppedPolicy(monkeypatch)
    stepped.silent = {"n1": LONGEST_SILENCE - 0.1}
    assert (stepped.begin(4), stepped.labels()) == (None, None)
    stepped.silent = {"n1": LONGEST_SILENCE, "n3": LONGEST_SILENCE}
    assert (stepped.begin(4), stepped.labels()) == (2, {"ray.io/node-id": "!in(n1,n3)"})
    stepped.silent = {"n1": LONGEST_SILENCE, "n3": 0.0}
    assert stepped.begin(4) is None, "the other node is silent for the first time"
    stepped.silent = {}
    assert (stepped.begin(4), stepped.labels()) == (4, None)


@pytest.mark.parametrize(
    ("asked", "size", "labels"),
    [({"zone": "a"}, 2, {"zone": "a", "ray.io/node-id": "!in(n1)"}), ([{"zone": "a"}] * 4, None, None)],
    ids=["they stay", "for each rank: the group waits until Ray marks the node"],
)
def test_a_silent_node_and_the_labels_that_a_program_asks_for(
    monkeypatch: pytest.MonkeyPatch, asked: Any, size: int | None, labels: dict[str, str] | None
) -> None:
    stepped = SteppedPolicy(monkeypatch, label_selector=asked)
    stepped.silent = {"n1": LONGEST_SILENCE}
    assert (stepped.begin(4), stepped.labels()) == (size, labels)


def test_a_group_is_asked_once_to_grow_after_the_time_and_only_to_an_allowed_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stepped = SteppedPolicy(monkeypatch)
    stepped.begin(2)
    assert stepped.requests_after(599, 4) == 0
    assert stepped.requests_after(1, 3) == 0, "3 is not allowed"
    assert stepped.requests_after(0.5, 4) == 0, "the policy counts the nodes once a second"
    assert stepped.requests_after(1, 4) == 1
    assert stepped.requests_after(60, 4) == 1
    stepped.begin(3)
    assert stepped.requests_after(600, 4) == 2


def test_a_running_group_is_never_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    stepped = SteppedPolicy(monkeypatch, grow_after=0.0)
    stepped.begin(4)
    assert stepped.requests_after(10, 2) == 0


@pytest.mark.parametrize(
    ("going", "leaving"),
    [([RESIZED], (RESIZED,)), ([RESIZED, "node"], ("node", RESIZED)), ([RESIZED, ""], ()), (["node"], ("node",))],
)
def test_a_notice_that_ends_the_program_precedes_a_change_of_size(going: list[str], leaving: tuple[str, ...]) -> None:
    assert leaving_of(going) == leaving
    assert isinstance(interrupted(7, leaving), HandedOver) is bool(leaving)


def test_after_the_request_to_resize_all_ranks_commit_and_hand_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(job: Job) -> None:
        for step in job.steps(0, 1000):
            together.wait(600)
            if step == 3 and job.rank == 0:
                rayworkers._resize()
            if job.should_commit(step):
                with job.commit(step) as folder:
                    (folder / "state").write_text(str(step))

    together = threading.Barrier(2)
    with Ranks(tmp_path, 2, interval="1h", sizes="2,3") as ranks:
        monkeypatch.setattr(rayworkers._Process, "member", ranks.jobs[0]._member)
        ended = ranks.on_all(run)
    newest = newest_of(tmp_path)
    assert newest.step >= 3
    assert [(type(end), end.step, end.leaving) for end in ended] == [(HandedOver, newest.step, (RESIZED,))] * 2


def test_a_rank_without_a_notice_that_resizes_reports_it(tmp_path: Path) -> None:
    rank = member(tmp_path, sizes="1,2")
    assert rank.going(None) == []
    rank.resizing = True
    assert rank.going(None) == [RESIZED]
    assert rank.going(Notice(NoticeKind.DRAIN)) == ["", RESIZED]
    rank.close()


def test_a_process_that_is_not_a_worker_of_ray_train_cannot_be_elastic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPOTLADDER_SIZES", "2,4")
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # It is restored after the test.
    with pytest.raises(InvalidSpec, match=r"spec\.elastic: needs a trainer of Ray Train"):
        train.current()


def test_a_trainer_with_a_fixed_number_of_workers_cannot_be_elastic(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from ray.train import ScalingConfig
    from ray.train.v2.api import data_parallel_trainer as trainers

    monkeypatch.setattr(trainers, "create_scaling_policy", None)  # It is restored after the test.
    raytrain._allowed_sizes(Environment(variables(tmp_path, sizes="2,4")))
    with pytest.raises(InvalidSpec, match=r"trains with 2 to 4 workers, but .* use scaling_config=train\.ray_scaling"):
        trainers.create_scaling_policy(ScalingConfig(num_workers=4))


def test_the_scaling_config_has_the_sizes_of_an_elastic_job_only(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed = train.ray_scaling_config(4, resources_per_worker={"CPU": 2})
    assert (fixed.num_workers, fixed.resources_per_worker) == (4, {"CPU": 2})
    monkeypatch.setenv("SPOTLADDER_SIZES", "2,4")
    elastic = train.ray_scaling_config(7)
    assert (elastic.num_workers, elastic.placement_strategy) == ((2, 4), "SPREAD")
