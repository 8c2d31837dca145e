"""`decide`: from what is wanted, remembered and seen, to what is to be done.

Rules
 1. One attempt is live at a time. Whatever else is seen of the job is deleted.
 2. A decision either changes what is intended or acts on what is already persisted, never both: an attempt is written
    down before it is launched, so a crash at any point leads to the same launch again, not to another.
 3. Under `handover: Fenced` the next attempt may start while the last is not confirmed gone, because the commit log
    fences it; under `WhenGone` it waits.
 4. Each lost pod is one failure, once. Failure number maxFailures + 1 spends the tier.
 5. From the moment the job is not whole, provisionTimeout runs; being whole stops it. recoveryTimeout and stallTimeout
    end the attempt, not the tier.
 6. The program's own errors never change the tier; a failure that coincides with an eviction is an eviction.
 7. A terminal stage is never left.

The stages and what leads from one to another: `transitions.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spotladder.core.accounting import HOUR, account, held_nodes, rewound
from spotladder.core.losses import (
    count,
    exceeded,
    head_lost,
    lost_pods,
    noticed_pods,
    remember_alive,
    spend,
    synthetic,
    with_record,
)
from spotladder.core.model import (
    TERMINAL,
    Action,
    Attempt,
    AttemptRecord,
    AttemptSeen,
    Decision,
    Delete,
    Drain,
    Exhausted,
    Exit,
    Finish,
    Handover,
    Instant,
    JobSpec,
    JobState,
    Launch,
    Loss,
    Move,
    Observation,
    OnInsufficientCapacity,
    PodPhase,
    PodRole,
    PodSeen,
    Seconds,
    Stage,
    Tier,
    TierView,
)
from spotladder.core.policies import Policy
from spotladder.core.reasons import Cause, Reason
from spotladder.core.transitions import target
from spotladder.errors import InvalidSpec

PATIENCE: Seconds = 10.0
"""How long a fenced attempt may take to be gone before the next one starts without it."""

REPEAT: Seconds = 10.0
"""An action whose effect is not seen is repeated after this long, even when nothing else happens."""

HISTORY = 20
"""So many finished attempts are remembered, the newest."""

_LIVE = frozenset({Stage.STARTING, Stage.RUNNING, Stage.RECOVERING})


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
        return Decision(state, reason=Reason.STALE_OBSERVATION, wake_at=now + REPEAT)
    return _Pass(spec, state, seen, now, policy).run()


class _Pass:
    """One decision in the making. Nothing of it outlives the call."""

    def __init__(self, spec: JobSpec, state: JobState, seen: Observation, now: Instant, policy: Policy) -> None:
        self.spec, self.seen, self.now, self.policy = spec, seen, now, policy
        self.since_last = max(0.0, now - state.clock) if state.clock else 0.0
        self.state = replace(account(rewound(state, now), spec, now), revision=seen.revision)
        self.moves: list[Move] = []
        self.losses: list[Loss] = []

    def run(self) -> Decision:
        self._look()
        while self._step():
            pass
        state = self.state
        if self.moves:
            wake = None if state.stage in TERMINAL and not self._actions() else self.now
            return Decision(state, (), self.moves[-1].reason, wake, tuple(self.moves), tuple(self.losses))
        actions = self._actions()
        return Decision(state, actions, self._steady_reason(), self._wake_at(bool(actions)), (), tuple(self.losses))

    # --- looking ---

    def _look(self) -> None:
        """Take in what is seen of the live attempt: who is alive, who was lost, how many nodes are paid for."""
        if self.seen.progress != self.state.progress:
            self.state = replace(self.state, progress=self.seen.progress, progress_at=self.now)
        attempt = self.state.attempt
        if attempt is None:
            self.state = replace(self.state, nodes=0)
            return
        seen = self.seen.attempt(attempt.number)
        self.state = replace(self.state, nodes=held_nodes(seen))
        if seen is None:
            return
        if self._counts_losses(attempt):
            self._count(lost_pods(attempt, seen))
            attempt = self._attempt
        attempt = remember_alive(attempt, seen)
        if seen.exit is Exit.FAILED and attempt.exited_at is None:
            attempt = replace(attempt, exited_at=self.now)
        self.state = replace(self.state, attempt=attempt)

    def _counts_losses(self, attempt: Attempt) -> bool:
        """Pods lost while we take the attempt down ourselves are not failures; those of an eviction under way are."""
        if self.state.stage in _LIVE:
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
        """Change the stage, with everything that this stage always brings along."""
        state = self.state
        source, following = state.stage, target(state.stage, reason)
        attempt = state.attempt
        number, tier = (attempt.number, attempt.tier) if attempt else (state.last_number, state.tier)
        if following is Stage.RUNNING and attempt is not None:
            attempt = replace(attempt, running_at=attempt.running_at or self.now, whole_at=self.now)
            state = replace(state, waiting_since=None, recovering_since=None, loss_counted=False)
        elif following is Stage.RECOVERING:
            state = replace(state, waiting_since=self.now, recovering_since=self.now)
        elif following is Stage.DRAINING and attempt is not None:
            attempt = replace(attempt, end_reason=reason, drain_by=self._drain_by(reason))
        elif following is Stage.ENDING and attempt is not None:
            attempt = replace(attempt, end_reason=attempt.end_reason or reason, ending_since=self.now)
            if state.waiting_since is None:
                state = replace(state, waiting_since=self.now)
        self.state = replace(state, stage=following, attempt=attempt, reason=reason, message=message)
        if attempt is not None and following not in (*_LIVE, Stage.DRAINING, Stage.ENDING):
            self._close(attempt, attempt.end_reason or reason)
        if following in TERMINAL:
            self.state = replace(self.state, ended_at=self.now, waiting_since=None, recovering_since=None)
        self.moves.append(Move(source, following, reason, number, tier, message))

    def _close(self, attempt: Attempt, reason: Reason) -> None:
        """The attempt is over: into the history with it."""
        record = AttemptRecord(
            attempt.number,
            attempt.tier,
            attempt.created_at,
            attempt.running_at,
            self.now,
            reason,
            attempt.failures,
            attempt.start_step,
            max(attempt.start_step, self.seen.progress.step),
        )
        tier = replace(self.state.record(attempt.tier), last_reason=reason)
        history = (*self.state.history, record)[-HISTORY:]
        state = replace(self.state, attempt=None, history=history, recovering_since=None, nodes=0)
        self.state = with_record(state, tier)

    def _drain_by(self, reason: Reason) -> Instant:
        seen = self._seen
        notices = [pod.notice_ends_at for pod in seen.pods if pod.notice_ends_at is not None] if seen else []
        ends = notices if reason is Reason.EVICTION_NOTICE else []
        return min([self.now + self.spec.grace, *(max(self.now, end) for end in ends)])

    # --- one method per stage: the first thing that is due ---

    def _idle(self) -> None:
        if (limit := self._limit()) is not None:
            return self._move(*limit)
        if self.spec.suspend:
            return self._move(Reason.SUSPEND_REQUESTED)
        if self.state.paused_until is not None and self.now < self.state.paused_until:
            return None
        if not self._open():
            return self._exhausted()
        choice = self.policy.choose(self._view(live=False))
        if choice.tier in self._open():
            self._plan(choice.tier)
        return None

    def _plan(self, tier: str) -> None:
        state = self.state
        highest = max(state.last_number, self.seen.progress.attempt, *(seen.number for seen in self.seen.attempts), 0)
        names = [entry.name for entry in self.spec.tiers]
        reason, message = Reason.STARTED, f"attempt {highest + 1} on {tier}"
        if state.tier and state.tier != tier:
            back = state.tier in names and names.index(tier) < names.index(state.tier)
            reason = Reason.MIGRATED_BACK if back else Reason.FELL_BACK
            spent = state.record(state.tier).spent
            message += f", from {state.tier}" + (f" ({spent})" if spent else "")
        moved = state.tier != tier
        record = state.record(tier)
        attempt = Attempt(highest + 1, tier, self.now, start_step=self.seen.progress.step)
        self.state = replace(
            with_record(state, replace(record, attempts=record.attempts + 1)),
            attempt=attempt,
            last_number=attempt.number,
            tier=tier,
            waiting_since=self.now if moved or state.waiting_since is None else state.waiting_since,
            started_at=self.now if state.started_at is None else state.started_at,
            paused_until=None,
            loss_counted=False,
        )
        self._move(reason, message)

    def _exhausted(self) -> None:
        if self.spec.exhausted is Exhausted.FAIL:
            return self._move(Reason.TIERS_EXHAUSTED, "every tier is spent: " + self._spent_tiers())
        wait = self.spec.exhausted is Exhausted.WAIT
        pause = max(tier.provision_timeout for tier in self.spec.tiers) if wait else 0.0
        message = "every tier is spent: " + self._spent_tiers()
        fresh = tuple(replace(record, failures=0, spent=None) for record in self.state.tiers)
        until = self.now + pause if wait else None
        self.state = replace(self.state, tiers=fresh, tier="", waiting_since=None, paused_until=until)
        return self._move(Reason.BEGIN_AGAIN, message)

    def _starting(self) -> None:
        if self._ended_by_itself() or self._unwanted():
            return None
        if self._whole():
            return self._move(Reason.WHOLE)
        return self._out_of_capacity()

    def _running(self) -> None:
        if self._ended_by_itself() or self._unwanted():
            return None
        seen = self._seen
        notices = noticed_pods(self._attempt, seen) if seen else []
        if notices:
            self._count(notices)
            self._spend_if_exceeded()
            return self._move(Reason.EVICTION_NOTICE, _pods(notices))
        if not self._whole():
            return self._move(Reason.RECOVERING, self._what_is_missing())
        return self._stalled()

    def _recovering(self) -> None:
        if self._ended_by_itself() or self._unwanted():
            return None
        seen = self._seen
        notices = noticed_pods(self._attempt, seen) if seen else []
        if notices:
            self._count(notices)
            if not self._tier_exceeded():
                self._move(Reason.EVICTION_NOTICE, _pods(notices))
            return None
        if self._whole() and self._moves_again():
            return self._move(Reason.WHOLE)
        self._out_of_capacity()
        since = self.state.recovering_since
        if self.state.stage is not Stage.RECOVERING or since is None or self.now - since < self.spec.recovery_timeout:
            return None
        if not self._reachable() or (seen is not None and any(pod.unschedulable for pod in seen.pods)):
            return None  # a new attempt would find no capacity either: provisionTimeout decides
        if not self.state.loss_counted:
            self._count([synthetic(self._attempt, f"recovery-{since:.3f}", Cause.UNKNOWN)])
            if self._tier_exceeded():
                return None
        return self._move(Reason.RECOVERY_TIMEOUT, f"not whole again within {self.spec.recovery_timeout:g} s")

    def _draining(self) -> None:
        attempt, seen = self._attempt, self._seen
        if attempt.end_reason is Reason.EVICTION_NOTICE:
            if seen is not None and seen.exit is None:
                self._count(noticed_pods(attempt, seen))  # a second node may be reclaimed meanwhile
            self._spend_if_exceeded()
        if seen is not None and seen.exit is Exit.SUCCEEDED:
            return self._move(Reason.COMPLETED)
        if seen is not None and seen.exit is Exit.FENCED and self._foreign_owner():
            return self._move(Reason.FENCED, self._owner())
        if seen is None and not self._reachable():
            pass  # it may still be committing where we cannot look
        elif seen is None or seen.exit is not None or not self._alive(seen):
            return self._move(Reason.DRAINED)
        if attempt.drain_by is None or self.now >= attempt.drain_by:
            return self._move(Reason.GRACE_EXCEEDED, f"did not stop within {self.spec.grace:g} s")
        return None

    def _ending(self) -> None:
        attempt, seen = self._attempt, self._seen
        if seen is not None and seen.exit is Exit.SUCCEEDED:
            return self._move(Reason.COMPLETED)
        if seen is None and self._reachable():
            return self._move(Reason.GONE)
        if self.spec.handover is Handover.WHEN_GONE or attempt.ending_since is None:
            return None
        if not self._reachable() or self.now - attempt.ending_since >= PATIENCE:
            return self._move(Reason.LEFT_BEHIND, "not confirmed gone; its commits are fenced")
        return None

    def _suspended(self) -> None:
        if not self.spec.suspend:
            self.state = replace(self.state, waiting_since=None)
            self._move(Reason.RESUME_REQUESTED)

    # --- parts of the stages ---

    def _ended_by_itself(self) -> bool:
        """The live attempt is over without our doing: its program ended, its head or all of it is gone."""
        attempt, seen = self._attempt, self._seen
        before = len(self.moves)
        if seen is None:
            if attempt.seen and self._reachable():
                self._lost(Reason.VANISHED, synthetic(attempt, "vanished", Cause.UNKNOWN))
        elif seen.exit is Exit.SUCCEEDED:
            self._move(Reason.COMPLETED)
        elif seen.exit is Exit.FENCED:
            if self._foreign_owner():
                self._move(Reason.FENCED, self._owner())
            else:
                self._lost(Reason.INTERRUPTED, synthetic(attempt, "fenced", Cause.UNKNOWN))
        elif seen.exit is Exit.INTERRUPTED:
            self._count(noticed_pods(attempt, seen))
            self._lost(Reason.INTERRUPTED, synthetic(attempt, "interrupted", Cause.INTERRUPTION))
        elif seen.exit is Exit.FAILED:
            self._count(noticed_pods(attempt, seen))
            self._program_failed(seen)
        elif seen.exit is Exit.LOST:
            self._lost(Reason.HEAD_LOST, synthetic(attempt, "lost", Cause.UNKNOWN), seen.message)
        elif head_lost(seen):
            self._lost(Reason.HEAD_LOST, synthetic(attempt, "head", Cause.UNKNOWN))
        elif self.losses:
            self._tier_exceeded()
        return len(self.moves) > before

    def _lost(self, reason: Reason, unseen: PodSeen, message: str = "") -> None:
        """The attempt ended by a loss. If no pod shows it, it still is one failure."""
        if not self.state.loss_counted:
            self._count([unseen])
        if not self._tier_exceeded():
            self._move(reason, message)

    def _program_failed(self, seen: AttemptSeen) -> None:
        exited_at = self._attempt.exited_at
        if self.state.loss_counted:
            self._lost(Reason.INTERRUPTED, synthetic(self._attempt, "interrupted", Cause.UNKNOWN), seen.message)
        elif exited_at is not None and self.now - exited_at >= self.spec.settle:
            failed = self.state.application_failures + 1
            self.state = replace(self.state, application_failures=failed)
            over = failed > self.spec.application_failures
            self._move(Reason.APPLICATION_FAILED if over else Reason.APPLICATION_RETRY, seen.message)

    def _tier_exceeded(self) -> bool:
        """End the attempt if its tier, or the job, has had more failures than allowed."""
        if self._over_backoff_limit():
            self._move(Reason.BACKOFF_LIMIT_EXCEEDED, f"{self.state.failures} failures over all tiers")
        elif self._over_limit():
            self.state = spend(self.state, self._attempt.tier, Reason.MAX_FAILURES_EXCEEDED)
            self._move(Reason.MAX_FAILURES_EXCEEDED, f"{self.state.record(self._attempt.tier).failures} failures")
        else:
            return False
        return True

    def _spend_if_exceeded(self) -> None:
        if self._over_limit() and self.state.record(self._attempt.tier).spent is None:
            self.state = spend(self.state, self._attempt.tier, Reason.MAX_FAILURES_EXCEEDED)

    def _over_limit(self) -> bool:
        tier = self._tier
        return tier is not None and exceeded(self.state.record(tier.name), tier.max_failures)

    def _over_backoff_limit(self) -> bool:
        return self.spec.backoff_limit is not None and self.state.failures > self.spec.backoff_limit

    def _out_of_capacity(self) -> None:
        """provisionTimeout, from the moment the job is not whole; what blocks for another reason does not count."""
        tier, seen, since = self._tier, self._seen, self.state.waiting_since
        if tier is None or since is None:
            return
        if seen is not None and seen.blocked:
            self.state = replace(self.state, waiting_since=min(self.now, since + self.since_last))
            return
        refused = seen is not None and seen.refused and tier.on_insufficient_capacity is OnInsufficientCapacity.FALLBACK
        if refused or self.now - since >= tier.provision_timeout:
            self.state = spend(self.state, tier.name, Reason.INSUFFICIENT_CAPACITY)
            why = "the provisioner has no capacity" if refused else f"not whole for {tier.provision_timeout:g} s"
            self._move(Reason.INSUFFICIENT_CAPACITY, why)

    def _stalled(self) -> None:
        progress, attempt = self.seen.progress, self._attempt
        finished = 0 < progress.total <= progress.step
        last = self._last_progress(attempt)
        if finished or self.now - last < self.spec.stall_timeout:
            return
        self._count([synthetic(attempt, "stalled", Cause.STALLED)])
        if not self._tier_exceeded():
            self._move(Reason.STALLED, f"no commit for {self.spec.stall_timeout:g} s")

    def _unwanted(self) -> bool:
        """The attempt is well, but is not to go on: a limit, the user or the policy says so."""
        wish: tuple[Reason, str] | None = self._limit()
        if wish is None and self.spec.suspend:
            wish = (Reason.SUSPEND_REQUESTED, "")
        if wish is None and self._tier is None:
            wish = (Reason.TIER_REMOVED, f"{self._attempt.tier} is no longer among the tiers")
        if wish is None:
            choice = self.policy.choose(self._view(live=True))
            if choice.tier in self._open() and choice.tier != self._attempt.tier:
                wish = (Reason.POLICY, f"{choice.tier} is preferred ({choice.reason})")
        if wish is not None:
            self._move(*wish)
        return wish is not None

    def _limit(self) -> tuple[Reason, str] | None:
        """A limit of the whole job that is reached."""
        if self.state.stage is Stage.IDLE and self._over_backoff_limit():
            return Reason.BACKOFF_LIMIT_EXCEEDED, f"{self.state.failures} failures over all tiers"
        if self._deadline() is not None and self.now >= (self._deadline() or 0.0):
            return (
                Reason.DEADLINE_EXCEEDED,
                f"{self.seen.progress.step} of {self.seen.progress.total} steps are committed",
            )
        if self.spec.budget is not None and self.state.spent_usd >= self.spec.budget:
            return Reason.BUDGET_EXCEEDED, f"{self.state.spent_usd:.2f} of {self.spec.budget:.2f} USD are spent"
        return None

    # --- facts ---

    @property
    def _attempt(self) -> Attempt:
        if self.state.attempt is None:  # the table lets no live stage be without one
            raise AssertionError(f"stage {self.state.stage} without an attempt")
        return self.state.attempt

    @property
    def _seen(self) -> AttemptSeen | None:
        return self.seen.attempt(self.state.attempt.number) if self.state.attempt else None

    @property
    def _tier(self) -> Tier | None:
        return self.spec.tier(self.state.tier)

    def _reachable(self) -> bool:
        seen = self._seen
        return seen.reachable if seen is not None else self.state.tier not in self.seen.unavailable

    def _whole(self) -> bool:
        seen = self._seen
        if seen is None or not seen.reachable:
            return False
        ready = [pod for pod in seen.pods if pod.phase is PodPhase.RUNNING and pod.ready]
        workers = sum(1 for pod in ready if pod.role is PodRole.WORKER)
        heads = [pod for pod in seen.pods if pod.role is PodRole.HEAD]
        return workers >= self.spec.workers and (not heads or any(pod.role is PodRole.HEAD for pod in ready))

    def _alive(self, seen: AttemptSeen) -> bool:
        """Whether anybody is left who could commit."""
        workers = any(pod.phase is PodPhase.RUNNING for pod in seen.pods if pod.role is PodRole.WORKER)
        return not seen.reachable or (workers and not head_lost(seen))

    def _last_progress(self, attempt: Attempt) -> Instant:
        return max(attempt.whole_at or attempt.created_at, self.state.progress_at or attempt.created_at)

    def _moves_again(self) -> bool:
        """Whether the program has shown progress since it was hurt; a backend that cannot know is believed."""
        seen, since = self._seen, self.state.recovering_since
        return seen is None or seen.moved_at is None or since is None or seen.moved_at >= since

    def _foreign_owner(self) -> bool:
        return self.seen.progress.attempt > self._attempt.number

    def _owner(self) -> str:
        return f"attempt {self.seen.progress.attempt} of another controller owns the commit log"

    def _deadline(self) -> Instant | None:
        ends = [] if self.spec.deadline is None else [self.spec.deadline]
        if self.spec.max_duration is not None:
            ends.append(self.spec.submitted_at + self.spec.max_duration)
        return min(ends, default=None)

    def _open(self) -> frozenset[str]:
        return frozenset(tier.name for tier in self.spec.tiers if self.state.record(tier.name).spent is None)

    def _view(self, *, live: bool) -> TierView:
        return TierView(
            now=self.now,
            current=self.state.tier,
            tiers=self.spec.tiers,
            records=tuple(self.state.record(tier.name) for tier in self.spec.tiers),
            open=self._open(),
            available=self._open() - self.seen.unavailable.keys(),
            live=live,
            progress=self.seen.progress,
            deadline=self._deadline(),
            spent_usd=self.state.spent_usd,
        )

    def _spent_tiers(self) -> str:
        return ", ".join(f"{tier.name} ({self.state.record(tier.name).spent})" for tier in self.spec.tiers)

    def _what_is_missing(self) -> str:
        if self.losses:
            return ", ".join(f"{loss.pod} ({loss.cause})" for loss in self.losses)
        return "its cluster cannot be reached" if not self._reachable() else "not every pod is ready"

    def _steady_reason(self) -> Reason:
        if self.state.stage in (Stage.STARTING, Stage.RECOVERING):
            seen = self._seen
            return Reason.BLOCKED if seen is not None and seen.blocked else Reason.WAITING_FOR_CAPACITY
        return self.state.reason if self.state.stage in TERMINAL else Reason.STEADY

    # --- acting and waking ---

    def _actions(self) -> tuple[Action, ...]:
        """What the persisted state asks for, given what is seen. Nothing here changes the state."""
        state, attempt = self.state, self.state.attempt
        others = [seen for seen in self.seen.attempts if attempt is None or seen.number != attempt.number]
        actions: list[Action] = [Delete(seen.number, state.reason) for seen in others if seen.reachable]
        if state.stage is Stage.STARTING and attempt is not None and not attempt.seen:
            held_back = self.spec.handover is Handover.WHEN_GONE and others
            if not held_back and attempt.tier not in self.seen.unavailable:
                actions.append(Launch(attempt.number, attempt.tier))
        elif state.stage is Stage.DRAINING and attempt is not None:
            actions.append(Drain(attempt.number, attempt.drain_by or self.now, attempt.end_reason or state.reason))
        elif state.stage is Stage.ENDING and attempt is not None:
            actions.append(Delete(attempt.number, attempt.end_reason or state.reason))
        elif state.stage in TERMINAL:
            actions.append(Finish(state.stage is Stage.SUCCEEDED, state.reason))
        return tuple(actions)

    def _wake_at(self, repeat: bool) -> Instant | None:
        """The next moment at which time alone may change the decision."""
        state, spec, attempt, tier = self.state, self.spec, self.state.attempt, self._tier
        if state.stage in TERMINAL:
            return self.now + REPEAT if self.seen.attempts else None
        times: list[Instant | None] = [self.now + REPEAT if repeat else None]
        if state.stage is not Stage.SUSPENDED:
            times += [self._deadline(), self._budget_ends_at()]
        if state.stage is Stage.IDLE:
            times += [state.paused_until, self.now + REPEAT]
        if state.waiting_since is not None and tier is not None and state.stage in _LIVE:
            times.append(state.waiting_since + tier.provision_timeout)
        if state.recovering_since is not None:
            times.append(state.recovering_since + spec.recovery_timeout)
        if attempt is not None:
            times += [attempt.drain_by if state.stage is Stage.DRAINING else None]
            if attempt.ending_since is not None and spec.handover is Handover.FENCED:
                times.append(attempt.ending_since + PATIENCE)
            if attempt.exited_at is not None and state.stage in _LIVE:
                times.append(attempt.exited_at + spec.settle)
            if state.stage is Stage.RUNNING and attempt.whole_at is not None:
                times.append(self._last_progress(attempt) + spec.stall_timeout)
        # A time that has passed without effect (a deadline while a drain is under way) must not make a busy loop.
        return min((time if time > self.now else self.now + 1.0 for time in times if time is not None), default=None)

    def _budget_ends_at(self) -> Instant | None:
        tier, budget = self._tier, self.spec.budget
        if budget is None or tier is None or not self.state.nodes or tier.price.per_node_hour <= 0:
            return None
        rate = self.state.nodes * tier.price.per_node_hour / HOUR
        return self.now + max(0.0, (budget - self.state.spent_usd) / rate)


def _pods(pods: list[PodSeen]) -> str:
    return ", ".join(f"{pod.uid} ({pod.cause})" for pod in pods)
