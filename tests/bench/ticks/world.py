"""The tick world as an `AttemptBackend`: the decision core uses it like a cluster."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from spotladder.core.model import (
    AttemptSeen,
    Delete,
    Drain,
    Exit,
    Finish,
    Instant,
    Launch,
    Observation,
    PodPhase,
    PodSeen,
    Progress,
)
from spotladder.core.reasons import Cause
from tests.bench.ticks.job import START, TickJob, TickTier

NO_CAPACITY = "the trace has no capacity now"


@dataclass
class _SimulatedAttempt:
    """One attempt. `left` is the remaining overhead. `generation` counts its starts."""

    number: int
    tier: TickTier
    running: bool = False
    generation: int = 0
    left: int = 0
    lost: PodSeen | None = None
    exit: Exit | None = None

    @property
    def pod(self) -> str:
        return f"{self.number}-{self.generation}"


@dataclass
class TickWorld:
    """`begin` changes the availability, `advance` the work and the cost; the other methods are those of
    `AttemptBackend`."""

    job: TickJob
    now: Instant = START
    tick: int = 0
    done: int = 0
    evictions: int = 0
    changes: int = 0
    billed: Counter[float] = field(default_factory=Counter)
    _attempts: dict[int, _SimulatedAttempt] = field(default_factory=dict)

    # --- AttemptBackend ---

    def launch(self, action: Launch) -> None:
        """Create the attempt; its gang runs at once if the tier has capacity."""
        if action.attempt in self._attempts:
            return
        tier = next(entry for entry in self.job.tiers if entry.tier.name == action.tier)
        self._attempts[action.attempt] = attempt = _SimulatedAttempt(action.attempt, tier)
        self._start(attempt)
        self.changes += 1

    def drain(self, action: Drain) -> None:
        """Stop the program at once: all work is committed."""
        attempt = self._attempts.get(action.attempt)
        if attempt is not None and attempt.exit is None:
            attempt.exit = Exit.INTERRUPTED
            self.changes += 1

    def delete(self, action: Delete) -> None:
        """Remove the attempt at once."""
        if self._attempts.pop(action.attempt, None) is not None:
            self.changes += 1

    def finish(self, action: Finish) -> None:
        """Do nothing: the job has no other resources."""
        self._attempts.clear()

    def observe(self) -> Observation:
        """The objects in this tick."""
        has = {entry.tier.name: entry.has(self.tick) for entry in self.job.tiers}
        unavailable = {name: NO_CAPACITY for name, there in has.items() if not there}
        offered = frozenset(has) - unavailable.keys()
        progress = Progress(self.done, self.job.work, self.now if self.done else None)
        attempts = tuple(
            AttemptSeen(one.number, self._pods(one), one.exit, total=self.job.work) for one in self._attempts.values()
        )
        revision = self.tick * 1000 + self.changes
        return Observation(revision, attempts, progress, unavailable, offered=offered)

    def _pods(self, attempt: _SimulatedAttempt) -> tuple[PodSeen, ...]:
        phase = PodPhase.RUNNING if attempt.running else PodPhase.PENDING
        pod = PodSeen(attempt.pod, phase=phase, ready=attempt.running, unschedulable=not attempt.running)
        return (pod,) if attempt.lost is None else (attempt.lost, pod)

    # --- the world ---

    @property
    def running(self) -> bool:
        """Whether a gang runs."""
        return any(attempt.running and attempt.exit is None for attempt in self._attempts.values())

    def begin(self, tick: int) -> None:
        """Apply the availability of this tick."""
        self.tick, self.now = tick, START + tick * self.job.tick
        for attempt in self._attempts.values():
            attempt.lost = None
            if attempt.exit is not None:
                continue
            if attempt.running and not attempt.tier.has(tick):
                attempt.lost = PodSeen(attempt.pod, phase=PodPhase.LOST, ready=False, cause=Cause.INTERRUPTION)
                attempt.running = False
                attempt.generation += 1
                self.evictions += 1
            elif not attempt.running:
                self._start(attempt)

    def advance(self) -> bool:
        """Work and pay until the next tick, or until the job finishes; then returns True, with that moment as `now`."""
        for attempt in self._attempts.values():
            if not attempt.running or attempt.exit is not None:
                continue
            starting = min(attempt.left, self.job.tick)
            progress = min(self.job.tick - starting, self.job.work - self.done)
            finished = self.done + progress == self.job.work
            length = starting + progress if finished else self.job.tick
            attempt.left -= starting
            self.done += progress
            self.billed[attempt.tier.price(self.tick)] += length
            if finished:
                attempt.exit = Exit.SUCCEEDED
                self.now += length
                self.changes += 1
                return True
        return False

    def _start(self, attempt: _SimulatedAttempt) -> None:
        if attempt.tier.has(self.tick):
            attempt.running = True
            attempt.left = self.job.overhead
