"""A decision in progress: the state so far, the transitions and the counted failures."""

from __future__ import annotations

from spotladder.core import limits
from spotladder.core.accounting import account, rewound
from spotladder.core.copying import replace
from spotladder.core.impediment import impeded
from spotladder.core.losses import count, exhaust
from spotladder.core.model import (
    Impediment,
    Instant,
    JobSpec,
    JobState,
    Loss,
    Move,
    Observation,
    PodSeen,
    Seconds,
    StandbyChange,
    TierChoice,
)
from spotladder.core.moving import moved
from spotladder.core.policies import Policy
from spotladder.core.reasons import Reason
from spotladder.core.situation import Situation
from spotladder.core.tier_view import view_of


class Draft:
    """Mutable; used by one call of `decide` only.

    `last` is when the last decision was made, None before the first. `since_last` is the time since then, 0 if the
    clock stepped back. `replanned`: the plan of the live attempt changed without a move: with the spec before its
    launch, by a step of a replacement, or by a standby attempt. `impeded_before` is the impediment of the last
    decision, and `choice` the policy's newest choice.
    """

    def __init__(self, spec: JobSpec, state: JobState, seen: Observation, now: Instant, policy: Policy) -> None:
        self.spec, self.seen, self.now, self.policy = spec, seen, now, policy
        self.last: Instant | None = state.clock or None
        self.since_last: Seconds = max(0.0, now - state.clock) if state.clock else 0.0
        self.impeded_before = state.impeded
        self.state = replace(account(rewound(state, now), spec, now), revision=seen.revision)
        self.moves: list[Move] = []
        self.losses: list[Loss] = []
        self.standby_changes: list[StandbyChange] = []
        self.replanned = False
        self.choice = TierChoice(None)

    @property
    def situation(self) -> Situation:
        """The facts that follow from the current state of the draft."""
        return Situation(self.spec, self.state, self.seen, self.now)

    def explain(self) -> None:
        """Record in the state why the job is not training, and since when."""
        before, now = self.state.impeded, impeded(self.situation)
        if before is not None and before.impediment is Impediment.STORE and now != before:
            # The work of the outage is committed now, so stallTimeout starts again.
            self.state = replace(self.state, progress_at=self.now)
        if now != before:
            self.state = replace(self.state, impeded=now)

    def choose(self, *, live: bool) -> TierChoice:
        """Ask the policy for its choice."""
        self.choice = self.policy.choose(view_of(self.situation, live=live))
        return self.choice

    def move(self, reason: Reason, message: str = "") -> None:
        """Change the stage according to the transition table. Raises IllegalTransition without a change."""
        self.state, move = moved(self.situation, reason, message)
        self.moves.append(move)

    # --- failures ---

    def count(self, pods: list[PodSeen]) -> None:
        """Count these pods as failures of the tier, each pod once."""
        self.state, losses = count(self.state, pods, self.spec.failure_unit)
        self.losses.extend(losses)

    def exhaust_if_exceeded(self) -> None:
        """Mark the tier as exhausted if it has had more failures than allowed."""
        if limits.over_tier_limit(self.situation):
            self.state = exhaust(self.state, self.situation.attempt.tier, Reason.MAX_FAILURES_EXCEEDED)

    def end_if_exceeded(self) -> bool:
        """End the attempt if its tier or the job has had more failures than allowed. Returns whether it ended."""
        if limits.over_backoff_limit(self.situation):
            self.move(Reason.BACKOFF_LIMIT_EXCEEDED, limits.all_failures(self.situation))
        elif limits.over_tier_limit(self.situation):
            self.exhaust_if_exceeded()
            self.move(Reason.MAX_FAILURES_EXCEEDED, limits.tier_failures(self.situation))
        else:
            return False
        return True

    def end(self, reason: Reason, message: str = "") -> None:
        """End the attempt for `reason`, or because a limit of failures is exceeded if one is."""
        if not self.end_if_exceeded():
            self.move(reason, message)

    def end_by_loss(self, reason: Reason, unseen: PodSeen, message: str = "") -> None:
        """End the attempt because of a loss. Counts one failure, that of `unseen`, unless a lost pod was counted."""
        if not self.state.loss_counted:
            self.count([unseen])
        self.end(reason, message)
