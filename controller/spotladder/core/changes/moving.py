"""The effects of each change of stage: timers start and stop, an attempt is planned, an attempt ends."""

from __future__ import annotations

from dataclasses import replace

from spotladder.core.facts.standby import standby_seen
from spotladder.core.history.bad_nodes import avoided_nodes, named
from spotladder.core.history.crashes import ended_unready, forgotten
from spotladder.core.history.losses import with_record
from spotladder.core.model import TERMINAL, Attempt, AttemptRecord, Instant, JobSpec, JobState, LeftAttempt, Move, Stage
from spotladder.core.reasons import Reason
from spotladder.core.situation import LIVE, Situation
from spotladder.core.transitions import target

HISTORY = 20
"""Maximum number of finished attempts in the history, and of those being removed; the oldest are dropped."""

_WITH_ATTEMPT = LIVE | {Stage.DRAINING, Stage.ENDING}


def moved(situation: Situation, reason: Reason, message: str = "") -> tuple[JobState, Move]:
    """The state in the next stage. Raises IllegalTransition without a change."""
    state, now, attempt = situation.state, situation.now, situation.state.attempt
    source, following = state.stage, target(state.stage, reason)
    number, tier = (attempt.number, attempt.tier) if attempt else (state.last_number, state.tier)
    if attempt is not None:
        if following is Stage.ENDING and attempt.running_at is None:
            state = ended_unready(state, attempt, situation.spec, reason, now)
        if following is Stage.RUNNING:
            state = forgotten(state)
            known = replace(attempt.known, lost_units=())
            attempt = replace(attempt, running_at=attempt.running_at or now, all_ready_at=now, known=known)
            timers = replace(state.timers, waiting_since=None, recovering_since=None)
            state = replace(state, timers=timers, loss_counted=False)
        elif following is Stage.RECOVERING:
            state = replace(state, timers=replace(state.timers, waiting_since=now, recovering_since=now))
        elif following is Stage.DRAINING:
            ending = replace(attempt.ending, reason=reason, drain_since=now, drain_by=_drain_by(situation))
            attempt = replace(attempt, ending=ending)
        elif following is Stage.ENDING:
            ending = replace(attempt.ending, reason=attempt.ending.reason or reason, since=now)
            attempt = replace(attempt, ending=ending)
            if state.timers.waiting_since is None:
                state = replace(state, timers=replace(state.timers, waiting_since=now))
    state = replace(state, stage=following, attempt=attempt, reason=reason, message=message)
    if attempt is not None and following not in _WITH_ATTEMPT:
        state = _closed(state, attempt, situation)
    if following in TERMINAL or following is Stage.SUSPENDED:
        state = without_standby(situation, state)
    if following in TERMINAL:
        state = replace(state, ended_at=now, timers=replace(state.timers, waiting_since=None))
    return state, Move(source, following, reason, number, tier, message)


def planned(situation: Situation, tier: str) -> tuple[JobState, Reason, str]:
    """The state with a new attempt planned on this tier, the reason of the launch and its message."""
    state, now = situation.state, situation.now
    number = next_number(situation)
    reason = launch_reason(situation.spec, state.tier, tier)
    message = f"attempt {number} on {tier}"
    changed = state.tier != tier
    updated = bool(state.history) and state.history[-1].reason is Reason.SPEC_UPDATED
    paused = state.timers.paused_until is not None  # A pause is not a wait for capacity.
    waiting_since = state.timers.waiting_since
    if changed or updated or paused or waiting_since is None:
        waiting_since = now
    if state.tier and changed:
        exhausted_by = state.record(state.tier).exhausted_by
        message += f", from {state.tier}" + (f" ({exhausted_by})" if exhausted_by else "")
    avoids = avoided_nodes(state, tier, situation.seen.suspects)
    if avoids:
        message += f"; avoids {named(avoids, state)}"
    record = state.record(tier)
    attempt = Attempt(number, tier, now, start_step=situation.seen.progress.step, avoids=avoids)
    state = replace(
        with_record(state, replace(record, attempts=record.attempts + 1)),
        attempt=launched_with(attempt, situation.spec),
        last_number=number,
        tier=tier,
        timers=replace(state.timers, waiting_since=waiting_since, paused_until=None),
        started_at=now if state.started_at is None else state.started_at,
        loss_counted=False,
    )
    return state, reason, message


def next_number(situation: Situation) -> int:
    """A number that no attempt of the job has."""
    seen, last = situation.seen, situation.state.last_number
    return 1 + max(last, seen.progress.attempt, *(attempt.number for attempt in seen.attempts), 0)


def launched_with(attempt: Attempt, spec: JobSpec) -> Attempt:
    """A new attempt with this spec's workers and template."""
    tier = spec.tier(attempt.tier)
    template = tier.template if tier else attempt.template
    return replace(attempt, workers=spec.workers, min_workers=spec.min_workers, template=template)


def launch_reason(spec: JobSpec, before: str, tier: str) -> Reason:
    """The reason of a launch on `tier` after an attempt on `before` ("": this is the first attempt)."""
    if before in ("", tier):
        return Reason.STARTED
    names = [entry.name for entry in spec.tiers]
    back = before in names and tier in names and names.index(tier) < names.index(before)
    return Reason.MIGRATED_BACK if back else Reason.FELL_BACK


def without_standby(situation: Situation, state: JobState) -> JobState:
    """This state of the job without its standby attempt, whose objects are removed."""
    standby = state.standby.attempt
    if standby is None:
        return state
    if standby_seen(situation) is not None:
        state = _with_left(state, LeftAttempt(standby.number, standby.tier, situation.now, state.standby.nodes))
    return replace(state, standby=replace(state.standby, attempt=None, nodes=0))


def _with_left(state: JobState, left: LeftAttempt) -> JobState:
    return replace(state, left=(*state.left, left)[-HISTORY:])


def _closed(state: JobState, attempt: Attempt, situation: Situation) -> JobState:
    """Move the attempt to the history."""
    reason, progress = attempt.ending.reason or state.reason, situation.seen.progress
    record = AttemptRecord(
        attempt.number,
        attempt.tier,
        attempt.created_at,
        attempt.running_at,
        situation.now,
        reason,
        attempt.failures,
        attempt.start_step,
        max(attempt.start_step, progress.step) if progress.writer == attempt.number else attempt.start_step,
    )
    state = with_record(state, replace(state.record(attempt.tier), last_reason=reason))
    if situation.attempt_seen is not None:
        since = situation.now if attempt.ending.since is None else attempt.ending.since
        state = _with_left(state, LeftAttempt(attempt.number, attempt.tier, since, state.nodes))
    timers = replace(state.timers, recovering_since=None)
    return replace(state, attempt=None, history=(*state.history, record)[-HISTORY:], timers=timers, nodes=0)


def _drain_by(situation: Situation) -> Instant:
    """The end of the grace period, or of the shortest notice if that is earlier."""
    noticed = [pod for pod in situation.attempt_seen.pods if pod.noticed] if situation.attempt_seen else []
    return min([situation.now + situation.spec.grace, *(max(situation.now, situation.gone_at(pod)) for pod in noticed)])
