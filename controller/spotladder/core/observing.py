"""The first step of a decision: updates the state from the observation."""

from __future__ import annotations

from spotladder.core.accounting import held_nodes
from spotladder.core.availability import with_first_commit, with_sightings
from spotladder.core.copying import replace
from spotladder.core.draft import Draft
from spotladder.core.elastic import enough_since
from spotladder.core.evidence import contact_lost
from spotladder.core.extra_costs import with_heads, with_progress
from spotladder.core.leaving_behind import take_in_left
from spotladder.core.losses import lost_pods, remember_alive, with_contact
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
)
from spotladder.core.moving import launched_with
from spotladder.core.reasons import Reason
from spotladder.core.replacing import forget_finished, replace_suspects
from spotladder.core.situation import LIVE, READY
from spotladder.core.standing_by import take_in_standby
from spotladder.core.starts import with_first_step
from spotladder.core.tier_view import sightings
from spotladder.core.work import with_pace, with_total

GROUPS = 8
"""Maximum number of groups of ranks of an attempt whose steps are recorded; the oldest are dropped."""


def take_in(draft: Draft) -> None:
    """Record the newest commit, the pods of the live attempt that run or are lost, the nodes that it holds, the standby
    attempt, the attempts that are being removed, the heads that run, and the capacity of the tiers."""
    _take_in_progress(draft)
    _take_in_attempt(draft)
    replace_suspects(draft)
    forget_finished(draft)
    take_in_standby(draft)
    take_in_left(draft)
    draft.state = with_heads(draft.state, draft.spec, draft.seen)
    draft.state = with_sightings(draft.state, sightings(draft.situation), draft.now, draft.last)


def _take_in_attempt(draft: Draft) -> None:
    attempt = draft.state.attempt
    if attempt is None:
        draft.state = replace(draft.state, nodes=0)
        return
    if contact_lost(draft.situation):
        draft.seen = with_contact(draft.seen, attempt, ready=draft.state.stage in READY)
    seen = draft.seen.attempt(attempt.number)
    absent = seen is None and not draft.seen.launched and draft.situation.reachable
    attempt = _planned_with_spec(draft, attempt, launched=attempt.seen or not absent)
    draft.state = replace(draft.state, attempt=attempt, nodes=held_nodes(seen))
    if seen is None:
        return
    counts = _counts_losses(draft, attempt)
    if counts:
        draft.count(lost_pods(attempt, seen))
        attempt = draft.situation.attempt
    if seen.reachable:
        attempt = replace(attempt, seen=True, steps=_steps(attempt, seen, draft.now))
        if counts:
            attempt = remember_alive(attempt, seen)
    if seen.exit in (Exit.FAILED, Exit.SUCCEEDED) and attempt.exited_at is None:
        attempt = replace(attempt, exited_at=draft.now)
    if (since := enough_since(draft.situation, attempt)) != attempt.enough_since:
        attempt = replace(attempt, enough_since=since)
    draft.state = replace(with_total(draft.state, seen.total), attempt=attempt)
    draft.state = with_first_step(draft.state, draft.spec, seen)


def _steps(attempt: Attempt, seen: AttemptSeen, now: Instant) -> tuple[Steps, ...]:
    """The attempt's steps with the newest one. A smaller step than before, or one of another number of workers, belongs
    to a new group of ranks."""
    step, workers = seen.step, seen.size or 0
    if not step or (attempt.steps and attempt.steps[-1].last == step):
        return attempt.steps
    if not attempt.steps or step < attempt.steps[-1].last or workers != attempt.steps[-1].workers:
        return (*attempt.steps, Steps(step, now, step, now, workers))[-GROUPS:]
    return (*attempt.steps[:-1], replace(attempt.steps[-1], last=step, last_at=now))


def _take_in_progress(draft: Draft) -> None:
    before, now = draft.state.progress, draft.seen.progress
    if now == before:
        return
    if now.committed_at != before.committed_at:
        draft.state = replace(draft.state, denials=0, denied="", commit_seconds=_commit_seconds(draft))
    draft.state = with_first_commit(with_pace(draft.state, draft.spec, now, draft.now), now)
    draft.state = with_progress(draft.state, draft.spec, now)
    at = draft.now if _grown(before, now) else draft.state.progress_at
    draft.state = _with_end_step(replace(with_total(draft.state, now.total), progress=now, progress_at=at))


def with_log_at_end(state: JobState, progress: Progress) -> JobState:
    """The state with the log as it was read after the end of the job: the last commit may have been read too late for
    the decision."""
    return _with_end_step(replace(with_total(state, progress.total), progress=progress))


def _with_end_step(state: JobState) -> JobState:
    """The state in which the last attempt of the history ends with its newest commit, which may be read after it has
    ended."""
    last = state.history[-1] if state.attempt is None and state.history else None
    if last is None or state.progress.attempt > last.number or state.progress.step <= last.end_step:
        return state
    return replace(state, history=(*state.history[:-1], replace(last, end_step=state.progress.step)))


def _grown(before: Progress, now: Progress) -> bool:
    """Whether the log shows progress: another step, the start of another attempt, or a commit of the same step with
    other files, as of a sweep whose trials have new results. A commit that only repeats the last is none."""
    same = ("start", "commit", "committed_at", "commit_seconds", "skipped")
    return replace(now, **{name: getattr(before, name) for name in same}) != before


def _commit_seconds(draft: Draft) -> Seconds:
    """The longest duration of a commit, this one included: as the log records it, or from the request to commit until
    the commit was observed."""
    attempt = draft.state.attempt
    since = (attempt.drain_since or attempt.handing_over_since) if attempt is not None else None
    seen = 0.0 if since is None else draft.now - since
    return max(draft.state.commit_seconds, draft.seen.progress.commit_seconds, seen)


def _planned_with_spec(draft: Draft, attempt: Attempt, *, launched: bool) -> Attempt:
    """The attempt, with the workers and the template of the current spec if it is not launched yet."""
    if launched or draft.state.stage is not Stage.STARTING:
        return attempt
    planned = launched_with(attempt, draft.spec)
    draft.replanned = planned != attempt
    return planned


def _counts_losses(draft: Draft, attempt: Attempt) -> bool:
    """Whether lost pods are failures. They are not while the controller removes the attempt, except during an
    eviction, and not when an admission queue removes the pods, which is one eviction of the attempt."""
    seen = draft.situation.attempt_seen
    queue = seen.queue if seen is not None else None
    if queue is not None and (queue.held or queue.eviction not in (None, QueueEviction.CHECK_FAILED)):
        return False
    if draft.state.stage in LIVE:
        return True
    return draft.state.stage is Stage.DRAINING and attempt.end_reason is Reason.EVICTION_NOTICE
