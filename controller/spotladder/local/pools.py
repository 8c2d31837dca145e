"""The schedule by which a pool provides and reclaims nodes; it starts no process and reads no clock.

All times of a world file count from the first start of the run: a resumed run does not suffer the same interruption
twice, and interruptions that were due while no runner was alive are skipped.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spotladder.api.trace import PoolTrace, read_trace
from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.model import Instant, Seconds

if TYPE_CHECKING:
    from spotladder.api.world import WorldPool


@dataclass(frozen=True, slots=True)
class Window:
    """An interval from `start` (inclusive) to `end` (exclusive), in seconds after the start of the run."""

    start: Seconds
    end: Seconds = math.inf

    def holds(self, moment: Seconds) -> bool:
        """Whether this moment is within the interval."""
        return self.start <= moment < self.end


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """The schedule of a pool. In `dry` intervals the pool provides no node; in `reclaimed` intervals it also reclaims
    all nodes."""

    name: str
    nodes: int = 1
    cpus: int = 1
    gpus: int | None = None
    provision_delay: Seconds = 0.0
    notice: Seconds = 30.0
    taken_at: tuple[Seconds, ...] = ()
    taken_at_steps: tuple[int, ...] = ()
    hazard_per_hour: float = 0.0
    seed: int = 0
    dry: tuple[Window, ...] = ()
    reclaimed: tuple[Window, ...] = ()

    def available(self, moment: Seconds) -> bool:
        """Whether the pool provides nodes at that moment, apart from its `size`."""
        return not any(window.holds(moment) for window in (*self.dry, *self.reclaimed))

    @property
    def hint(self) -> str:
        """Why the pool can never provide a node, and the remedy, as the message of the pods that wait; "" if it can."""
        if self.nodes:
            return ""
        return f'the pool "{self.name}" has 0 nodes: set pools.{self.name}.nodes in the world file'

    def lifetime(self, ordinal: int) -> Seconds:
        """The lifetime of the pool's n-th node, drawn from the seed and `n` only."""
        if self.hazard_per_hour <= 0:
            return math.inf
        # Repeatable on purpose: it simulates a market and protects no secret.
        return random.Random(f"{self.seed}/{self.name}/{ordinal}").expovariate(self.hazard_per_hour / HOUR)  # noqa: S311


@dataclass(frozen=True, slots=True)
class LentNode:
    """A node that a pool has provided and not reclaimed."""

    uid: str
    ordinal: int
    up_at: Instant


class PoolClock:
    """A pool during a run: counts the nodes it has provided and decides which to reclaim."""

    def __init__(self, plan: PoolPlan, began: Instant, now: Instant) -> None:
        self.plan = plan
        self._began = began
        self._looked_at = now - began
        self._steps_left: list[int] | None = None
        self.held = 0
        self._given = 0

    def available(self, now: Instant) -> bool:
        """Whether the pool provides nodes now."""
        return self.plan.available(now - self._began)

    def free(self, now: Instant) -> int:
        """The number of further nodes that the pool provides now."""
        return max(0, self.plan.nodes - self.held) if self.available(now) else 0

    def give(self, now: Instant) -> int | None:
        """Provide one more node and return its ordinal; None if the pool has no capacity. The node is ready after the
        delay."""
        if self.held >= self.plan.nodes or not self.available(now):
            return None
        self.held += 1
        self._given += 1
        return self._given

    def take_back(self) -> None:
        """Record that a node of the pool is gone."""
        self.held = max(0, self.held - 1)

    def reclaims(self, now: Instant, up: Sequence[LentNode], step: int = 0, *, changing: bool = False) -> list[str]:
        """The uids of the nodes to reclaim now, when the job has done `step` steps.

        Each time in `taken_at` and each step in `taken_at_steps` reclaims the node that has been up longest, if one is
        up. A step counts once, and only if it is done after the first call of this method. While the nodes are
        `changing`, a step that is due waits. Of several such steps, each later call counts one.
        """
        before, moment = self._looked_at, now - self._began
        self._looked_at = max(before, moment)
        if self._steps_left is None:
            self._steps_left = [at for at in self.plan.taken_at_steps if at > step]
        if any(window.holds(moment) for window in self.plan.reclaimed):
            return [node.uid for node in up]
        gone = [node.uid for node in up if now - node.up_at >= self.plan.lifetime(node.ordinal)]
        left = sorted((node for node in up if node.uid not in gone), key=lambda node: (node.up_at, node.ordinal))
        for at in self.plan.taken_at:
            up_before = [node for node in left if node.up_at - self._began <= at] if before < at <= moment else []
            gone += [node.uid for node in up_before[:1]]
            left = [node for node in left if node not in up_before[:1]]
        if not changing and self._steps_left and self._steps_left[0] <= step:
            del self._steps_left[0]
            gone += [node.uid for node in left[:1]]
        return gone


def plan_of(name: str, pool: WorldPool, folder: Path) -> PoolPlan:
    """The plan of a pool in a world file. Traces are relative to `folder`, the world file's folder."""
    taken = pool.interruptions
    reclaimed: tuple[Window, ...] = ()
    if taken is not None and taken.trace is not None:
        reclaimed = windows_of(read_trace(folder / taken.trace), taken.speedup or 1.0)
    return PoolPlan(
        name=name,
        nodes=pool.nodes,
        cpus=pool.cpus_per_node,
        gpus=pool.gpus_per_node,
        provision_delay=pool.provision_delay,
        notice=pool.notice,
        taken_at=tuple(sorted(taken.at)) if taken is not None and taken.at is not None else (),
        taken_at_steps=tuple(sorted(taken.at_steps)) if taken is not None and taken.at_steps is not None else (),
        hazard_per_hour=(taken.hazard_per_hour or 0.0) if taken is not None else 0.0,
        seed=(taken.seed or 0) if taken is not None else 0,
        dry=tuple(Window(window.from_, math.inf if window.to is None else window.to) for window in pool.unavailable),
        reclaimed=reclaimed,
    )


def windows_of(trace: PoolTrace, speedup: float) -> tuple[Window, ...]:
    """The intervals in which the traced capacity was gone, played `speedup` times faster. The last sample holds
    indefinitely."""
    gap, samples = trace.gap / speedup, trace.taken
    changes = [index for index in range(len(samples)) if index == 0 or samples[index] != samples[index - 1]]
    windows = []
    for index in (change for change in changes if samples[change]):
        after = bisect_right(changes, index)
        windows.append(Window(index * gap, changes[after] * gap if after < len(changes) else math.inf))
    return tuple(windows)
