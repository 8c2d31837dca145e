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

No work is lost with a pod of a standby attempt, so its losses are not failures. `rules.planned_moves`, `rules.notices`
and `rules.missing_capacity` plan standby attempts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from spotladder.core import limits
from spotladder.core.accounting import held_nodes
from spotladder.core.availability import with_sightings
from spotladder.core.bad_nodes import avoided_nodes
from spotladder.core.changing import with_standby_change
from spotladder.core.crashes import crash_of, crashed_pods
from spotladder.core.durations import format_duration
from spotladder.core.elastic import enough_since
from spotladder.core.gang import gang_refused, required_workers
from spotladder.core.losses import head_lost, with_record
from spotladder.core.model import (
    Attempt,
    AttemptSeen,
    JobState,
    OnInsufficientCapacity,
    PodPhase,
    PodRole,
    Seconds,
    StandbyChange,
)
from spotladder.core.moving import launch_reason, launched_with, next_number, without_standby
from spotladder.core.reasons import Reason
from spotladder.core.situation import LIVE, Situation
from spotladder.core.standby_facts import (
    overlap_budget_used,
    overlap_deadline,
    standby_deadline,
    standby_placed,
    standby_ready,
    standby_seen,
)

STANDBY_RETRY_INTERVAL: Seconds = 300.0
"""Minimum time between the end of a standby attempt that was given up and the start of the next one."""


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A move of the live attempt to a tier, or to another pod template on its tier, that can wait."""

    tier: str
    reason: Reason
    message: str


def with_standby_observed(situation: Situation) -> Situation:
    """The situation with the nodes that the standby attempt holds; without one that has failed, or that the job no
    longer needs."""
    standby, seen = situation.state.standby, standby_seen(situation)
    if standby is None:
        return situation
    standby = replace(
        standby,
        seen=standby.seen or (seen is not None and seen.reachable),
        enough_since=enough_since(situation, standby),
    )
    state = replace(situation.state, standby=standby, standby_nodes=held_nodes(seen))
    situation = replace(situation, state=state)
    if why := _unwanted(situation, standby):
        return given_up(situation, why)
    if not (why := _failed(situation, standby, seen) or _expired(situation, seen)):
        return situation
    if _lacks_capacity(situation, seen) and standby.tier != state.tier:
        state = with_sightings(state, {standby.tier: False}, situation.now)
    state = replace(state, standby_after=situation.now + STANDBY_RETRY_INTERVAL)
    return given_up(replace(situation, state=state), why)


def given_up(situation: Situation, why: str) -> Situation:
    """The situation without the standby attempt. Its objects are deleted, since they belong to no attempt of the state.
    It was never the job's attempt, so the history does not have it."""
    standby = situation.state.standby
    if standby is None:
        return situation
    change = StandbyChange(standby.number, standby.tier, Reason.STANDBY_ENDED, why)
    return with_standby_change(replace(situation, state=without_standby(situation, situation.state)), change)


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


def with_standby(situation: Situation, move: PlannedMove) -> Situation:
    """The situation in which the next attempt of this move is planned as a standby."""
    state, number = situation.state, next_number(situation)
    avoids = avoided_nodes(state, move.tier, situation.seen.suspects)
    step = situation.seen.progress.step
    attempt = Attempt(number, move.tier, situation.now, start_step=step, standby=True, avoids=avoids)
    state = replace(
        state,
        standby=launched_with(attempt, situation.spec),
        standby_reason=move.reason,
        last_number=number,
    )
    message = f"attempt {number} on {move.tier} starts beside attempt {situation.attempt.number}: {move.message}"
    change = StandbyChange(number, move.tier, Reason.STANDBY_STARTED, message)
    return with_standby_change(replace(situation, state=state), change)


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
        return f"spec.overlap.budget of {overlap.budget:.10g} USD is spent"
    if overlap.max_duration is not None and situation.passed(overlap_deadline(situation)):
        return f"spec.overlap.maxDuration of {format_duration(overlap.max_duration)} has passed"
    if standby_ready(situation) or not situation.passed(standby_deadline(situation)):
        return ""
    if standby_placed(situation):
        within = format_duration(situation.spec.start_timeout)
        return f"every pod that it needs was placed, but it was not ready within {within}"
    waits = [pod.waiting_message for pod in seen.pods if pod.waiting_message] if seen is not None else []
    return ": ".join(["it found no capacity within provisionTimeout", *waits[:1]])
