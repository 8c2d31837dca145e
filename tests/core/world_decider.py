"""A decider for a random world: it crashes between any two effects and sees stale observations."""

from __future__ import annotations

from dataclasses import dataclass

from spotladder.core.backend import apply
from spotladder.core.lifecycle import decide
from spotladder.core.model import (
    TERMINAL,
    Action,
    AskToCommit,
    Attempt,
    Decision,
    JobSpec,
    JobState,
    Loss,
    Observation,
    TakeOver,
    codec,
)
from spotladder.core.policies import Policy
from spotladder.core.policies.ordered import Ordered
from spotladder.core.reasons import Reason
from spotladder.core.situation import LIVE, Situation
from tests.core.worlds import RandomWorld

STORED_EVERY = 8
"""Reconciles for each time that the state is stored and loaded, which takes a third of the time of a world. All tests
with `SteppedJob` do so after every decision."""


@dataclass
class DeciderCrash(Exception):
    """The decider crashes here."""


class Decider:
    """Drives the decision core like a controller (load, decide, apply, persist) and crashes between the steps."""

    def __init__(self, world: RandomWorld, crashes: float, policy: Policy | None = None) -> None:
        self.world, self.crashes = world, crashes
        self.policy = policy or Ordered()
        self.state = JobState()
        self.losses: list[Loss] = []
        self.observations: list[Observation] = []
        self.acted = -1  # the revision of the newest observation that lacks an effect
        self.wake_at: float | None = world.now
        self.hedged = 0  # how many attempts were deleted because their hedge was ready first

    def look(self) -> None:
        """Reconcile once."""
        world, before = self.world, self.state
        seen = world.observe()
        self.observations.append(seen)
        if self.crashes and world.random.random() < 0.1:
            # Repeat an earlier observation. By the port, every accepted observation has the effects of all earlier
            # calls, so one from before the last effect is repeated only if its revision makes it rejected.
            repeatable = [
                old for old in self.observations[-5:] if old.revision < before.revision or old.revision > self.acted
            ]
            seen = world.random.choice(repeatable)
        now = world.now - (world.random.choice([0.5, 3600.0]) if self.crashes and world.random.random() < 0.03 else 0)
        decision = decide(world.spec, before, seen, now, self.policy)
        if world.random.random() < 0.1:
            assert decision == decide(world.spec, before, seen, now, self.policy), "a function of its arguments"
        assert not (decision.moves and decision.actions)
        number = before.attempt.number if before.attempt else 0
        if any((move.reason, move.attempt) == (Reason.INSUFFICIENT_CAPACITY, number) for move in decision.moves):
            assert not Situation(world.spec, before, seen, now).all_placed, "a slow start is no missing capacity"
        for record in decision.state.tiers:
            assert record.exhausted_by in _EXHAUSTING
        if seen.revision >= before.revision:
            _check_queue(world.spec, before, seen, decision)
        if before.stage in TERMINAL:
            assert decision.state.stage is before.stage
        try:
            for action in decision.actions:
                self._maybe_die()
                self._apply(action)
            self._maybe_die()
        except DeciderCrash:
            self.wake_at = world.now  # another decider starts at once
            return
        self.state = decision.state
        if len(self.observations) % STORED_EVERY == 0:
            self.state = codec.load_state(codec.dump(self.state))
            assert self.state == decision.state
        self._check_overlap(before, decision)
        self.losses.extend(decision.losses)
        if (live := self.state.attempt) and live.number in world.programs and not self.crashes:
            assert live.workers == world.programs[live.number].workers, "compared with the spec at its launch"
        self.wake_at = decision.wake_at
        replanned = before.attempt and self.state.attempt and _plan(before.attempt) != _plan(self.state.attempt)
        replanned = replanned or _number(before.standby.attempt) != _number(self.state.standby.attempt)
        assert self.wake_at is None or decision.moves or replanned or self.wake_at > now, "a busy loop"

    def _check_overlap(self, before: JobState, decision: Decision) -> None:
        """No attempt starts or continues beside a live one once the budget is spent, and a hedge exhausts no tier."""
        overlap, state = self.world.spec.overlap, decision.state
        spent = overlap is not None and overlap.budget is not None and state.surplus.overlap >= overlap.budget
        assert not (spent and state.stage in LIVE and state.standby.attempt), "beyond overlap.budget"
        for move in decision.moves:
            if move.reason is Reason.HEDGED:
                self.hedged += 1
                assert state.record(move.tier).exhausted_by is before.record(move.tier).exhausted_by

    def _apply(self, action: Action) -> None:
        self.acted = self.world.revision
        if isinstance(action, TakeOver | AskToCommit):
            assert self.state.attempt is not None
            assert action.attempt == self.state.attempt.number, "only the live attempt may write"
        apply(self.world, action)

    def _maybe_die(self) -> None:
        if self.world.random.random() < self.crashes:
            raise DeciderCrash

    def run(self, passes: int) -> None:
        """Advance the world; the decider reconciles at its `wake_at` or after an event."""
        for _ in range(passes):
            if self.state.stage in TERMINAL:
                return
            events = self.world.random.choice([1.0, 5.0, 20.0])
            if self.wake_at is not None and self.wake_at <= self.world.now + events:
                self.world.pass_time(max(0.0, self.wake_at - self.world.now))
            else:
                self.world.pass_time(events)
            self.look()

    def run_on_timers_only(self, passes: int) -> None:
        """The decider gets no events: it reconciles only at its own `wake_at`."""
        for _ in range(passes):
            if self.state.stage in TERMINAL:
                return
            if self.wake_at is None and self._waits_in_queue():
                self.world.pass_time(self.world.random.choice([5.0, 3600.0]))  # Until the queue admits the attempt.
                if not self._waits_in_queue():
                    self.look()
                continue
            assert self.wake_at is not None, f"never woken again in {self.state}"
            self.world.pass_time(max(0.0, self.wake_at - self.world.now))
            self.look()

    def _waits_in_queue(self) -> bool:
        program = self.world.programs.get(_number(self.state.attempt))
        return program is not None and program.queue is not None and program.queue.held


_EXHAUSTING = (None, Reason.INSUFFICIENT_CAPACITY, Reason.MAX_FAILURES_EXCEEDED, Reason.QUEUE_TIMEOUT)

_AFTER_A_LOSS_OF_QUOTA = {
    Reason.HEAD_LOST,  # a client suspended it
    Reason.MAX_FAILURES_EXCEEDED,
}


def _check_queue(spec: JobSpec, before: JobState, seen: Observation, decision: Decision) -> None:
    """An attempt that its queue holds has no losses, unless a client suspended it, and no timer but queueTimeout."""
    attempt = before.attempt
    one = seen.attempt(attempt.number) if attempt is not None and before.stage in LIVE else None
    if attempt is None or one is None or one.queue is None:
        return
    reasons = {move.reason for move in decision.moves if move.attempt == attempt.number}
    waited = before.impeded is not None and before.impeded.reason in (
        Reason.WAITING_FOR_QUOTA,
        Reason.INADMISSIBLE,
        Reason.QUOTA_EXCEEDED,
    )
    tier, since = spec.tier(attempt.tier), before.timers.waiting_since
    expired = tier is not None and since is not None and before.clock >= since + tier.provision_timeout
    if one.queue.held or (waited and not expired):
        assert Reason.INSUFFICIENT_CAPACITY not in reasons, "provisionTimeout runs while the queue holds the attempt"
    if one.queue.held:
        losses = [loss for loss in decision.losses if loss.attempt == attempt.number and not loss.noticed]
        assert len(losses) <= 1, "an attempt that a client suspends is one failure"
        assert not losses or reasons & _AFTER_A_LOSS_OF_QUOTA
        assert attempt.running_at is not None or attempt.known.alive or not losses, "it only waits"
        assert not reasons & {Reason.START_TIMEOUT, Reason.STALLED}


def _plan(attempt: Attempt) -> tuple[object, ...]:
    return (
        attempt.template,
        attempt.notice.leaving,
        attempt.notice.replace_by,
        attempt.notice.handing_over_since,
        attempt.notice.leave_by,
    )


def _number(attempt: Attempt | None) -> int:
    return attempt.number if attempt is not None else 0
