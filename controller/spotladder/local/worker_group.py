"""The workers of one attempt: requested from its pool, started as Ray nodes, reclaimed, and replaced in place.

| stage | the pod | next stage |
|---|---|---|
| WANTED | waits for a node of the pool | node assigned → PROVISIONING |
| PROVISIONING | its node is being created (provisionDelay) | node ready → STARTING; pool out of capacity → WANTED |
| STARTING | `ray start` runs | joined → UP; failed → one retry, then an error |
| UP | is a member of the Ray cluster | node reclaimed → NOTICED; its process ended → GONE |
| NOTICED | is a member until the notice period ends | notice period ended → GONE |
| GONE | is lost; another pod is WANTED in its place, as with KubeRay, unless it was replaced before | |

A pod that is replaced before its node is reclaimed has another pod beside it. Once the program was asked to continue
without it, it is gone when its Ray node has drained, before the notice period ends.

An idle Ray node drains and exits at once after a notice. Its machine, and so its pod, exists until the notice period
ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum, auto

from spotladder.core.model import Instant, Launch, PodPhase, PodSeen, Seconds
from spotladder.core.reasons import Cause
from spotladder.errors import EnvironmentFailure
from spotladder.local.nodes import Worker
from spotladder.local.pools import LentNode, PoolClock
from spotladder.records.model import NodeChange, NodeChanged, Record

STARTS = 3
"""Number of tries of `ray start` for one pod: on a busy machine it can time out."""


class NodeStage(Enum):
    WANTED = auto()
    PROVISIONING = auto()
    STARTING = auto()
    UP = auto()
    NOTICED = auto()
    GONE = auto()


_READY = (NodeStage.UP, NodeStage.NOTICED)


@dataclass(slots=True)
class _Pod:
    uid: str
    stage: NodeStage = NodeStage.WANTED
    ordinal: int = 0
    there_at: Instant = 0.0
    node_exists: bool = False  # The node exists; only Ray is missing.
    up_at: Instant = 0.0
    ends_at: Instant = 0.0
    starts: int = 0
    cause: Cause = Cause.UNKNOWN
    node: Worker | None = None
    replaced: bool = False  # Another pod was requested in its place while it runs.
    removed: bool = False  # It is not missed.


StartNode = Callable[[str], Worker | None]
"""Start the node of that name; returns None while it cannot be started yet."""


class WorkerGroup:
    """The workers of one attempt."""

    def __init__(
        self, attempt: Launch, size: int, pool: PoolClock, start: StartNode, emit: Callable[[Record], None]
    ) -> None:
        self._attempt, self._tier = attempt.attempt, attempt.tier
        self._pool, self._start, self._emit = pool, start, emit
        self._pods: list[_Pod] = []
        self._made = 0
        self._closed = False
        self._changed_at = -1
        for _ in range(size):
            self._want()

    def advance(self, now: Instant, *, replace: bool, step: int = 0, starting: bool = False) -> None:
        """Advance all pods. `replace`: create another pod for each lost one. `step` is the number of steps that the
        job has done. `starting`: the program has not done a step yet since it started or restarted."""
        if self._closed:
            return
        self._reclaim(now, step, starting=starting)
        for pod in list(self._pods):
            self._advance(pod, now, replace)

    def seen(self) -> tuple[PodSeen, ...]:
        """The pods as the core sees them."""
        return tuple(self._seen(pod) for pod in self._pods)

    def can_start(self, least: int | None) -> bool:
        """Whether the program can start: every pod is ready or, with at least `least` ready pods, the others lack
        capacity."""
        present = [pod.stage for pod in self._pods if pod.stage is not NodeStage.GONE]
        missing = [stage for stage in present if stage not in _READY]
        enough = least is not None and len(present) - len(missing) >= least
        return not missing or (enough and all(stage is NodeStage.WANTED for stage in missing))

    @property
    def lacks_capacity(self) -> bool:
        """Whether the pool has provided no node yet."""
        return all(pod.stage is NodeStage.WANTED for pod in self._pods)

    # --- replacing pods before their nodes go ---

    @property
    def surplus(self) -> int:
        """The number of pods beyond the size of the group."""
        return sum(pod.replaced and pod.stage is not NodeStage.GONE for pod in self._pods)

    def room(self, now: Instant) -> int:
        """The number of pods that the group may have beyond its size, limited by the nodes of the pool."""
        return self.surplus + self._pool.free(now)

    def replace(self, uids: Collection[str]) -> None:
        """Request another pod in place of each of these pods, which run. Idempotent."""
        for pod in list(self._pods):
            if pod.uid in uids and not pod.replaced and pod.stage is not NodeStage.GONE:
                pod.replaced = True
                self._want()

    def hand_over(self, uids: Collection[str], deadline: Instant) -> None:
        """Ask the program to continue without these pods."""
        for pod in self._pods:
            if pod.uid in uids and pod.node is not None and pod.stage is not NodeStage.GONE:
                pod.node.hand_over(deadline)

    def remove(self, uids: Collection[str]) -> None:
        """Remove these pods when Ray has left their nodes: until then the program may still commit on them."""
        for pod in [pod for pod in self._pods if pod.uid in uids]:
            if pod.stage is NodeStage.GONE:
                self._pods.remove(pod)
            elif pod.stage is NodeStage.UP and not pod.removed and pod.node is not None:
                pod.node.notice()
            pod.removed = True

    @property
    def lost(self) -> list[str]:
        """The lost pods that were ready before."""
        return [pod.uid for pod in self._pods if pod.stage is NodeStage.GONE and pod.up_at and not pod.removed]

    def close(self, now: Instant) -> None:
        """End all nodes and return them to the pool."""
        self._closed = True
        for pod in self._pods:
            if pod.stage is not NodeStage.GONE:
                self._gone(pod, now, Cause.UNKNOWN if pod.stage is not NodeStage.NOTICED else pod.cause)

    def _want(self) -> None:
        self._made += 1
        self._pods.append(_Pod(f"a{self._attempt}-w{self._made}"))

    def _changing(self, step: int, *, starting: bool) -> bool:
        """Whether a node has its notice or is being started, or the program has not done a step since."""
        stages = (NodeStage.PROVISIONING, NodeStage.STARTING, NodeStage.NOTICED)
        if starting or any(pod.stage in stages for pod in self._pods):
            self._changed_at = step
        return step <= self._changed_at

    def _reclaim(self, now: Instant, step: int, *, starting: bool) -> None:
        up = [LentNode(pod.uid, pod.ordinal, pod.up_at) for pod in self._pods if pod.stage is NodeStage.UP]
        taken = set(self._pool.reclaims(now, up, step, changing=self._changing(step, starting=starting)))
        notice: Seconds = self._pool.plan.notice
        for pod in self._pods:
            if pod.uid not in taken or pod.node is None:
                continue
            pod.cause = Cause.INTERRUPTION
            if notice <= 0:
                continue  # Killed below, without a notice.
            pod.stage, pod.ends_at = NodeStage.NOTICED, now + notice
            pod.node.notice()
            self._note(pod, now, NodeChange.NOTICED, Cause.INTERRUPTION, pod.ends_at)

    def _advance(self, pod: _Pod, now: Instant, replace: bool) -> None:
        match pod.stage:
            case NodeStage.WANTED:
                self._ask(pod, now)
            case NodeStage.PROVISIONING:
                self._provision(pod, now)
            case NodeStage.STARTING:
                self._join(pod, now)
            case NodeStage.UP | NodeStage.NOTICED:
                killed = pod.cause is Cause.INTERRUPTION and now >= pod.ends_at
                leaves = pod.stage is NodeStage.UP or pod.removed
                ended = leaves and (pod.node is None or not pod.node.alive)
                if killed or ended:
                    self._gone(pod, now, pod.cause if pod.cause is not Cause.UNKNOWN else Cause.NODE_LOST)
                    if replace and not pod.replaced:
                        self._want()

    def _ask(self, pod: _Pod, now: Instant) -> None:
        ordinal = self._pool.give(now)
        if ordinal is None:
            return
        pod.stage, pod.ordinal, pod.there_at = NodeStage.PROVISIONING, ordinal, now + self._pool.plan.provision_delay
        self._note(pod, now, NodeChange.ASKED)
        self._provision(pod, now)

    def _provision(self, pod: _Pod, now: Instant) -> None:
        if not self._pool.available(now):
            self._pool.take_back()
            pod.stage, pod.node_exists = NodeStage.WANTED, False
        elif now >= pod.there_at:
            pod.node_exists = True
            pod.node = self._start(f"{pod.uid}-{pod.starts + 1}")
            if pod.node is not None:
                pod.starts += 1
                pod.stage = NodeStage.STARTING

    def _join(self, pod: _Pod, now: Instant) -> None:
        node = pod.node
        if node is None:
            return
        if node.up:
            pod.stage, pod.up_at = NodeStage.UP, now
            self._note(pod, now, NodeChange.UP)
        elif why := node.failed():
            node.kill()
            if pod.starts >= STARTS:
                raise EnvironmentFailure(f"{why}; free memory and CPU, then run with --continue")
            pod.stage = NodeStage.PROVISIONING

    def _gone(self, pod: _Pod, now: Instant, cause: Cause) -> None:
        if pod.node is not None:
            pod.node.kill()
        if pod.stage is not NodeStage.WANTED:
            self._pool.take_back()
        if pod.stage in _READY:
            self._note(pod, now, NodeChange.GONE, cause if cause is not Cause.UNKNOWN else None)
        pod.stage, pod.cause = NodeStage.GONE, cause

    def _note(
        self, pod: _Pod, now: Instant, change: NodeChange, cause: Cause | None = None, until: Instant | None = None
    ) -> None:
        self._emit(NodeChanged(now, pod.uid, self._attempt, self._tier, change, cause, until))

    def _seen(self, pod: _Pod) -> PodSeen:
        phase = {NodeStage.UP: PodPhase.RUNNING, NodeStage.NOTICED: PodPhase.RUNNING, NodeStage.GONE: PodPhase.LOST}
        noticed = pod.stage is NodeStage.NOTICED
        return PodSeen(
            uid=pod.uid,
            phase=phase.get(pod.stage, PodPhase.PENDING),
            ready=pod.stage in _READY,
            noticed=noticed,
            notice_ends_at=pod.ends_at if noticed else None,
            unschedulable=pod.stage is NodeStage.WANTED,
            waiting_message=self._pool.plan.hint if pod.stage is NodeStage.WANTED else "",
            cause=pod.cause,
            node=pod.uid,
            scheduled=pod.node_exists,
            image_pulled=pod.node_exists,
        )
