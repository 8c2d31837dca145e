"""`decide`: from what is wanted, remembered and seen, to what is to be done.

Rules
 1. One attempt is live at a time. Whatever else is seen of the job is deleted.
 2. A decision either changes what is intended or acts on what is already persisted, never both: an attempt is written
    down before it is launched, so a crash at any point leads to the same launch again, not to another.
 3. Under `handover: Fenced` the next attempt may start while the last is not confirmed gone, because the commit log
    fences it; under `WhenGone` it waits.
 4. Each lost pod is one failure, once. Failure number maxFailures + 1 spends the tier.
 5. provisionTimeout runs while the job is not whole for lack of capacity, and ends the tier. During every other
    impediment it stands still; the timers of those (`impediment.RULES`) end the attempt, not the tier.
 6. The program's own errors never change the tier; a failure that coincides with an eviction is an eviction.
 7. A terminal stage is never left.
 8. An attempt is judged by the spec that it was launched with. A spec with other pods is a reason for the next attempt.

The stages and what leads from one to another: `transitions.py`. Facts that decisions rest on: `situation.py`. What a
move brings along: `moving.py`. What a state asks for: `acting.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spotladder.core.accounting import account, held_nodes, rewound
from spotladder.core.acting import ACTION_RETRY_INTERVAL, actions, steady_reason, wake_at
from spotladder.core.crashes import (
    CRASH_LIMIT,
    corrected,
    crash_of,
    crashed_pods,
    forgotten,
    told,
    with_denial,
    with_failed_start,
)
from spotladder.core.durations import format_duration
from spotladder.core.evidence import contact_lost, maintenance, program_ended
from spotladder.core.impediment import Timer, classify, impeded, rule_of, timer_of
from spotladder.core.losses import (
    count,
    head_lost,
    lost_pods,
    noticed_pods,
    remember_alive,
    spend,
    synthetic,
    with_contact,
)
from spotladder.core.model import (
    TERMINAL,
    Attempt,
    AttemptSeen,
    Decision,
    Exhausted,
    Exit,
    Impediment,
    Instant,
    JobSpec,
    JobState,
    Loss,
    Move,
    Observation,
    OnInsufficientCapacity,
    PodRole,
    PodSeen,
    Stage,
    UpdateStrategy,
)
from spotladder.core.moving import launched_with, moved, planned
from spotladder.core.pacing import paced
from spotladder.core.policies import Policy
from spotladder.core.reasons import Cause, Reason
from spotladder.core.situation import LIVE, Situation
from spotladder.errors import InvalidSpec


def decide(spec: JobSpec, state: JobState, seen: Observation, now: Instant, policy: Policy) -> Decision:
    """What to do now.

    Args:
        spec: what the user wants at this moment; it may differ from the last time.
        state: the state of the last decision, as persisted; a new job starts with `JobState()`.
        seen: a snapshot of what exists. One older than the last is ignored.
        now: the caller's clock. It may step back; nothing then stands still or happens twice.
        policy: chooses tiers, within the limits that are kept here.

    Returns:
        The state to persist before anything else, the actions to apply, and when to call again at the latest.

    Raises:
        InvalidSpec: the spec has no tiers.
        IllegalTransition: a defect; nothing was changed.
    """
    if not spec.tiers:
        raise InvalidSpec("a job needs at least one tier", path="spec.tiers")
    if seen.revision < state.revision:
        return Decision(state, reason=Reason.STALE_OBSERVATION, wake_at=now + ACTION_RETRY_INTERVAL)
    return _Pass(spec, state, seen, now, policy).run()


class _Pass:
    """One decision in the making. Nothing of it outlives the call."""

    def __init__(self, spec: JobSpec, state: JobState, seen: Observation, now: Instant, policy: Policy) -> None:
        self.spec, self.seen, self.now, self.policy = spec, seen, now, policy
        self.since_last = max(0.0, now - state.clock) if state.clock else 0.0
        self.state = replace(account(rewound(state, now), spec, now), revision=seen.revision)
        self.moves: list[Move] = []
        self.losses: list[Loss] = []
        self.replanned = False

    def run(self) -> Decision:
        self._look()
        self._explain()
        while self._step():
            self._explain()
        moves, losses = tuple(self.moves), tuple(self.losses)
        if moves or self.replanned:
            return Decision(self.state, (), self.state.reason, self.now, moves, losses)
        todo = actions(self._here)
        return Decision(
            self.state, todo, steady_reason(self._here), wake_at(self._here, acted=bool(todo)), losses=losses
        )

    @property
    def _here(self) -> Situation:
        return Situation(self.spec, self.state, self.seen, self.now)

    def _explain(self) -> None:
        """Keep why the job is not training, and since when."""
        before, now = self.state.impeded, impeded(self._here)
        if before is not None and before.impediment is Impediment.STORE and now != before:
            # What was trained meanwhile is committed now: stallTimeout begins anew.
            self.state = replace(self.state, progress_at=self.now)
        self.state = replace(self.state, impeded=now)

    # --- looking ---

    def _look(self) -> None:
        """Take in what is seen of the live attempt: who is alive, who was lost, how many nodes are paid for."""
        if self.seen.progress != self.state.progress:
            if self.seen.progress.committed_at != self.state.progress.committed_at:
                self.state = replace(self.state, denials=0, denied="")
            self.state = replace(self.state, progress=self.seen.progress, progress_at=self.now)
        attempt = self.state.attempt
        if attempt is None:
            self.state = replace(self.state, nodes=0)
            return
        if contact_lost(self._here):
            self.seen = with_contact(self.seen, attempt, ready=self.state.stage is Stage.RUNNING)
        seen = self.seen.attempt(attempt.number)
        absent = seen is None and not self.seen.launched and self._here.reachable
        attempt = self._kept_with_spec(attempt, launched=attempt.seen or not absent)
        self.state = replace(self.state, attempt=attempt, nodes=held_nodes(seen))
        if seen is None:
            return
        counts = self._counts_losses(attempt)
        if counts:
            self._count(lost_pods(attempt, seen))
            attempt = self._here.attempt
        if seen.reachable:
            attempt = replace(attempt, seen=True)
            if counts:
                attempt = remember_alive(attempt, seen)
        if seen.exit is Exit.FAILED and attempt.exited_at is None:
            attempt = replace(attempt, exited_at=self.now)
        self.state = replace(self.state, attempt=attempt)

    def _kept_with_spec(self, attempt: Attempt, *, launched: bool) -> Attempt:
        """An attempt that is not launched yet will be launched with the spec of now: that is written down first."""
        if attempt.workers is None:  # written by a version that did not keep it
            return launched_with(attempt, self.spec)
        if launched or self.state.stage is not Stage.STARTING:
            return attempt
        planned = launched_with(attempt, self.spec)
        self.replanned = planned != attempt
        return planned

    def _counts_losses(self, attempt: Attempt) -> bool:
        """Pods lost while we take the attempt down ourselves are not failures; those of an eviction under way are."""
        if self.state.stage in LIVE:
            return True
        return self.state.stage is Stage.DRAINING and attempt.end_reason is Reason.EVICTION_NOTICE

    def _count(self, pods: list[PodSeen]) -> None:
        self.state, losses = count(self.state, pods, self.spec.failure_unit)
        self.losses.extend(losses)

    # --- moving ---

    def _step(self) -> bool:
        """Make one move if one is due."""
        before = len(self.moves)
        handlers: dict[Stage, Callable[[], None]] = {
            Stage.IDLE: self._idle,
            Stage.STARTING: self._starting,
            Stage.RUNNING: self._running,
            Stage.RECOVERING: self._recovering,
            Stage.DRAINING: self._draining,
            Stage.ENDING: self._ending,
            Stage.SUSPENDED: self._suspended,
        }
        if self.state.stage not in TERMINAL:
            handlers[self.state.stage]()
        return len(self.moves) > before

    def _move(self, reason: Reason, message: str = "") -> None:
        self.state, move = moved(self._here, reason, message)
        self.moves.append(move)

    # --- one method per stage: the first thing that is due ---

    def _idle(self) -> None:
        if (limit := self._here.limit) is not None:
            return self._move(*limit)
        if self.spec.suspend:
            return self._move(Reason.SUSPEND_REQUESTED)
        if corrected(self.state, self.spec):
            self.state = forgotten(replace(self.state, paused_until=None))
        if self.state.paused_until is not None and self.now < self.state.paused_until:
            return None
        if not self._here.open:
            return self._exhausted()
        choice = self.policy.choose(self._here.view(live=False))
        if choice.tier is not None and choice.tier in self._here.open:
            self.state, reason, message = planned(self._here, choice.tier)
            self._move(reason, message)
        return None

    def _exhausted(self) -> None:
        message = "every tier is spent: " + self._here.spent_tiers
        if self.spec.exhausted is Exhausted.FAIL:
            return self._move(Reason.TIERS_EXHAUSTED, message)
        until, reason = None, Reason.BEGIN_AGAIN
        if self.spec.exhausted is Exhausted.WAIT:
            pause = max(tier.provision_timeout for tier in self.spec.tiers)
            until, reason = self.now + pause, Reason.WAITING_TO_BEGIN_AGAIN
            message += f"; begins again at {self.spec.tiers[0].name} in {format_duration(pause)} (exhausted: Wait)"
        fresh = tuple(replace(record, failures=0, exhausted_by=None) for record in self.state.tiers)
        self.state = replace(self.state, tiers=fresh, tier="", paused_until=until)
        return self._move(reason, message)

    def _starting(self) -> None:
        if self._ended_by_itself() or self._unwanted() or program_ended(self._here):
            return None
        if self._here.whole:
            return self._move(Reason.WHOLE)
        seen = self._here.attempt_seen
        if seen is not None and self._moves_off(noticed_pods(self._here.attempt, seen)):
            return None
        if timer_of(self._here) is Timer.START and self._here.passed(self._here.start_deadline):
            limit = format_duration(self.spec.start_timeout)
            return self._start_failed(Reason.START_TIMEOUT, f"every pod was placed, and not ready within {limit}")
        return self._waited_too_long()

    def _start_failed(self, reason: Reason, crash: str, output: str = "", pod: str = "") -> None:
        """End an attempt that failed to start, and the job when its starts failed in the same way too often."""
        self.state = with_failed_start(self.state, crash, output)
        if self.state.crashes >= CRASH_LIMIT and self.spec.exhausted is Exhausted.FAIL:
            return self._move(Reason.CRASH_LOOP, told(self.state))
        return self._move(reason, ": ".join(filter(None, (pod, crash, output))))

    def _running(self) -> None:
        if self._ended_by_itself() or self._unwanted() or program_ended(self._here):
            return None
        seen = self._here.attempt_seen
        notices = noticed_pods(self._here.attempt, seen) if seen else []
        if self._moves_off(notices):
            return None
        if notices:
            self._count(notices)
            self._spend_if_exceeded()
            return self._move(Reason.EVICTION_NOTICE, _pods(notices))
        if not self._here.whole:
            return self._move(Reason.RECOVERING, self._what_is_missing)
        return self._stalled()

    def _recovering(self) -> None:
        if self._ended_by_itself() or self._unwanted() or program_ended(self._here):
            return None
        seen = self._here.attempt_seen
        notices = noticed_pods(self._here.attempt, seen) if seen else []
        if self._moves_off(notices):
            return None
        if notices:
            self._count(notices)
            return self._end_unless_exceeded(Reason.EVICTION_NOTICE, _pods(notices))
        if self._here.whole and self._here.moves_again:
            return self._move(Reason.WHOLE)
        self._waited_too_long()
        since = self.state.recovering_since
        if self.state.stage is not Stage.RECOVERING or not self._here.passed(self._here.recovery_deadline):
            return None
        if not self._here.reachable or self._here.waits_for_capacity:
            return None  # provisionTimeout decides
        if not self.state.loss_counted:
            self._count([synthetic(self._here.attempt, f"recovery-{since:.3f}", Cause.UNKNOWN)])
        message = f"not whole again within {self.spec.recovery_timeout:g} s"
        return self._end_unless_exceeded(Reason.RECOVERY_TIMEOUT, message)

    def _draining(self) -> None:
        attempt, seen = self._here.attempt, self._here.attempt_seen
        if attempt.end_reason is Reason.EVICTION_NOTICE:
            if seen is not None and seen.exit is None:
                self._count(noticed_pods(attempt, seen))  # a second node may be reclaimed meanwhile
            self._spend_if_exceeded()
        if seen is not None and seen.exit is Exit.SUCCEEDED:
            return self._move(Reason.COMPLETED)
        if seen is not None and seen.exit is Exit.FENCED and self._here.foreign_owner:
            return self._move(Reason.FENCED, self._owner)
        if (seen is not None and seen.exit is not None) or not self._here.anybody_alive:
            return self._move(Reason.DRAINED)
        if attempt.drain_by is None or self.now >= attempt.drain_by:
            return self._move(Reason.GRACE_EXCEEDED, _grace_given(attempt))
        return None

    def _ending(self) -> None:
        seen = self._here.attempt_seen
        if seen is not None and seen.exit is Exit.SUCCEEDED:
            return self._move(Reason.COMPLETED)
        if seen is None and self._here.reachable:
            return self._move(Reason.GONE)
        deadline = self._here.handover_deadline
        if deadline is not None and (not self._here.reachable or self.now >= deadline):
            return self._move(Reason.LEFT_BEHIND, "not confirmed gone; its commits are fenced")
        return None

    def _suspended(self) -> None:
        if not self.spec.suspend:
            self.state = forgotten(replace(self.state, waiting_since=None, paused_until=None))
            self._move(Reason.RESUME_REQUESTED)

    # --- parts of the stages ---

    def _moves_off(self, notices: list[PodSeen]) -> bool:
        """End the attempt when maintenance, and nothing else, takes nodes of it; no failure is counted for that."""
        if not notices or any(pod.cause is not Cause.MAINTENANCE for pod in notices):
            return False
        self._move(Reason.MAINTENANCE, maintenance(self._here))
        return True

    @property
    def _what_is_missing(self) -> str:
        if self.losses:
            return ", ".join(f"{loss.pod} ({loss.cause})" for loss in self.losses)
        return "not every pod is ready" if self._here.reachable else "its cluster cannot be reached"

    @property
    def _owner(self) -> str:
        return f"attempt {self.seen.progress.attempt} of another controller owns the commit log"

    def _ended_by_itself(self) -> bool:
        """The live attempt is over without our doing: its program ended, its head or all of it is gone."""
        attempt, seen = self._here.attempt, self._here.attempt_seen
        before = len(self.moves)
        if seen is None:
            if attempt.seen and self._here.reachable:
                self._lost(Reason.VANISHED, synthetic(attempt, "vanished", Cause.UNKNOWN))
        elif seen.exit is not None:
            self._exited(attempt, seen, seen.exit)
        elif crashed := crashed_pods(attempt, seen):
            pod = min(crashed, key=lambda pod: (pod.role is not PodRole.HEAD, pod.uid))
            self._start_failed(Reason.START_CRASHED, crash_of(pod), pod.exit_message, pod.called)
        elif head_lost(seen):
            self._lost(Reason.HEAD_LOST, synthetic(attempt, "head", Cause.UNKNOWN))
        elif self.losses:
            self._tier_exceeded()
        return len(self.moves) > before

    def _exited(self, attempt: Attempt, seen: AttemptSeen, how: Exit) -> None:
        """The program ended. A fence, and credentials that the store refuses, are no failure of the tier."""
        match how:
            case Exit.SUCCEEDED:
                self._move(Reason.COMPLETED)
            case Exit.FENCED if self._here.foreign_owner:
                self._move(Reason.FENCED, self._owner)
            case Exit.FENCED:
                self._move(Reason.INTERRUPTED, "a newer writer has fenced it")
            case Exit.REFUSED:
                self.state = with_denial(self.state, seen.message, self.now)
                self._move(Reason.ACCESS_DENIED, seen.message)
            case Exit.INTERRUPTED:
                self._interrupted(seen)
            case Exit.FAILED:
                self._count(noticed_pods(attempt, seen))
                self._program_failed(seen)
            case Exit.LOST:
                self._lost(Reason.HEAD_LOST, synthetic(attempt, "lost", Cause.UNKNOWN), seen.message)

    def _interrupted(self, seen: AttemptSeen) -> None:
        """The program ended with exit code 75: for a notice, a loss or a deletion, or on its own."""
        attempt, noticed = self._here.attempt, noticed_pods(self._here.attempt, seen)
        deleted = any(pod.cause is Cause.DELETED for pod in seen.pods)
        if not noticed and not deleted and not self.state.loss_counted:
            self.state = paced(self.state, attempt, self.seen.progress, self.now)
        self._count(noticed)
        cause = Cause.DELETED if deleted else Cause.INTERRUPTION
        self._lost(Reason.INTERRUPTED, synthetic(attempt, "interrupted", cause))

    def _lost(self, reason: Reason, unseen: PodSeen, message: str = "") -> None:
        """The attempt ended by a loss. If no pod shows it, it still is one failure."""
        if not self.state.loss_counted:
            self._count([unseen])
        self._end_unless_exceeded(reason, message)

    def _end_unless_exceeded(self, reason: Reason, message: str = "") -> None:
        """End the attempt; if a limit of failures is exceeded, that is the reason."""
        if not self._tier_exceeded():
            self._move(reason, message)

    def _program_failed(self, seen: AttemptSeen) -> None:
        if self.state.loss_counted or self._had_just_recovered:
            self._end_unless_exceeded(Reason.INTERRUPTED, seen.message)
        elif self._here.passed(self._here.attribution_deadline):
            failed = self.state.application_failures + 1
            self.state = replace(self.state, application_failures=failed)
            over = failed > self.spec.application_failures
            self._move(Reason.APPLICATION_FAILED if over else Reason.APPLICATION_RETRY, seen.message)

    @property
    def _had_just_recovered(self) -> bool:
        """Pods may be back before the program ends because of those that went."""
        attempt = self._here.attempt
        if attempt.exited_at is None or attempt.whole_at is None or attempt.whole_at == attempt.running_at:
            return False
        return attempt.exited_at - attempt.whole_at < self.spec.settle

    def _tier_exceeded(self) -> bool:
        """End the attempt if its tier, or the job, has had more failures than allowed."""
        if self._here.over_backoff_limit:
            self._move(Reason.BACKOFF_LIMIT_EXCEEDED, self._here.failures_in_all)
        elif self._here.over_limit:
            self.state = spend(self.state, self._here.attempt.tier, Reason.MAX_FAILURES_EXCEEDED)
            self._move(Reason.MAX_FAILURES_EXCEEDED, self._here.failures_here)
        else:
            return False
        return True

    def _spend_if_exceeded(self) -> None:
        if self._here.over_limit:
            self.state = spend(self.state, self._here.attempt.tier, Reason.MAX_FAILURES_EXCEEDED)

    def _waited_too_long(self) -> None:
        """provisionTimeout, from the moment the job is not whole. It stands still during every impediment that has
        another timer or none; recoveryTimeout stands still while nothing but the user, or contact, can help."""
        tier, seen, since = self._here.tier, self._here.attempt_seen, self.state.waiting_since
        rule = rule_of(self._here)
        if tier is None or since is None or rule is None:
            return
        if rule.timer is not Timer.PROVISION:
            hurt = self.state.recovering_since
            self.state = replace(self.state, waiting_since=min(self.now, since + self.since_last))
            if rule.timer in (Timer.NONE, Timer.CONTACT) and hurt is not None:
                self.state = replace(self.state, recovering_since=min(self.now, hurt + self.since_last))
            return
        refused = seen is not None and seen.refused and tier.on_insufficient_capacity is OnInsufficientCapacity.FALLBACK
        if not refused and not self._here.passed(self._here.provision_deadline):
            return
        if rule.exhausts:
            self.state = spend(self.state, tier.name, Reason.INSUFFICIENT_CAPACITY)
            why = "the provisioner has no capacity" if refused else f"not whole for {tier.provision_timeout:g} s"
            self._move(Reason.INSUFFICIENT_CAPACITY, why)
        elif rule.counted and self._here.attempt.seen:
            self._lost(rule.reason, synthetic(self._here.attempt, "contact", Cause.NODE_LOST), self._why)
        elif self._elsewhere:
            self._move(rule.reason, self._why)

    @property
    def _why(self) -> str:
        found = classify(self._here)
        return found.message if found is not None else ""

    @property
    def _elsewhere(self) -> bool:
        """Whether the policy has another tier for an attempt that cannot be launched on its own."""
        choice = self.policy.choose(self._here.view(live=False))
        return choice.tier in self._here.view(live=False).available and choice.tier != self.state.tier

    def _stalled(self) -> None:
        if not self._here.passed(self._here.stall_deadline):
            return
        self._count([synthetic(self._here.attempt, "stalled", Cause.STALLED)])
        self._end_unless_exceeded(Reason.STALLED, f"no commit for {self.spec.stall_timeout:g} s")

    def _unwanted(self) -> bool:
        """The attempt is well, but is not to go on: a limit, the user or the policy says so."""
        wish: tuple[Reason, str] | None = self._here.limit
        if wish is None and self.spec.suspend:
            wish = (Reason.SUSPEND_REQUESTED, "")
        if wish is None and self._here.tier is None:
            wish = (Reason.TIER_REMOVED, f"{self._here.attempt.tier} is no longer among the tiers")
        if wish is None and self._updates_now:
            wish = (Reason.SPEC_UPDATED, self._here.pending_update)
        if wish is None:
            choice = self.policy.choose(self._here.view(live=True))
            if choice.tier in self._here.open and choice.tier != self._here.attempt.tier:
                wish = (Reason.POLICY, f"{choice.tier} is preferred ({choice.reason})")
        if wish is not None:
            self._move(*wish)
        return wish is not None

    @property
    def _updates_now(self) -> bool:
        """Whether a spec with other pods ends the live attempt: an attempt that never ran has nothing to lose."""
        if not (self._here.pending_update and self._here.reachable):
            return False
        never_ran = self._here.attempt.running_at is None
        return never_ran or self.spec.update_strategy is UpdateStrategy.NOW


def _grace_given(attempt: Attempt) -> str:
    """How long the attempt was given: its grace, or what was left of the shortest notice."""
    if attempt.drain_by is None or attempt.drain_since is None:
        return "did not stop in time"
    return f"did not stop within {max(0.0, attempt.drain_by - attempt.drain_since):.3g} s"


def _pods(pods: list[PodSeen]) -> str:
    return ", ".join(f"{pod.called} ({pod.cause})" for pod in pods)
