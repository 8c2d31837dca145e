"""`decide`: computes the next state and actions from the spec, the stored state and an observation.

Rules
 1. One attempt is live at a time. All other observed objects of the job are deleted.
 2. A decision either changes the state or executes the persisted state, never both: an attempt is persisted before
    it is launched, so after a crash the same launch is repeated.
 3. Under `handover: Fenced` the next attempt starts while the last is removed, because the commit log fences the last:
    on another tier at once, on the same tier after `HANDOVER_GRACE_PERIOD`. Under `WhenGone` it waits.
 4. Each lost pod is one failure, once. Failure number maxFailures + 1 exhausts the tier. A pod that was counted while
    its node was cut off, and whose program ends only when the node returns, is not counted again.
 5. provisionTimeout runs while workers lack capacity, and exhausts the tier. It is suspended during every other
    impediment, whose own timer (`impediment.RULES`) ends the attempt and keeps the tier.
 6. An attempt without quota waits in its admission queue: only queueTimeout runs. An attempt whose quota is withdrawn
    ends, because the queue would restart its program under the same attempt number.
 7. The program's own errors never change the tier; a failure that coincides with an eviction is an eviction.
 8. A terminal stage is never left.
 9. The spec with which an attempt was launched applies until it ends. A changed pod template starts a new attempt.
10. With `overlap`, the next attempt of a planned move, or after an eviction notice, boots beside the live one, which
    rule 1 then excepts, and takes over when the live one has ended. Its program is held until then. With
    `overlap.hedge_after`, so does the next tier's attempt while the live one waits for capacity: the first that is
    ready runs.
11. An elastic attempt is ready with `min_workers`. After a loss, or a notice, that leaves enough workers, its program
    restarts with fewer inside the attempt.

`_STAGES` has one function for each stage. `transitions.py` has the transition table, `situation.py` the facts and
deadlines. `observing.py` updates the state from an observation, `endings.py` ends live attempts, `moving.py` has the
effects of a change of stage, `elastic.py` the rules of elastic attempts, `standing_by.py`
has the standby attempt, `hedging.py` the hedge, `leaving_behind.py` the attempts that are being removed. `acting.py`
derives the actions of a state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from spotladder.core import limits
from spotladder.core.acting import ACTION_RETRY_INTERVAL, actions, steady_reason, wake_at
from spotladder.core.copying import replace
from spotladder.core.crashes import corrected, forgotten
from spotladder.core.draft import Draft
from spotladder.core.durations import format_duration
from spotladder.core.elastic import continues_smaller, fits, how_many, learns_of_notices, why_smaller
from spotladder.core.endings import (
    ended_by_itself,
    leaves,
    log_owner,
    provision_timed_out,
    recovery_timed_out,
    stalled,
    start_timed_out,
    starts_elsewhere,
    unwanted,
)
from spotladder.core.evidence import program_ended
from spotladder.core.hedging import hedge_takes_over, start_hedge
from spotladder.core.leaving_behind import is_left, moves_on
from spotladder.core.losses import failing, noticed_pods
from spotladder.core.model import (
    Attempt,
    Decision,
    Exhausted,
    Exit,
    Instant,
    JobSpec,
    JobState,
    Observation,
    PodSeen,
    Stage,
)
from spotladder.core.moving import planned
from spotladder.core.observing import take_in
from spotladder.core.policies import Policy
from spotladder.core.queueing import queue_timed_out
from spotladder.core.reasons import Reason
from spotladder.core.replacing import advance, continues_without, started
from spotladder.core.standing_by import adopted, boots_next
from spotladder.core.suspending import leave_out_impeded_time
from spotladder.core.verdict import finished, judge
from spotladder.errors import InvalidSpec


def decide(spec: JobSpec, state: JobState, seen: Observation, now: Instant, policy: Policy) -> Decision:
    """Make one decision.

    Args:
        spec: the job's current spec; it may differ from that of the last decision.
        state: the state of the last decision, as persisted; a new job starts with `JobState()`.
        seen: a snapshot of the job's objects. A snapshot older than the last one is ignored.
        now: the time of the caller's clock. It may step back without effect on the decisions.
        policy: chooses tiers, within the limits that `decide` enforces.

    Returns:
        The state to persist first, the actions to apply, and the latest time of the next call.

    Raises:
        InvalidSpec: the spec has no tiers.
        IllegalTransition: a defect; nothing was changed.
    """
    if not spec.tiers:
        raise InvalidSpec("a job needs at least one tier", path="spec.tiers")
    if seen.revision < state.revision:
        return Decision(state, reason=Reason.STALE_OBSERVATION, wake_at=now + ACTION_RETRY_INTERVAL)
    draft = Draft(spec, state, seen, now, policy)
    take_in(draft)
    draft.explain()
    leave_out_impeded_time(draft)
    while _step(draft):
        draft.explain()
        if draft.state.stage is Stage.STARTING:
            break  # one plan per decision: a policy that contradicts itself makes many decisions, not an endless one
    moves, losses = tuple(draft.moves), tuple(draft.losses)
    if moves or draft.replanned:
        return Decision(draft.state, (), draft.state.reason, now, moves, losses, tuple(draft.standby_changes))
    situation = draft.situation
    todo = actions(situation)
    wake = wake_at(situation, acted=bool(todo), review_at=draft.choice.review_at)
    return Decision(draft.state, todo, steady_reason(situation), wake, losses=losses)


def _step(draft: Draft) -> bool:
    """Make one move if one is due. Terminal stages have no function."""
    before = len(draft.moves)
    stage = _STAGES.get(draft.state.stage)
    if stage is not None:
        stage(draft)
    return len(draft.moves) > before


# --- one function per stage: the first thing that is due ---


def _idle(draft: Draft) -> None:
    if (limit := limits.reached(draft.situation)) is not None:
        return draft.move(*limit)
    if draft.spec.suspend:
        return draft.move(draft.spec.suspend_reason)
    if corrected(draft.state, draft.spec):
        draft.state = forgotten(replace(draft.state, paused_until=None))
    if draft.state.standby is not None:
        draft.state, reason, message = adopted(draft.situation)
        return draft.move(reason, message)
    if draft.state.paused_until is not None and draft.now < draft.state.paused_until:
        return None
    if not draft.situation.open:
        return _all_exhausted(draft)
    choice = draft.choose(live=False)
    if choice.tier is not None and choice.tier in draft.situation.open and not is_left(draft.situation, choice.tier):
        draft.state, reason, message = planned(draft.situation, choice.tier)
        draft.move(reason, f"{message}: {choice.why}" if choice.why else message)
    elif choice.tier is None:  # The next attempt has its own provisionTimeout.
        draft.state = replace(draft.state, waiting_since=None)
    return None


def _all_exhausted(draft: Draft) -> None:
    """Fail, or begin again at the first tier. A job that fits no tier would at once end in the same way: it pauses."""
    exhausted = draft.spec.exhausted
    misfit = draft.state.misfit if draft.situation.fits_no_tier else ""
    message = "every tier is exhausted: " + draft.situation.exhausted_tiers + (f": {misfit}" if misfit else "")
    if exhausted is Exhausted.FAIL:
        return draft.move(Reason.POD_DOES_NOT_FIT if misfit else Reason.TIERS_EXHAUSTED, message)
    until, reason = None, Reason.BEGIN_AGAIN
    if exhausted is Exhausted.WAIT or misfit:
        pause = max(tier.provision_timeout for tier in draft.spec.tiers)
        until, reason = draft.now + pause, Reason.WAITING_TO_BEGIN_AGAIN
        message += f"; restarts at {draft.spec.tiers[0].name} in {format_duration(pause)} (exhausted: {exhausted})"
    fresh = tuple(replace(record, failures=0, exhausted_by=None) for record in draft.state.tiers)
    draft.state = replace(draft.state, tiers=fresh, tier="", paused_until=until, misfit=misfit)
    return draft.move(reason, message)


def _starting(draft: Draft) -> None:
    if ended_by_itself(draft) or unwanted(draft) or program_ended(draft.situation) or hedge_takes_over(draft):
        return None
    if draft.situation.all_pods_ready or draft.situation.trains_unready:
        return draft.move(Reason.ALL_READY, how_many(draft.situation))
    if starts_elsewhere(draft, _notices(draft)) or start_timed_out(draft) or queue_timed_out(draft):
        return None
    provision_timed_out(draft)
    return start_hedge(draft) if draft.state.stage is Stage.STARTING else None


def _running(draft: Draft) -> None:
    if ended_by_itself(draft) or unwanted(draft) or program_ended(draft.situation):
        return None
    notices = _notices(draft)
    if notices:
        draft.count(failing(notices))
        if draft.situation.attempt.leave_by is None and started(draft, notices):
            return draft.move(Reason.REPLACING, leaves(draft, notices)[1])
        draft.exhaust_if_exceeded()
        if continues_without(draft, notices):
            return draft.move(Reason.REPLACING, why_smaller(draft.situation, draft.losses))
        if not (learns_of_notices(draft.situation) and continues_smaller(draft.situation)):
            return None if boots_next(draft, notices) else draft.move(*leaves(draft, notices))
    if not (draft.situation.all_pods_ready or draft.situation.trains_unready):
        return draft.move(Reason.RECOVERING, _what_is_missing(draft))
    if not fits(draft.situation):
        return draft.move(Reason.RECOVERING, why_smaller(draft.situation, draft.losses))
    return stalled(draft)


def _replacing(draft: Draft) -> None:
    if ended_by_itself(draft) or unwanted(draft) or program_ended(draft.situation):
        return None
    notices = _notices(draft)
    if notices:
        draft.count(failing(notices))
        if draft.situation.attempt.handing_over_since is not None or not started(draft, notices):
            draft.exhaust_if_exceeded()
            if not continues_without(draft, notices):
                return draft.move(*leaves(draft, notices))
    if not draft.situation.all_pods_ready:
        return draft.move(Reason.RECOVERING, _what_is_missing(draft))
    advance(draft)
    return stalled(draft) if draft.state.stage is Stage.REPLACING else None


def _recovering(draft: Draft) -> None:
    if ended_by_itself(draft) or unwanted(draft) or program_ended(draft.situation) or hedge_takes_over(draft):
        return None
    notices = _notices(draft)
    if notices:
        draft.count(failing(notices))
        continues = continues_without(draft, notices)
        if not continues and not (learns_of_notices(draft.situation) and continues_smaller(draft.situation)):
            return draft.end(*leaves(draft, notices))
    recovered = draft.situation.all_pods_ready and draft.situation.moves_again
    if (recovered or draft.situation.trains_unready) and fits(draft.situation):
        return draft.move(Reason.ALL_READY, how_many(draft.situation))
    if queue_timed_out(draft):
        return None
    provision_timed_out(draft)
    if draft.state.stage is Stage.RECOVERING:
        recovery_timed_out(draft)
    return start_hedge(draft) if draft.state.stage is Stage.RECOVERING else None


def _draining(draft: Draft) -> None:
    attempt, seen = draft.situation.attempt, draft.situation.attempt_seen
    if attempt.end_reason is Reason.EVICTION_NOTICE:
        if seen is not None and seen.exit is None:
            draft.count(noticed_pods(attempt, seen))  # a second node may be reclaimed during the drain
        draft.exhaust_if_exceeded()
    if finished(draft.situation) is not None:
        return draft.move(Reason.COMPLETED)
    if seen is not None and seen.exit is Exit.FENCED and draft.situation.foreign_owner:
        return draft.move(Reason.FENCED, log_owner(draft))
    if (seen is not None and seen.exit is not None) or not draft.situation.can_commit:
        found = judge(draft.situation)
        return draft.move(Reason.DRAINED, "" if found is None else found.message)
    if attempt.drain_by is None or draft.now >= attempt.drain_by:
        return draft.move(Reason.GRACE_EXCEEDED, _grace_given(attempt))
    return None


def _ending(draft: Draft) -> None:
    seen = draft.situation.attempt_seen
    if finished(draft.situation) is not None:
        return draft.move(Reason.COMPLETED)
    if seen is None and draft.situation.reachable:
        return draft.move(Reason.GONE)
    if draft.state.standby is not None:
        return draft.move(Reason.RELIEVED)
    deadline = draft.situation.handover_deadline
    if deadline is not None and (not draft.situation.reachable or draft.now >= deadline):
        return draft.move(Reason.LEFT_BEHIND, "not confirmed gone; its commits are fenced")
    return draft.move(Reason.MOVED_ON, "removed while the next attempt starts") if moves_on(draft) else None


def _suspended(draft: Draft) -> None:
    if not draft.spec.suspend:
        draft.state = forgotten(replace(draft.state, waiting_since=None, paused_until=None))
        draft.move(Reason.RESUME_REQUESTED)


_STAGES: Mapping[Stage, Callable[[Draft], None]] = MappingProxyType(
    {
        Stage.IDLE: _idle,
        Stage.STARTING: _starting,
        Stage.RUNNING: _running,
        Stage.REPLACING: _replacing,
        Stage.RECOVERING: _recovering,
        Stage.DRAINING: _draining,
        Stage.ENDING: _ending,
        Stage.SUSPENDED: _suspended,
    }
)


def _notices(draft: Draft) -> list[PodSeen]:
    """Pods of the live attempt whose nodes are about to be reclaimed, or are drained, without those that it leaves
    already: pods that are being replaced and, while the next attempt boots, drained nodes."""
    attempt, seen = draft.situation.attempt, draft.situation.attempt_seen
    fresh = [pod for pod in noticed_pods(attempt, seen) if pod.uid not in attempt.leaving] if seen else []
    return fresh if attempt.leave_by is None else failing(fresh)


def _what_is_missing(draft: Draft) -> str:
    if draft.losses:
        return ", ".join(f"{loss.pod} ({loss.cause})" for loss in draft.losses)
    return "not every pod is ready" if draft.situation.reachable else "its cluster cannot be reached"


def _grace_given(attempt: Attempt) -> str:
    """How long the attempt was given: its grace, or what was left of the shortest notice."""
    if attempt.drain_by is None or attempt.drain_since is None:
        return "did not stop in time"
    return f"did not stop within {max(0.0, attempt.drain_by - attempt.drain_since):.3g} s"
