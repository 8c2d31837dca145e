"""One job in a world, as an `AttemptBackend`: the decision core uses it like a cluster.

The head of an attempt runs on capacity that is always available, as by default on a cluster. The decision core bills
it, the stored commits and their egress, if the spec has prices of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from spotladder.core.facts.work import speed
from spotladder.core.model import (
    AskToCommit,
    Delete,
    Drain,
    Exit,
    Finish,
    Launch,
    Observation,
    PodPhase,
    PodSeen,
    Replace,
    Resize,
    Seconds,
    TakeOver,
)
from spotladder.core.reasons import Cause
from spotladder.sim.world.attempt import SimAttempt, SimPod, Tally, Trained
from spotladder.sim.world.log import SimulatedLog
from spotladder.sim.world.market import START, Market
from spotladder.sim.world.observed_attempt import attempt_seen
from spotladder.sim.world.program import ProgramPlan, SimulatedProgram


@dataclass
class SimBackend:
    """`tiers` maps the name of a tier to its zone. Only attempts reveal whether a zone has capacity."""

    market: Market
    workers: int
    program: ProgramPlan
    tiers: Mapping[str, str]
    bill: Tally = field(default_factory=Tally)
    log: SimulatedLog = field(init=False)
    changes: int = 0
    _attempts: dict[int, SimAttempt] = field(default_factory=dict)
    _advanced_at: Seconds = 0.0
    _uids: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.log = SimulatedLog(self.program)

    # --- AttemptBackend ---

    def launch(self, action: Launch) -> None:
        """Create all pods of the attempt; those with capacity get their nodes."""
        if action.attempt in self._attempts:
            return
        zone = self.tiers[action.tier]
        attempt = SimAttempt(action.attempt, zone, [], self.workers, standby=action.standby)
        self._attempts[action.attempt] = attempt
        self.changes += 1
        self._request(attempt, self.workers)

    def drain(self, action: Drain) -> None:
        """Stop the program: it commits first if it trains."""
        attempt = self._attempts.get(action.attempt)
        if attempt is None or attempt.draining or attempt.exit is not None:
            return
        attempt.draining = True
        self.changes += 1
        if attempt.program is None:
            attempt.exit = Exit.INTERRUPTED
        else:
            attempt.program.stop(self.market.now)

    def delete(self, action: Delete) -> None:
        """Remove the attempt and its nodes at once."""
        attempt = self._attempts.pop(action.attempt, None)
        if attempt is not None:
            self.changes += 1
            self._release(attempt)

    def replace(self, action: Replace) -> None:
        """Request a pod beside each of these. The program commits before a handover, and the pods are removed after
        it."""
        attempt = self._attempts.get(action.attempt)
        if attempt is None:
            return
        attempt.leaving = frozenset(action.pods)
        program = attempt.program
        if action.hand_over and program is not None and attempt.going and not attempt.handing_over:
            attempt.handing_over = True
            program.stop(self.market.now)
            self._commit(attempt, program)
            self.changes += 1
        if action.remove and not (attempt.handing_over and attempt.program is not None):
            for pod in attempt.going:
                self._pay(pod)
                attempt.pods.remove(pod)
                self.changes += 1
        self._request(attempt, self.workers)

    def resize(self, action: Resize) -> None:
        """Request all workers again, or leave out those without a node so that the program begins."""
        attempt = self._attempts.get(action.attempt)
        if attempt is None:
            return
        if action.workers >= self.workers:
            self._request(attempt, self.workers)
            return
        placed = [pod for pod in attempt.pods if pod.node is not None]
        if not attempt.size and action.workers <= len(placed) < attempt.wanted:
            attempt.pods, self.changes = placed, self.changes + 1
            self._request(attempt, len(placed))

    def take_over(self, action: TakeOver) -> None:
        """Let the program of a standby attempt resume from the newest commit, once its workers are ready."""
        attempt = self._attempts.get(action.attempt)
        if attempt is not None and attempt.standby:
            attempt.standby = False
            self.changes += 1
            self._place()

    def ask_to_commit(self, action: AskToCommit) -> None:
        """Let the program take a snapshot now."""
        attempt = self._attempts.get(action.attempt)
        if (
            attempt is not None
            and attempt.program is not None
            and attempt.program.ask(action.asked_at, self.market.now)
        ):
            self.changes += 1

    def finish(self, action: Finish) -> None:  # noqa: ARG002 – the port's
        """Release all resources of the job."""
        for number in list(self._attempts):
            self._release(self._attempts.pop(number))
            self.changes += 1

    def observe(self) -> Observation:
        """The current objects."""
        progress = self.log.progress
        attempts = tuple(attempt_seen(one, self.market, self.program, self.workers) for one in self._attempts.values())
        grants = ((tier, self.market.grants.newest(zone)) for tier, zone in self.tiers.items())
        granted = {tier: START + at for tier, at in grants if at is not None}
        return Observation(self.changes, attempts, progress, granted=granted)

    # --- the world ---

    @property
    def watched(self) -> set[str]:
        """The zones whose changes the job may observe: those of its attempts, and those with known prices."""
        used = {attempt.zone for attempt in self._attempts.values()}
        return used | {name for name in self.tiers.values() if self.market.zones[name].varying}

    def next_event(self) -> Seconds:
        """The time of the job's next event, apart from the market; infinity: never."""
        now, times = self.market.now, [math.inf]
        for attempt in self._attempts.values():
            if attempt.exit is not None:
                continue
            nodes = [pod.node for pod in attempt.pods if pod.node is not None]
            times += [moment for node in nodes for moment in (node.up_at, node.ready_at) if moment > now]
            if attempt.program is not None:
                times.append(attempt.program.wakes_at())
                if attempt.program.grows_at > now:
                    times.append(attempt.program.grows_at)
            elif attempt.standby and attempt.held_at is not None and attempt.held_at > now:
                times.append(attempt.held_at)
        return min(times)

    def trained(self) -> dict[int, Trained]:
        """What the newest program of each attempt has trained, by the number of the attempt."""
        found = {number: self._trained(attempt) for number, attempt in self._attempts.items()}
        return {number: trained for number, trained in found.items() if trained is not None}

    def _trained(self, attempt: SimAttempt) -> Trained | None:
        program = attempt.program
        if program is None or program.step(self.market.now) < program.base + 1:
            return attempt.trained
        return Trained(program.trains_at + 1 / program.rate, program.base + 1, program.step(self.market.now))

    def advance(self) -> None:
        """Process the events up to the current time of the market."""
        now = self.market.now
        self.changes += 1
        self._count_waiting()
        for attempt in self._attempts.values():
            if attempt.program is not None and attempt.exit is None:
                self._commit(attempt, attempt.program)
            for pod in [pod for pod in attempt.pods if pod.node is not None]:
                if pod.node is not None and pod.node.gone_at is not None and pod.node.gone_at <= now:
                    self._lose(attempt, pod, Cause.INTERRUPTION)
        self._place()

    def lose(self, uid: str) -> None:
        """Make the node of this pod fail."""
        for attempt in self._attempts.values():
            for pod in attempt.pods:
                if pod.uid == uid:
                    self._lose(attempt, pod, Cause.NODE_LOST)
                    self.changes += 1
                    self._place()
                    return

    def end_program(self, number: int, how: Exit, message: str = "") -> None:
        """End the attempt's program by itself."""
        attempt = self._attempts[number]
        attempt.exit, attempt.message = how, message
        self.changes += 1

    # --- internals ---

    def _request(self, attempt: SimAttempt, workers: int) -> None:
        """Ask for this number of workers beside those that are being replaced."""
        attempt.wanted = workers
        for _ in range(workers + len(attempt.going) - len(attempt.pods)):
            attempt.pods.append(self._pod(attempt))
            self.changes += 1
        self._place()

    def _size(self, attempt: SimAttempt) -> int:
        """The number of workers with which the program starts now; 0: it waits. KubeRay starts it when all requested
        workers are ready; then an elastic program restarts with the largest size for which workers are ready."""
        ready, sizes = attempt.ready(self.market.now), self.program.sizes
        if not sizes:
            return self.workers if ready >= self.workers else 0
        if not attempt.size and ready < attempt.wanted:
            return 0
        return max((size for size in sizes if size <= ready), default=0)

    def _grow(self, attempt: SimAttempt) -> None:
        """Let an elastic program commit and restart if it has trained for long enough and could have more workers."""
        program, now = attempt.program, self.market.now
        if program is not None and program.grows_at <= now and self._size(attempt) > attempt.size:
            attempt.handing_over = True
            program.stop(now)

    def _pod(self, attempt: SimAttempt) -> SimPod:
        return SimPod(f"{attempt.number}-{next(self._uids)}")

    def _place(self) -> None:
        """Give nodes to waiting pods, start programs whose workers are ready, and let elastic ones grow."""
        for attempt in self._attempts.values():
            if attempt.exit is not None or attempt.draining:
                continue
            for pod in attempt.pods:
                if pod.node is None:
                    pod.node = self.market.give(attempt.zone)
            handed_over = not (attempt.handing_over and attempt.going)
            if attempt.program is None and handed_over and (size := self._size(attempt)):
                self._begin(attempt, size)
            self._grow(attempt)

    def _begin(self, attempt: SimAttempt, size: int) -> None:
        """Start the program with this number of workers, which are ready, from the newest commit. That of a standby
        attempt is held before it reads the checkpoint, and begins no log entry."""
        now, restart = self.market.now, self.program.restart
        if attempt.held_at is not None:
            restart, size = max(0.0, attempt.held_at - now) + self.program.resume, attempt.size
        if attempt.standby:
            if attempt.held_at is None:
                attempt.held_at, attempt.size = now + max(0.0, restart - self.program.resume), size
            return
        self.log.start(attempt.number, size)
        rate = speed(size, self.workers)
        attempt.program = SimulatedProgram(self.program, now, self.log.committed, restart, rate, zone=attempt.zone)
        attempt.size = size
        attempt.handing_over, attempt.held_at = False, None

    def _commit(self, attempt: SimAttempt, program: SimulatedProgram) -> None:
        step = program.advance(self.market.now)
        if step is None:
            return
        if self.log.fences(attempt.number):
            attempt.exit = Exit.FENCED
            return
        self.log.commit(step, START + self.market.now)
        if step == self.program.work:
            attempt.exit = Exit.SUCCEEDED
        elif program.stopping and (attempt.draining or not attempt.handing_over):
            attempt.exit = Exit.INTERRUPTED
        if attempt.exit is not None or program.stopping:
            self._stop(attempt)

    def _stop(self, attempt: SimAttempt) -> None:
        """End the program: work that it has not committed is lost."""
        program, now = attempt.program, self.market.now
        attempt.trained = self._trained(attempt)
        if program is not None:
            self.bill.lose_work(attempt.zone, max(0.0, program.step(now) - self.log.committed))
            self.bill.overhead += program.overhead(now)
            attempt.program = None

    def _lose(self, attempt: SimAttempt, pod: SimPod, cause: Cause) -> None:
        """Lose the pod and request a replacement. The program of the gang ends."""
        attempt.lost = [*attempt.lost, PodSeen(pod.uid, phase=PodPhase.LOST, ready=False, cause=cause)]
        attempt.lost = attempt.lost[-2 * self.workers :]
        attempt.pods.remove(pod)
        if len(attempt.pods) < attempt.wanted + len(attempt.going):
            attempt.pods.append(self._pod(attempt))
        self._pay(pod)
        if cause is Cause.NODE_LOST:
            self.bill.lose_node(attempt.zone)
        if attempt.exit is None:
            self._stop(attempt)
            attempt.held_at = None
            if attempt.draining:
                attempt.exit = Exit.LOST

    def _count_waiting(self) -> None:
        """Add the cost of nodes without a program since the last call."""
        since, now = self._advanced_at, self.market.now
        for attempt in self._attempts.values():
            if attempt.program is None and attempt.exit is None and not attempt.standby:
                for pod in attempt.pods:
                    if pod.node is not None and pod.node.up_at < now:
                        self.bill.waiting_usd += pod.node.zone.cost(max(since, pod.node.up_at), now)
        self._advanced_at = now

    def _release(self, attempt: SimAttempt) -> None:
        self._stop(attempt)
        for pod in attempt.pods:
            self._pay(pod)

    def _pay(self, pod: SimPod) -> None:
        """Return the node, and bill it from the time when it joined."""
        node, now = pod.node, self.market.now
        if node is None:
            return
        name, held = node.zone.plan.name, max(0.0, now - node.up_at)
        if held:
            self.bill.pay(name, node.zone.cost(node.up_at, now), held)
        if node.noticed_at is not None:
            self.bill.lose_node(name)
        self.market.take_back(node)
        pod.node = None
