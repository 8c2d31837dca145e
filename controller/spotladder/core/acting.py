"""The actions that a persisted state needs, and when to decide again. Changes no state."""

from __future__ import annotations

from spotladder.core.accounting.held_nodes import HOUR, stored_per_second
from spotladder.core.changes.hedging import hedge_due
from spotladder.core.changes.leaving_behind import waits_until, why_removed
from spotladder.core.diagnosis.impediment import Timer, timer_of
from spotladder.core.facts import limits
from spotladder.core.facts.elastic import begin_due, resize
from spotladder.core.facts.standby import overlap_deadline, standby_deadline
from spotladder.core.model import (
    TERMINAL,
    Action,
    AskToCommit,
    Attempt,
    Delete,
    Drain,
    Finish,
    Handover,
    Instant,
    Launch,
    PodRole,
    Replace,
    Seconds,
    Stage,
    TakeOver,
)
from spotladder.core.reasons import Reason
from spotladder.core.situation import LIVE, READY, Situation

ACTION_RETRY_INTERVAL: Seconds = 10.0
"""Interval after which an action whose effect is not observed is repeated."""


def actions(situation: Situation) -> tuple[Action, ...]:
    """The actions to apply now. Each action is repeated until its effect is observed."""
    state, attempt = situation.state, situation.state.attempt
    kept = {own.number for own in (attempt, state.standby.attempt) if own is not None}
    others = [seen for seen in situation.seen.attempts if seen.number not in kept]
    todo: list[Action] = [Delete(seen.number, why_removed(state, seen.number)) for seen in others if seen.reachable]
    if state.stage is Stage.STARTING and attempt is not None and not attempt.seen:
        held_back = situation.spec.handover is Handover.WHEN_GONE and others
        if not held_back and attempt.tier not in situation.seen.unavailable:
            todo.append(_launch(situation, attempt))
    elif state.stage is Stage.DRAINING and attempt is not None:
        ending = attempt.ending
        todo.append(Drain(attempt.number, ending.drain_by or situation.now, ending.reason or state.reason))
    elif state.stage is Stage.ENDING and attempt is not None:
        todo.append(Delete(attempt.number, attempt.ending.reason or state.reason))
    elif state.stage in TERMINAL:
        todo.append(Finish(state.stage is Stage.SUCCEEDED, state.reason))
    elif attempt is not None and (changed := _replace(situation) or resize(situation, attempt)) is not None:
        todo.append(changed)
    return (*_commit(situation), *todo, *_standby_actions(situation))


def _launch(situation: Situation, attempt: Attempt) -> Launch:
    return Launch(attempt.number, attempt.tier, attempt.standby, situation.state.hangs, attempt.avoids)


def _standby_actions(situation: Situation) -> tuple[Action, ...]:
    """Launch the standby attempt and change its number of workers. When it has become the live attempt, start its
    program."""
    state, live, standby = situation.state, situation.state.attempt, situation.state.standby.attempt
    if standby is not None and not standby.seen and standby.tier not in situation.seen.unavailable:
        return (_launch(situation, standby),)
    if standby is not None and (resized := resize(situation, standby)) is not None:
        return (resized,)
    if live is not None and live.standby and state.stage in LIVE and situation.seen.progress.attempt < live.number:
        return (TakeOver(live.number),)
    return ()


def _replace(situation: Situation) -> Replace | None:
    """The replacement in progress, repeated until it is forgotten. Before the handover it applies only while all
    workers are ready: an attempt that has lost other pods hands over at once. A suspect pod is not removed before its
    cluster has marked the node, since it keeps the replacement off the node."""
    attempt, seen = situation.state.attempt, situation.attempt_seen
    if situation.state.stage not in LIVE or attempt is None or not attempt.notice.leaving:
        return None
    if seen is None or not seen.reachable or seen.surplus is None:
        return None
    incomplete = situation.state.stage is not Stage.REPLACING and not any(pod.suspect for pod in situation.leaving)
    notice = attempt.notice
    hand_over = incomplete or notice.handing_over_since is not None
    remove = incomplete or situation.passed(situation.removal_due)
    return Replace(attempt.number, notice.leaving, hand_over, remove, notice.replace_by or situation.now)


def _commit(situation: Situation) -> tuple[AskToCommit, ...]:
    """The request to commit at a notice that the live attempt outlives for now, repeated until there is a commit.

    The noticed workers pass it on to the other ranks; the program may run in the head, too. If the head is noticed,
    every pod gets it.
    """
    state, attempt, seen = situation.state, situation.state.attempt, situation.attempt_seen
    if state.stage not in READY or attempt is None or attempt.notice.commit_asked_at is None or seen is None:
        return ()
    notice, asked_at = attempt.notice, attempt.notice.commit_asked_at
    waits = notice.leave_by is not None or (notice.leaving and notice.handing_over_since is None)
    if not waits or not seen.reachable or situation.last_progress > asked_at:
        return ()
    everywhere = any(pod.noticed and pod.role is not PodRole.WORKER for pod in seen.pods)
    asked = [pod.uid for pod in seen.pods if everywhere or pod.noticed or pod.role is not PodRole.WORKER]
    return (AskToCommit(attempt.number, tuple(asked), situation.notice_reason, asked_at),)


def steady_reason(situation: Situation) -> Reason:
    """The reason of a decision that makes no transition."""
    if situation.state.impeded is not None and situation.state.stage not in READY:
        return situation.state.impeded.reason
    return situation.state.reason if situation.state.stage in TERMINAL else Reason.STEADY


def wake_at(situation: Situation, *, acted: bool, review_at: Instant | None = None) -> Instant | None:
    """The next time when the decision may change without an event; None if only an event can change it."""
    if situation.state.stage in TERMINAL:
        return situation.now + ACTION_RETRY_INTERVAL if situation.seen.attempts else None
    times = [review_at, *_limits(situation), *_timers(situation)]
    if acted or (situation.state.stage is Stage.IDLE and review_at is None):
        times.append(situation.now + ACTION_RETRY_INTERVAL)
    # For a timer that expired without effect, such as provisionTimeout of a job whose only cluster is unreachable.
    again = situation.now + ACTION_RETRY_INTERVAL
    return min((time if time > situation.now else again for time in times if time is not None), default=None)


def _limits(situation: Situation) -> list[Instant | None]:
    if situation.state.stage is Stage.SUSPENDED:
        return []
    return [limits.deadline(situation.spec), _budget_ends_at(situation)]


def _timers(situation: Situation) -> list[Instant | None]:
    state, attempt = situation.state, situation.state.attempt
    times: list[Instant | None] = []
    if state.stage is Stage.IDLE:
        times += [state.timers.paused_until, waits_until(situation)]
    if attempt is None:
        return times
    times += _standby_timers(situation)
    if state.stage in LIVE:
        match timer_of(situation):
            case Timer.PROVISION | None:
                times += [
                    situation.provision_deadline,
                    situation.misfit_deadline,
                    _ahead(situation.avoidance_deadline, situation.now),
                ]
            case Timer.CONTACT:
                times.append(situation.contact_deadline)
            case Timer.QUEUE:
                times.append(situation.queue_deadline)
            case Timer.START:
                times.append(situation.start_deadline)
        times += [situation.attribution_deadline, _ahead(begin_due(situation, attempt), situation.now)]
        if situation.reachable and not situation.waits_for_capacity:
            times.append(situation.recovery_deadline)
    if state.stage in READY:
        ahead = (situation.silence_deadline(situation.spec.stall_timeout), situation.unready_deadline)
        times += [situation.stall_deadline, attempt.notice.leave_by, *(_ahead(at, situation.now) for at in ahead)]
    if state.stage is Stage.REPLACING:
        times.append(situation.replacement_due)
    if state.stage is Stage.DRAINING:
        times.append(attempt.ending.drain_by)
    elif state.stage is Stage.ENDING:
        times.append(situation.handover_deadline)
    return times


def _ahead(time: Instant | None, now: Instant) -> Instant | None:
    """The time, unless it has passed."""
    return time if time is not None and time > now else None


def _standby_timers(situation: Situation) -> list[Instant | None]:
    """When the program of the standby attempt begins with fewer workers; when the attempt is given up, or the next one
    may start. A live attempt that ends keeps its successor."""
    standby = situation.state.standby.attempt
    begins = None if standby is None else _ahead(begin_due(situation, standby), situation.now)
    if situation.state.stage not in LIVE:
        return [begins]
    if situation.state.standby.attempt is None:
        after = situation.state.standby.not_before
        retry = [after] if after is not None and after > situation.now and situation.spec.overlap is not None else []
        return [*retry, hedge_due(situation)]
    overlap, rate = (
        situation.spec.overlap,
        _rate(situation.state.standby.nodes, situation.state.standby.attempt.tier, situation),
    )
    bound = overlap.budget if overlap is not None else None
    used_up = (
        None
        if bound is None or not rate
        else situation.now + max(0.0, (bound - situation.state.surplus.overlap) / rate)
    )
    return [begins, standby_deadline(situation), overlap_deadline(situation), used_up]


def _budget_ends_at(situation: Situation) -> Instant | None:
    state, budget = situation.state, situation.spec.budget
    rate = _rate(state.nodes, state.tier, situation)
    if state.standby.attempt is not None:
        rate += _rate(state.standby.nodes, state.standby.attempt.tier, situation)
    rate += sum(_rate(left.nodes, left.tier, situation) for left in state.left)
    if state.attempt is not None:
        rate += state.heads_per_hour / HOUR + stored_per_second(state, situation.spec)
    return None if budget is None or not rate else situation.now + max(0.0, (budget - state.spent_usd) / rate)


def _rate(nodes: int, name: str, situation: Situation) -> float:
    """USD per second for this number of nodes of a tier."""
    tier = situation.spec.tier(name)
    return nodes * max(0.0, tier.price.per_node_hour) / HOUR if tier is not None else 0.0
