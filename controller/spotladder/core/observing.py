"""The first step of a decision: updates the state from the observation."""

from __future__ import annotations

from dataclasses import replace

from spotladder.core.accounting.extra_costs import with_egress, with_heads
from spotladder.core.accounting.held_nodes import held_nodes
from spotladder.core.changes.changing import counted
from spotladder.core.changes.leaving_behind import with_left_observed
from spotladder.core.changes.moving import launched_with
from spotladder.core.changes.replacing import with_suspects_replaced, without_finished_replacement
from spotladder.core.changes.standing_by import with_standby_observed
from spotladder.core.diagnosis.evidence import contact_lost
from spotladder.core.facts.elastic import enough_since
from spotladder.core.facts.starts import with_first_step
from spotladder.core.facts.tier_view import sightings
from spotladder.core.facts.work import with_pace, with_total
from spotladder.core.history.availability import with_sightings
from spotladder.core.history.losses import lost_pods, remember_alive, with_contact
from spotladder.core.model import (
    Attempt,
    AttemptSeen,
    Exit,
    Instant,
    JobState,
    Progress,
    QueueEviction,
    Seconds,
    Stage,
    Steps,
    StoreRefusals,
)
from spotladder.core.reasons import Reason
from spotladder.core.situation import LIVE, READY, Situation

GROUPS = 8
"""Maximum number of groups of ranks of an attempt whose steps are recorded; the oldest are dropped."""


def observed(situation: Situation, last: Instant | None) -> Situation:
    """The situation in which the state has the newest commit, the pods of the live attempt that run or are lost, the
    nodes that it holds, the standby attempt, the attempts that are being removed, the heads that run, and the capacity
    of the tiers. `last` is the time of the last decision."""
    situation = _with_attempt(_with_progress(situation))
    situation = without_finished_replacement(with_suspects_replaced(situation))
    situation = with_left_observed(with_standby_observed(situation))
    state = with_heads(situation.state, situation.spec, situation.seen)
    situation = replace(situation, state=state)
    return replace(situation, state=with_sightings(state, sightings(situation), situation.now, last))


def _with_attempt(situation: Situation) -> Situation:
    """The situation with the live attempt as observed."""
    attempt = situation.state.attempt
    if attempt is None:
        return situation
    if contact_lost(situation):
        seen = with_contact(situation.seen, attempt, ready=situation.state.stage in READY)
        situation = replace(situation, seen=seen)
    found = situation.seen.attempt(attempt.number)
    absent = found is None and not situation.seen.launched and situation.reachable
    situation = _planned_with_spec(situation, attempt, launched=attempt.seen or not absent)
    if found is None and not situation.reachable:
        return situation  # Its pods may still run, on the nodes that it held.
    situation = replace(situation, state=replace(situation.state, nodes=held_nodes(found)))
    return situation if found is None else _with_pods(situation, found)


def _with_pods(situation: Situation, seen: AttemptSeen) -> Situation:
    """The situation in which the lost pods of the live attempt are counted, and its pods and steps are recorded."""
    counts = _counts_losses(situation, situation.attempt)
    if counts:
        situation = counted(situation, lost_pods(situation.attempt, seen))
    attempt, now = situation.attempt, situation.now
    if seen.reachable:
        attempt = replace(attempt, seen=True, steps=_steps(attempt, seen, now))
        if counts:
            attempt = remember_alive(attempt, seen)
    if seen.exit in (Exit.FAILED, Exit.SUCCEEDED) and attempt.exited_at is None:
        attempt = replace(attempt, exited_at=now)
    if (since := enough_since(situation, attempt)) != attempt.enough_since:
        attempt = replace(attempt, enough_since=since)
    state = replace(with_total(situation.state, seen.total), attempt=attempt)
    return replace(situation, state=with_first_step(state, situation.spec, seen))


def _steps(attempt: Attempt, seen: AttemptSeen, now: Instant) -> tuple[Steps, ...]:
    """The attempt's steps with the newest one. A smaller step than before, or one of another number of workers, belongs
    to a new group of ranks."""
    step, workers = seen.step, seen.size or 0
    if not step or (attempt.steps and attempt.steps[-1].last == step):
        return attempt.steps
    if not attempt.steps or step < attempt.steps[-1].last or workers != attempt.steps[-1].workers:
        return (*attempt.steps, Steps(step, now, step, now, workers))[-GROUPS:]
    return (*attempt.steps[:-1], replace(attempt.steps[-1], last=step, last_at=now))


def _with_progress(situation: Situation) -> Situation:
    """The situation with the newest commit."""
    state, spec, now = situation.state, situation.spec, situation.now
    before, newest = state.progress, situation.seen.progress
    if newest == before:
        return situation
    attempt = state.attempt
    if attempt is not None and newest.attempt < attempt.number and newest.step > attempt.start_step:
        # Its program has not started: it will resume from the commits of the attempt before, which is cut off.
        state = replace(state, attempt=replace(attempt, start_step=newest.step))
    if newest.committed_at != before.committed_at:
        measured = replace(state.measured, commit_seconds=_commit_seconds(situation))
        state = replace(state, refusals=StoreRefusals(), measured=measured)
    state = with_egress(with_pace(state, spec, newest, now), spec, newest)
    at = now if _grown(before, newest) else state.progress_at
    state = _with_end_step(replace(with_total(state, newest.total), progress=newest, progress_at=at))
    return replace(situation, state=state)


def with_log_at_end(state: JobState, progress: Progress) -> JobState:
    """The state with the log as it was read after the end of the job: the last commit may have been read too late for
    the decision."""
    return _with_end_step(replace(with_total(state, progress.total), progress=progress))


def _with_end_step(state: JobState) -> JobState:
    """The state in which an ended attempt that made the newest commit ends at the step of this commit. The log may be
    read after the end of the attempt, and an attempt that is cut off commits until the next program has started."""
    writer, step = state.progress.writer, state.progress.step
    if not any(record.number == writer and record.end_step < step for record in state.history):
        return state
    history = (replace(one, end_step=max(one.end_step, step)) if one.number == writer else one for one in state.history)
    return replace(state, history=tuple(history))


def _grown(before: Progress, now: Progress) -> bool:
    """Whether the log shows progress: another step, the start of another attempt, or a commit of the same step with
    other files, as of a sweep whose trials have new results. A commit that only repeats the last is none."""
    same = ("start", "commit", "committed_at", "commit_seconds", "skipped", "committed_by")
    return replace(now, **{name: getattr(before, name) for name in same}) != before


def _commit_seconds(situation: Situation) -> Seconds:
    """The longest duration of a commit, this one included: as the log records it, or from the request to commit until
    the commit was observed."""
    attempt = situation.state.attempt
    since = (attempt.ending.drain_since or attempt.notice.handing_over_since) if attempt is not None else None
    seen = 0.0 if since is None else situation.now - since
    return max(situation.state.measured.commit_seconds, situation.seen.progress.commit_seconds, seen)


def _planned_with_spec(situation: Situation, attempt: Attempt, *, launched: bool) -> Situation:
    """The situation in which the attempt has the workers and the template of the current spec, if it is not launched
    yet."""
    if launched or situation.state.stage is not Stage.STARTING:
        return situation
    planned = launched_with(attempt, situation.spec)
    if planned == attempt:
        return situation
    changes = replace(situation.changes, replanned=True)
    return replace(situation, state=replace(situation.state, attempt=planned), changes=changes)


def _counts_losses(situation: Situation, attempt: Attempt) -> bool:
    """Whether lost pods are failures. They are not while the controller removes the attempt, except during an
    eviction, and not when an admission queue removes the pods, which is one eviction of the attempt."""
    seen = situation.attempt_seen
    queue = seen.queue if seen is not None else None
    if queue is not None and (queue.held or queue.eviction not in (None, QueueEviction.CHECK_FAILED)):
        return False
    if situation.state.stage in LIVE:
        return True
    return situation.state.stage is Stage.DRAINING and attempt.ending.reason is Reason.EVICTION_NOTICE
