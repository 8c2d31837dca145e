"""The true state of attempts in a random world: their pods, and how far their programs are."""

from __future__ import annotations

from dataclasses import dataclass, field

from spotladder.core.model import (
    Exit,
    PodPhase,
    PodRole,
    QueueSeen,
)
from spotladder.core.reasons import Cause


@dataclass
class Pod:
    uid: str
    role: PodRole
    phase: PodPhase = PodPhase.PENDING
    cause: Cause = Cause.UNKNOWN
    dies_at: float | None = None
    marked_at: float | None = None  # its node is suspected until then
    dead: bool = False  # its node is lost
    drained: bool = False  # an administrator has cordoned its node
    scarce: bool = False  # it waits for a node for a long time
    node: str = ""  # its node in a pool

    @property
    def leaves(self) -> bool:
        return self.dies_at is not None or self.drained


@dataclass
class TrueAttempt:
    """The true state of one attempt."""

    number: int
    tier: str
    pods: list[Pod]
    begun: bool = False  # its program runs, and may be held
    started: bool = False
    step: int = 0
    exit: Exit | None = None
    drained_at: float | None = None
    asked: bool = False
    unheard_until: float = 0.0
    heard: bool = True
    suspected: bool = False  # while unheard of: its nodes are suspected instead of marked
    stopped: bool = False  # while unheard of: its heartbeats have stopped
    workers: int = 0  # spec.workers at launch
    wanted: int = 0  # workers asked for
    least: int = 0  # workers with which it can train
    begins_with_all_workers: bool = False  # it begins only when all workers are ready
    size: int = 0  # workers with which an elastic program trains
    hands_over: bool = False
    stands_by: bool = False
    held: bool = False  # it waits until it may take over
    leaving: set[str] = field(default_factory=set)  # pods that the program was asked to continue without
    avoids: tuple[str, ...] = ()  # nodes that its pods may not use
    removed_at: float | None = None  # it is being removed until then
    queue: QueueSeen | None = None  # what its admission queue says of it
    suspended_at: float | None = None  # its queue removes its pods then
    deactivated: bool = False  # its queue holds it until it is activated
    hung_since: float | None = None  # it makes no step, and ignores every request
    hang_reported: bool = False  # the backend observes this

    @property
    def runs(self) -> bool:
        return self.exit is None and any(pod.phase is PodPhase.RUNNING for pod in self.pods)

    @property
    def all_ready(self) -> bool:
        works = [pod for pod in self.pods if pod.phase is PodPhase.RUNNING and not pod.dead]
        workers = sum(pod.role is PodRole.WORKER for pod in works)
        heads = all(pod.phase is PodPhase.RUNNING for pod in self.pods if pod.role is PodRole.HEAD)
        needed = self.wanted if self.begins_with_all_workers and not self.begun else self.least
        return bool(self.pods) and heads and workers >= needed

    @property
    def elastic(self) -> bool:
        return self.least < self.workers

    @property
    def staying(self) -> int:
        works = (pod for pod in self.pods if pod.phase is PodPhase.RUNNING and not pod.dead and not pod.leaves)
        return sum(pod.role is PodRole.WORKER for pod in works)
