"""The size of the worker group of an elastic job, decided in Ray Train's controller.

1. A worker group starts with the largest allowed size for which worker nodes live, one rank on each, and never below
   the smallest: then it waits. A group that is placed on a node that does not answer does not start before Ray Train's
   timeout. So a silent node that Ray has not marked as dead yet delays the group until it counts as lost, and is then
   excluded by its label.
2. A group that runs never shrinks by decision: its ranks end when they lose a peer, and the next group is smaller.
3. It grows once it has trained for `grow_after` and more nodes live and answer. The program commits first and hands
   over, so that the larger group repeats no step.

Ray's own policy asks its autoscaling coordinator, which learns of a lost node only after seconds, and would start a
group for which no node lives.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from typing import Any

import ray

from spotladder.train.rayinternals import (
    NODE_LABEL,
    ElasticScalingPolicy,
    NoopDecision,
    draining_nodes,
    resources_per_worker,
)
from spotladder.train.raynodes import LONGEST_SILENCE, SILENT_NODES, places
from spotladder.train.rayworkers import ask_to_resize

LOOK_INTERVAL = 1.0
"""Seconds between two checks for more nodes while a worker group runs."""


class AllowedSizes(ElasticScalingPolicy):  # type: ignore[misc]
    """Chooses among the allowed sizes. `sizes` is ascending, `grow_after` is in seconds."""

    def __init__(self, scaling_config: Any, sizes: tuple[int, ...], grow_after: float) -> None:
        super().__init__(scaling_config)
        self._sizes = sizes
        self._grow_after = grow_after
        self._next_look = -math.inf
        self._asked: float | None = None  # the start of the group that was asked to hand over
        self._excluded: set[str] = set()  # the silent nodes on which the next group is not placed

    def make_decision_for_non_running_worker_group(self) -> Any:
        nodes = ray.nodes()
        silent = SILENT_NODES.ask(nodes)
        self._excluded = {name for name, silence in silent.items() if silence >= self._patience}
        size = self._possible(nodes, self._excluded) if silent.keys() == self._excluded else None
        return NoopDecision() if size is None else self._get_resize_decision(size)

    def make_decision_for_running_worker_group(self, worker_group_state: Any, worker_group_status: Any) -> Any:  # noqa: ARG002 – Ray's protocol
        began, now = worker_group_state.start_time, time.monotonic()
        if began == self._asked or now < max(began + self._grow_after, self._next_look):
            return NoopDecision()
        self._next_look = now + LOOK_INTERVAL
        nodes = ray.nodes()
        if self._exceeds(worker_group_state.num_workers, nodes, ()) and self._exceeds(
            worker_group_state.num_workers, nodes, SILENT_NODES.ask(nodes)
        ):
            self._asked = began
            ask_to_resize()
        return NoopDecision()

    def on_controller_start_worker_group(self, *, scaling_config: Any, num_workers: int) -> dict[str, str] | None:  # noqa: ARG002 – Ray's protocol
        """The labels of the nodes on which the group is placed; None for any."""
        if not self._excluded:
            return None
        return {**(scaling_config.label_selector or {}), NODE_LABEL: f"!in({','.join(sorted(self._excluded))})"}

    @property
    def _patience(self) -> float:
        """Seconds of silence after which the next group is placed on other nodes. Ray takes one label selector for all
        ranks: with a list of them, the group waits until Ray marks the node as dead."""
        return math.inf if isinstance(self.scaling_config.label_selector, list) else LONGEST_SILENCE

    def _exceeds(self, workers: int, nodes: list[dict[str, Any]], without: Collection[str]) -> bool:
        size = self._possible(nodes, without)
        return size is not None and size > workers

    def _possible(self, nodes: list[dict[str, Any]], without: Collection[str]) -> int | None:
        needs = resources_per_worker(self.scaling_config)
        return largest(self._sizes, places(nodes, needs, {*draining_nodes(), *without}))


def largest(sizes: tuple[int, ...], limit: int) -> int | None:
    """The largest of these ascending sizes up to `limit`; None if all are larger."""
    return max((size for size in sizes if size <= limit), default=None)
