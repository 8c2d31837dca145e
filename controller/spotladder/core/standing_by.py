"""Standby attempts: the next attempt of a planned move boots beside the live one, so that the move costs one commit.

1. A move of the policy to a cheaper tier, or a changed pod template, plans the next attempt as a standby. So does a
   notice that the live attempt does not survive, on the tier that the policy chooses; the live attempt is then asked to
   commit at once. The program of the standby is held before its first entry in the commit log. Training continues.
2. When every worker that it needs is ready and its program is held, the live attempt is asked to commit and to stop.
   Of an elastic attempt these are all that got a node in time, `min_workers` at least (`elastic.py`). After a notice
   it is asked at the last moment for a commit, ready or not.
3. When the live attempt has ended, for whatever reason, the standby attempt becomes the live one, and its program
   starts. Its first log entry fences the earlier attempt.
4. A standby attempt that fails, is not ready in time, or reaches a bound of `overlap` is given up, and training
   continues. The policy's move is tried again after `STANDBY_RETRY_INTERVAL`; a changed template is applied without a
   standby then.

No work is lost with a pod of a standby attempt, so its losses are not failures.
"""

from __future__ import annotations

from dataclasses import dataclass

from spotladder.core import limits
from spotladder.core.accounting import held_nodes
from spotladder.core.availability import with_sightings
from spotladder.core.bad_nodes import avoided_nodes
from spotladder.core.copying import replace
from spotladder.core.crashes import crash_of, crashed_pods
from spotladder.core.draft import Draft
from spotladder.core.durations import format_duration
from spotladder.core.elastic import enough_since
from spotladder.core.gang import gang_refused, required_workers
from spotladder.core.losses import head_lost, with_record
from spotladder.core.model import (
    Attempt,
    AttemptSeen,
    Instant,
    JobState,
    OnInsufficientCapacity,
    PodPhase,
    PodRole,
    PodSeen,
    Seconds,
    StandbyChange,
)
from spotladder.core.moving import launch_reason, launched_with, next_number, without_standby
from spotladder.core.reasons import Reason
from spotladder.core.replacing import commit_due
from spotladder.core.situation import LIVE, READY, Situation
from spotladder.core.standby_facts import (
    overlap_budget_used,
    overlap_deadline,
    overlaps,
    returns_beside,
    standby_deadline,
    standby_placed,
    standby_ready,
    standby_seen,
)

STANDBY_RETRY_INTERVAL: Seconds = 300.0
"""Minimum time between the end of a standby attempt that was given up and the start of the next one."""


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A move of the live attempt to a tier, or to another pod template on its tier, that can wait: until `by` if its
    nodes will be reclaimed."""

    tier: str
    reason: Reason
    message: str
    by: Instant | None = None


def waits_for_standby(draft: Draft, move: PlannedMove | None) -> bool:
    """Whether the live attempt continues for now because a standby attempt boots, or may not boot yet, for this move.
    Plans and gives up standby attempts."""
    situation, standby = draft.situation, draft.state.standby
    if move is not None and move.by is not None:
        can_wait = situation.state.stage in READY and not situation.passed(move.by)
        return standby is not None and can_wait and not standby_ready(situation)
    if standby is not None and draft.state.standby_reason is Reason.HEDGED:
        if move is not None and move.tier != standby.tier:
            give_up(draft, f"{move.tier} is wanted instead")
        return False  # The live attempt does not train.
    if standby is not None:
        if move is not None and move.tier == standby.tier:
            return not standby_ready(situation)
        if move is None and not situation.reachable:
            return True  # Whether the move is still wanted is known when the live attempt is observed again.
        give_up(draft, "the move is no longer needed" if move is None else f"{move.tier} is wanted instead")
    if move is None or not _possible(draft.situation, move):
        return False
    after = draft.state.standby_after
    if after is not None and draft.now < after:
        return move.reason is Reason.POLICY
    plan(draft, move)
    return True


def boots_next(draft: Draft, notices: list[PodSeen]) -> bool:
    """Plan the next attempt as a standby, if there is none, since the live one does not survive these notices, whose
    failures are counted. Returns whether the live attempt continues for now."""
    situation, by = draft.situation, commit_due(draft.situation, notices)
    if by <= situation.now or not overlaps(situation) or limits.over_backoff_limit(situation):
        return False
    if draft.state.standby is None:
        name = draft.choose(live=False).tier  # As after a drain.
        tier = draft.spec.tier(name) if name is not None else None
        if tier is None or not tier.standby or tier.name not in situation.open or tier.name in draft.seen.unavailable:
            return False
        why = ", ".join(f"{pod.called} ({pod.cause})" for pod in notices)
        plan(draft, PlannedMove(tier.name, situation.notice_reason, why))
    attempt = draft.situation.attempt
    if attempt.leave_by is None or by < attempt.leave_by:
        draft.state = replace(draft.state, attempt=replace(attempt, leave_by=by, commit_asked_at=draft.now))
        draft.replanned = True
    return True


def forget_withdrawn(draft: Draft) -> None:
    """Forget that the live attempt is to end if its nodes were only drained for maintenance and are usable again."""
    attempt = draft.situation.attempt
    if attempt.leave_by is not None and not draft.state.loss_counted and draft.situation.notices_withdrawn:
        draft.state = replace(draft.state, attempt=replace(attempt, leave_by=None))
        draft.replanned = True


def end_of_notice(situation: Situation) -> PlannedMove | None:
    """The end of a live attempt that trains while the next one boots after a notice; None if it does not."""
    attempt, standby = situation.attempt, situation.state.standby
    if attempt.leave_by is None:
        return None
    message = "its nodes are " + ("drained" if situation.notice_reason is Reason.MAINTENANCE else "being reclaimed")
    if standby is None:
        message += ", and no attempt stands by"
    else:
        ready = "stands by" if standby_ready(situation) else "is not ready yet"
        message += f"; attempt {standby.number} on {standby.tier} {ready}"
    return PlannedMove(attempt.tier, situation.notice_reason, message, attempt.leave_by)


def take_in_standby(draft: Draft) -> None:
    """Record which nodes the standby attempt holds; give it up if it has failed, or is no longer needed."""
    standby = draft.state.standby
    if standby is None:
        return
    seen = standby_seen(draft.situation)
    standby = replace(
        standby,
        seen=standby.seen or (seen is not None and seen.reachable),
        enough_since=enough_since(draft.situation, standby),
    )
    draft.state = replace(draft.state, standby=standby, standby_nodes=held_nodes(seen))
    if why := _unwanted(draft.situation, standby):
        give_up(draft, why)
    elif why := _failed(draft.situation, standby, seen) or _expired(draft.situation, seen):
        if _lacks_capacity(draft.situation, seen) and standby.tier != draft.state.tier:
            draft.state = with_sightings(draft.state, {standby.tier: False}, draft.now)
        draft.state = replace(draft.state, standby_after=draft.now + STANDBY_RETRY_INTERVAL)
        give_up(draft, why)


def give_up(draft: Draft, why: str) -> None:
    """Remove the standby attempt. Its objects are deleted, since they belong to no attempt of the state. It was never
    the job's attempt, so the history does not have it."""
    standby = draft.state.standby
    if standby is None:
        return
    draft.state = without_standby(draft.situation, draft.state)
    draft.standby_changes.append(StandbyChange(standby.number, standby.tier, Reason.STANDBY_ENDED, why))
    draft.replanned = True


def adopted(situation: Situation) -> tuple[JobState, Reason, str]:
    """The state with the standby attempt as the live one, the reason of the transition and its message."""
    state, standby, seen = situation.state, situation.state.standby, standby_seen(situation)
    if standby is None:
        raise AssertionError("no standby attempt to adopt")
    lost = [pod.uid for pod in seen.pods if pod.phase is PodPhase.LOST] if seen is not None else []
    attempt = replace(
        standby,
        created_at=situation.now,
        start_step=situation.seen.progress.step,
        lost_pods=tuple(lost),
        node_seconds_before=state.node_seconds,
    )
    reason = launch_reason(situation.spec, state.tier, standby.tier)
    message = f"attempt {standby.number} on {standby.tier} takes over; it was standing by"
    record = state.record(standby.tier)
    adopting = replace(
        with_record(state, replace(record, attempts=record.attempts + 1)),
        attempt=attempt,
        nodes=state.standby_nodes,
        tier=standby.tier,
        waiting_since=situation.now,
        paused_until=None,
        loss_counted=False,
        standby=None,
        standby_nodes=0,
    )
    return adopting, reason, message


def plan(draft: Draft, move: PlannedMove) -> None:
    """Plan the next attempt of this move as a standby."""
    state, situation = draft.state, draft.situation
    number = next_number(situation)
    avoids = avoided_nodes(state, move.tier, draft.seen.suspects)
    attempt = Attempt(
        number, move.tier, draft.now, start_step=situation.seen.progress.step, standby=True, avoids=avoids
    )
    draft.state = replace(
        state,
        standby=launched_with(attempt, draft.spec),
        standby_reason=move.reason,
        last_number=number,
    )
    message = f"attempt {number} on {move.tier} starts beside attempt {situation.attempt.number}: {move.message}"
    draft.standby_changes.append(StandbyChange(number, move.tier, Reason.STANDBY_STARTED, message))
    draft.replanned = True


def _possible(situation: Situation, move: PlannedMove) -> bool:
    """Whether the next attempt of this move may run beside the live one."""
    target = situation.spec.tier(move.tier)
    if target is None or move.tier in situation.seen.unavailable:
        return False
    if move.reason is Reason.SPEC_UPDATED:
        return target.standby and overlaps(situation)
    return returns_beside(situation, target)


def _unwanted(situation: Situation, standby: Attempt) -> str:
    """Why the job needs no standby attempt, or not this one; "" if it does."""
    tier = situation.spec.tier(standby.tier)
    if situation.spec.suspend or limits.reached(situation) is not None or limits.over_backoff_limit(situation):
        return "the job stops"
    if situation.spec.overlap is None:
        return "spec.overlap was removed"
    if situation.spec.overlap.hedge_after is None and situation.state.standby_reason is Reason.HEDGED:
        return "spec.overlap.hedgeAfter was removed"
    if tier is None or standby.tier not in situation.open:
        return f"{standby.tier} can no longer be used"
    if standby != launched_with(standby, situation.spec):
        return "the spec's pods changed again"
    return ""


def _failed(situation: Situation, standby: Attempt, seen: AttemptSeen | None) -> str:
    """Why the standby attempt can never take over; "" while it can."""
    if seen is None:
        gone = standby.seen and standby.tier not in situation.seen.unavailable
        return "its objects are gone" if gone else ""
    if not seen.reachable:
        return ""
    if seen.exit is not None:
        return ": ".join(filter(None, ("its program has ended", seen.message)))
    if crashed := crashed_pods(standby, seen):
        return f"{crashed[0].called}: {crash_of(crashed[0])}"
    if head_lost(seen):
        return "its head is lost"
    tier = situation.spec.tier(standby.tier)
    falls_back = tier is not None and tier.on_insufficient_capacity is OnInsufficientCapacity.FALLBACK
    refused = gang_refused(seen, required_workers(standby, seen, situation.spec))
    return "the provisioner has no capacity" if falls_back and refused else ""


def _lacks_capacity(situation: Situation, seen: AttemptSeen | None) -> bool:
    if seen is None or standby_placed(situation):
        return False
    return seen.refused or any(pod.unschedulable and pod.role is not PodRole.AUXILIARY for pod in seen.pods)


def _expired(situation: Situation, seen: AttemptSeen | None) -> str:
    """Which bound the standby attempt has reached; "" for none. None applies once the live attempt is being ended."""
    overlap = situation.spec.overlap
    if situation.state.stage not in LIVE or overlap is None:
        return ""
    if overlap_budget_used(situation):
        return f"spec.overlap.budget of {overlap.budget:g} USD is spent"
    if overlap.max_duration is not None and situation.passed(overlap_deadline(situation)):
        return f"spec.overlap.maxDuration of {format_duration(overlap.max_duration)} has passed"
    if standby_ready(situation) or not situation.passed(standby_deadline(situation)):
        return ""
    if standby_placed(situation):
        within = format_duration(situation.spec.start_timeout)
        return f"every pod that it needs was placed, but it was not ready within {within}"
    waits = [pod.waiting_message for pod in seen.pods if pod.waiting_message] if seen is not None else []
    return ": ".join(["it found no capacity within provisionTimeout", *waits[:1]])
