"""The size of the worker group of an elastic job, decided in Ray Train's controller.

1. A worker group starts with the largest allowed size for which worker nodes live, one rank on each, and never below
   the smallest: then it waits. It also waits for Ray to mark a node that does not answer as dead, because a group that
   is placed on such a node does not start before Ray Train's timeout.
2. A group that runs never shrinks by decision: its ranks end when they lose a peer, and the next group is smaller.
3. It grows once it has trained for `grow_after` and more nodes live. The program commits first and hands over, so that
   the larger group repeats no step.

Ray's own policy asks its autoscaling coordinator, which learns of a lost node only after seconds, and would start a
group for which no node lives.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ray

from spotladder.train.rayinternals import ElasticScalingPolicy, NoopDecision, draining_nodes, resources_per_worker
from spotladder.train.rayworkers import ask_to_resize

HEAD = "node:__internal_head__"
"""The resource that Ray gives to the head node."""

LOOK_INTERVAL = 1.0
"""Seconds between two looks for more nodes while a worker group runs."""

CONNECT_TIMEOUT = 1.0
"""Seconds in which a node accepts a connection."""

MOST_CONNECTIONS = 64


class AllowedSizes(ElasticScalingPolicy):  # type: ignore[misc]
    """Chooses among the allowed sizes. `sizes` is ascending, `grow_after` is in seconds."""

    def __init__(self, scaling_config: Any, sizes: tuple[int, ...], grow_after: float) -> None:
        super().__init__(scaling_config)
        self._sizes = sizes
        self._grow_after = grow_after
        self._next_look = -math.inf
        self._asked: float | None = None  # the start of the group that was asked to hand over

    def make_decision_for_non_running_worker_group(self) -> Any:
        size = self._possible() if all_answer(ray.nodes()) else None
        return NoopDecision() if size is None else self._get_resize_decision(size)

    def make_decision_for_running_worker_group(self, worker_group_state: Any, worker_group_status: Any) -> Any:  # noqa: ARG002 – Ray's protocol
        began, now = worker_group_state.start_time, time.monotonic()
        if began == self._asked or now < max(began + self._grow_after, self._next_look):
            return NoopDecision()
        self._next_look = now + LOOK_INTERVAL
        size = self._possible()
        if size is not None and size > worker_group_state.num_workers:
            self._asked = began
            ask_to_resize()
        return NoopDecision()

    def _possible(self) -> int | None:
        needs = resources_per_worker(self.scaling_config)
        return largest(self._sizes, places(ray.nodes(), needs, draining_nodes()))


def all_answer(nodes: Iterable[dict[str, Any]]) -> bool:
    """Whether the Ray process of every live worker node accepts a connection. A node that is only busy does."""
    alive = [node for node in nodes if node["Alive"] and HEAD not in node["Resources"]]
    if not alive:
        return True
    with ThreadPoolExecutor(min(len(alive), MOST_CONNECTIONS)) as pool:
        return all(pool.map(_answers, alive))


def _answers(node: dict[str, Any]) -> bool:
    try:
        with socket.create_connection((node["NodeManagerAddress"], node["NodeManagerPort"]), CONNECT_TIMEOUT):
            return True
    except OSError:
        return False


def places(nodes: Iterable[dict[str, Any]], needs: dict[str, float], draining: Collection[str]) -> int:
    """The number of live worker nodes that are not being drained and have room for a rank with these resources."""
    return sum(
        1
        for node in nodes
        if node["Alive"]
        and node["NodeID"] not in draining
        and HEAD not in node["Resources"]
        and all(node["Resources"].get(name, 0.0) >= amount for name, amount in needs.items())
    )


def largest(sizes: tuple[int, ...], limit: int) -> int | None:
    """The largest of these ascending sizes up to `limit`; None if all are larger."""
    return max((size for size in sizes if size <= limit), default=None)
