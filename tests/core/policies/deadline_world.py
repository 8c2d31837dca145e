"""A job with a deadline under the real `decide`, which is called after events and at the times that it asked for, as a
controller does: neither the work of the job nor the duration of a start is given.

Spot capacity comes and goes without notice. Each start waits for its node for a random time, then boots. The commit log
and the heartbeat are read every half a minute, as the controller reads them. Everything random comes from one seeded
generator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from random import Random

from spotladder.core.facts.starts import LEAST_RESERVE
from spotladder.core.lifecycle import decide
from spotladder.core.model import (
    TERMINAL,
    AttemptSeen,
    Delete,
    Drain,
    Exit,
    JobSpec,
    JobState,
    Launch,
    Observation,
    Progress,
    Stage,
)
from spotladder.core.policies import Policy
from spotladder.core.policies.safety_net import WAIT_SHARE
from spotladder.core.reasons import Cause
from tests.core.builders import START, attempt, head, lost, pending, spec, tier, worker

LATENCY = 2.0
"""Seconds from an event, or from the time of a wake-up, to the decision."""

READ_INTERVAL = 30.0
DECISION_INTERVAL = 60.0
SPOT_WAIT = (30.0, 120.0)
COMMIT_SECONDS = 5.0
PROVISION_TIMEOUT = 600.0
GRACE = 90.0
SPOT, ON_DEMAND = "spot", "on-demand"


@dataclass(frozen=True)
class Plan:
    """Times in seconds. `work` is the training time of `steps` steps, of which every `commit_every`th is committed.
    `longest` is the longest wait for an on-demand node. `spells` are the mean lengths of the intervals with spot
    capacity and without; without capacity at all if the first is 0. `spare` is how much later the deadline is than one
    that could only just be kept. `heartbeats`: the program reports its steps; else only the commits show them.
    `counts`: it reports how many steps it will make."""

    work: float
    spare: float = 0.0
    boot: float = 40.0
    longest: float = 240.0
    spells: tuple[float, float] = (1800.0, 1800.0)
    steps: int = 1000
    commit_every: int = 20
    heartbeats: bool = True
    counts: bool = True

    @property
    def pace(self) -> float:
        return self.work / self.steps

    @property
    def length(self) -> float:
        """From the submission to the deadline. A job that waits for spot capacity for WAIT_SHARE of it, and loses the
        attempt that starts last before its pace is known, can then do all of its work on demand, with the
        reserves of the safety net."""
        measured = 3 * READ_INTERVAL + (0.0 if self.heartbeats and self.counts else 2 * self.commit_every * self.pace)
        lost = SPOT_WAIT[1] + self.boot + measured
        least = lost + GRACE + DECISION_INTERVAL + max(LEAST_RESERVE, self.longest + self.boot) + self.work
        return least / (1.0 - WAIT_SHARE) + self.spare


@dataclass
class _Program:
    """An attempt in the world. `ready_at` is when its nodes are ready; infinity while they are not known to come."""

    number: int
    tier: str
    base: int
    ready_at: float
    starts: int = 0
    exit: Exit | None = None
    lost: bool = False
    stops_at: float = math.inf


@dataclass
class DeadlineWorld:
    plan: Plan
    policy: Policy
    random: Random
    spec: JobSpec = field(init=False)
    state: JobState = field(default_factory=JobState)
    now: float = START
    held: list[tuple[float, str]] = field(default_factory=list)
    _programs: dict[int, _Program] = field(default_factory=dict)
    _log: Progress = field(default_factory=Progress)
    _read: tuple[Progress, int] = (Progress(), 0)
    _reads_at: float = START
    _changes_at: float = START
    _has_spot: bool = False
    _revision: int = 0

    def __post_init__(self) -> None:
        self.spec = spec(
            tier(SPOT, -1, PROVISION_TIMEOUT),
            tier(ON_DEMAND, -1, PROVISION_TIMEOUT),
            workers=1,
            deadline=START + self.plan.length,
            grace=GRACE,
            stall_timeout=max(600.0, 4 * self.plan.commit_every * self.plan.pace),
        )
        self._has_spot = bool(self.plan.spells[0]) and self.random.random() < 0.5
        self._changes_at = START + self._spell()

    def run(self) -> JobState:
        """Run the job until it ends. Returns its state then."""
        wake_at: float | None = START
        while self.state.stage not in TERMINAL:
            events = [self._reads_at, self._changes_at, *map(self._next_event, self._programs.values())]
            at = min(events if wake_at is None else [*events, wake_at])
            self.now = max(self.now, at) + LATENCY
            self._advance()
            wake_at = self._decide()
        return self.state

    # --- the world ---

    def _spell(self) -> float:
        mean = self.plan.spells[0 if self._has_spot else 1]
        return self.random.expovariate(1.0 / mean) if self.plan.spells[0] else math.inf

    def _advance(self) -> None:
        while self.now >= self._changes_at:
            self._has_spot = not self._has_spot
            for program in self._programs.values():
                if program.tier == SPOT:
                    self._change(program)
            self._changes_at += self._spell()
        for program in self._programs.values():
            self._work(program, self.now)
        if self.now >= self._reads_at:
            self._take_reading()

    def _take_reading(self) -> None:
        newest = self._programs.get(max(self._programs, default=0))
        step = self._step(newest, self.now) if newest is not None and self._log.attempt == newest.number else 0
        self._read = self._log, step
        self._reads_at = self.now + READ_INTERVAL * self.random.uniform(0.75, 1.25)

    def _change(self, program: _Program) -> None:
        """Spot capacity comes or goes at `_changes_at`."""
        if program.exit is not None:
            return
        if self._has_spot:
            program.ready_at = self._changes_at + self.random.uniform(*SPOT_WAIT)
            return
        self._work(program, self._changes_at)
        program.lost = program.lost or program.ready_at <= self._changes_at
        program.base, program.ready_at, program.starts = self._log.step, math.inf, program.starts + 1
        program.stops_at = math.inf

    def _step(self, program: _Program, at: float) -> int:
        """The newest step of the program."""
        if program.ready_at == math.inf:
            return program.base
        done = int((min(at, program.stops_at) - program.ready_at - self.plan.boot) // self.plan.pace)
        return min(self.plan.steps, program.base + max(0, done))

    def _work(self, program: _Program, at: float) -> None:
        """Commit what the program has committed by then; end it if it has stopped."""
        if program.exit is not None or program.number < self._log.attempt or program.ready_at + self.plan.boot > at:
            return
        step, ends = self._step(program, at), at >= program.stops_at + COMMIT_SECONDS
        finished = step == self.plan.steps
        committed = step if ends or finished else step - step % self.plan.commit_every
        if committed > self._log.step or program.number > self._log.attempt:
            committed = max(committed, self._log.step)
            took_place = min(at, program.ready_at + self.plan.boot + (committed - program.base) * self.plan.pace)
            total = self.plan.steps if self.plan.counts and committed else 0
            self._log = Progress(committed, total, took_place, program.number)
        if finished or ends:
            program.exit = Exit.SUCCEEDED if finished else Exit.INTERRUPTED

    def _next_event(self, program: _Program) -> float:
        if program.exit is not None:
            return math.inf
        ends = program.ready_at + self.plan.boot + (self.plan.steps - program.base) * self.plan.pace
        moments = [program.ready_at, ends, program.stops_at + COMMIT_SECONDS]
        return min((at for at in moments if at > self.now), default=math.inf)

    # --- the controller ---

    def _decide(self) -> float | None:
        while True:
            decision = decide(self.spec, self.state, self._observe(), self.now, self.policy)
            self.state = decision.state
            for action in decision.actions:
                match action:
                    case Launch():
                        self._launch(action)
                    case Drain() if (program := self._programs.get(action.attempt)) is not None:
                        runs = program.ready_at + self.plan.boot <= self.now
                        program.stops_at = min(program.stops_at, self.now if runs else self.now - COMMIT_SECONDS)
                        program.exit = program.exit or (None if runs else Exit.INTERRUPTED)
                    case Delete():
                        self._programs.pop(action.attempt, None)
            if any(isinstance(action, Launch | Delete) for action in decision.actions):
                continue
            if not decision.moves:
                tier_name = self.state.tier if self.state.stage is Stage.RUNNING else ""
                if not self.held or self.held[-1][1] != tier_name:
                    self.held.append((self.now - START, tier_name))
                return decision.wake_at

    def _launch(self, action: Launch) -> None:
        if action.attempt in self._programs:
            return
        waits = self.random.uniform(*(SPOT_WAIT if action.tier == SPOT else (5.0, self.plan.longest)))
        ready_at = self.now + waits if action.tier == ON_DEMAND or self._has_spot else math.inf
        self._programs[action.attempt] = _Program(action.attempt, action.tier, self._log.step, ready_at)

    def _observe(self) -> Observation:
        self._revision += 1
        for program in self._programs.values():
            if program.exit is not None and self._read[0] != self._log:
                self._take_reading()  # The controller reads the log when an attempt ends.
        return Observation(self._revision, tuple(map(self._seen, self._programs.values())), self._read[0])

    def _seen(self, program: _Program) -> AttemptSeen:
        progress, step = self._read
        uid = f"w{program.number}-{program.starts}"
        pods = [head(), worker(uid) if program.ready_at <= self.now else pending(uid)]
        if program.lost:
            pods.append(lost(f"w{program.number}-{program.starts - 1}", Cause.INTERRUPTION))
        seen = attempt(program.number, *pods, exit=program.exit)
        if progress.attempt != program.number or not self.plan.heartbeats:
            return seen
        return replace(seen, step=step, total=self.plan.steps if self.plan.counts else 0)


def run_of(plan: Plan, policy: Policy, dice: Random) -> DeadlineWorld:
    """The world of this job after its end."""
    world = DeadlineWorld(plan, policy, dice)
    world.run()
    return world
