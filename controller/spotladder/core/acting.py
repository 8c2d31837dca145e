"""The actions that a persisted state needs, and when to decide again. Changes no state."""

from __future__ import annotations

from spotladder.core import limits
from spotladder.core.accounting import HOUR
from spotladder.core.elastic import begin_due, resize
from spotladder.core.hedging import hedge_due
from spotladder.core.idle import idle_budget_ends_at
from spotladder.core.impediment import Timer, timer_of
from spotladder.core.model import (
    TERMINAL,
    Action,
    Attempt,
    Delete,
    Drain,
    Finish,
    Handover,
    Instant,
    Launch,
    Replace,
    Seconds,
    Stage,
    TakeOver,
)
from spotladder.core.probing import gated, ungating
from spotladder.core.reasons import Reason
from spotladder.core.situation import LIVE, READY, Situation

ACTION_RETRY_INTERVAL: Seconds = 10.0
"""Interval after which an action whose effect is not observed is repeated."""


def actions(here: Situation) -> tuple[Action, ...]:
    """The actions to apply now. Each action is repeated until its effect is observed."""
    state, attempt = here.state, here.state.attempt
    kept = {own.number for own in (attempt, state.standby) if own is not None}
    others = [seen for seen in here.seen.attempts if seen.number not in kept]
    todo: list[Action] = [Delete(seen.number, state.reason) for seen in others if seen.reachable]
    if state.stage is Stage.STARTING and attempt is not None and not attempt.seen:
        held_back = here.spec.handover is Handover.WHEN_GONE and others
        if not held_back and attempt.tier not in here.seen.unavailable:
            todo.append(_launch(here, attempt))
    elif state.stage is Stage.DRAINING and attempt is not None:
        todo.append(Drain(attempt.number, attempt.drain_by or here.now, attempt.end_reason or state.reason))
    elif state.stage is Stage.ENDING and attempt is not None:
        todo.append(Delete(attempt.number, attempt.end_reason or state.reason))
    elif state.stage in TERMINAL:
        todo.append(Finish(state.stage is Stage.SUCCEEDED, state.reason))
    elif (replacing := _replace(here) or resize(here)) is not None:
        todo.append(replacing)
    return (*todo, *ungating(here), *_standby_actions(here))


def _launch(here: Situation, attempt: Attempt) -> Launch:
    probed = gated(attempt, here.spec)
    return Launch(attempt.number, attempt.tier, attempt.standby, here.state.hangs, attempt.avoids, probed)


def _standby_actions(here: Situation) -> tuple[Action, ...]:
    """Launch the standby attempt; let the program of one that is the live attempt now start."""
    state, live, standby = here.state, here.state.attempt, here.state.standby
    if standby is not None and not standby.seen and standby.tier not in here.seen.unavailable:
        return (_launch(here, standby),)
    if live is not None and live.standby and state.stage in LIVE and here.seen.progress.attempt < live.number:
        return (TakeOver(live.number),)
    return ()


def _replace(here: Situation) -> Replace | None:
    """The replacement in progress, repeated until it is forgotten. Before the handover it applies only while all
    workers are ready: an attempt that has lost other pods hands over at once. A suspect pod is not removed before its
    cluster has marked the node, since it keeps the replacement off the node."""
    attempt, seen = here.state.attempt, here.attempt_seen
    if here.state.stage not in LIVE or attempt is None or not attempt.leaving:
        return None
    if seen is None or not seen.reachable or seen.surplus is None:
        return None
    incomplete = here.state.stage is not Stage.REPLACING and not any(pod.suspect for pod in here.leaving)
    hand_over = incomplete or attempt.handing_over_since is not None
    remove = incomplete or here.passed(here.removal_due)
    return Replace(attempt.number, attempt.leaving, hand_over, remove, attempt.replace_by or here.now)


def steady_reason(here: Situation) -> Reason:
    """The reason of a decision that makes no transition."""
    if here.state.impeded is not None and here.state.stage not in READY:
        return here.state.impeded.reason
    return here.state.reason if here.state.stage in TERMINAL else Reason.STEADY


def wake_at(here: Situation, *, acted: bool, review_at: Instant | None = None) -> Instant | None:
    """The next time at which the decision may change without an event; None if only an event can change it."""
    if here.state.stage in TERMINAL:
        return here.now + ACTION_RETRY_INTERVAL if here.seen.attempts else None
    times = [review_at, *_limits(here), *_timers(here)]
    if acted or here.state.stage is Stage.IDLE:
        times.append(here.now + ACTION_RETRY_INTERVAL)
    # For a timer that expired without effect, such as provisionTimeout of a job at a limit that has no other tier.
    again = here.now + ACTION_RETRY_INTERVAL
    return min((time if time > here.now else again for time in times if time is not None), default=None)


def _limits(here: Situation) -> list[Instant | None]:
    if here.state.stage is Stage.SUSPENDED:
        return []
    return [limits.deadline(here.spec), _budget_ends_at(here)]


def _timers(here: Situation) -> list[Instant | None]:
    state, attempt = here.state, here.state.attempt
    times: list[Instant | None] = []
    if state.stage is Stage.IDLE:
        times.append(state.paused_until)
    if attempt is None:
        return times
    times += _standby_timers(here)
    if state.stage in LIVE:
        match timer_of(here):
            case Timer.PROVISION | None:
                times += [here.provision_deadline, _ahead(here.avoidance_deadline, here.now), idle_budget_ends_at(here)]
            case Timer.CONTACT:
                times.append(here.contact_deadline)
            case Timer.QUEUE:
                times.append(here.queue_deadline)
            case Timer.START:
                times.append(here.start_deadline)
        times += [here.attribution_deadline, _ahead(begin_due(here), here.now)]
        if here.reachable and not here.waits_for_capacity:
            times.append(here.recovery_deadline)
    if state.stage in READY:
        times += [here.stall_deadline, attempt.leave_by]
    if state.stage is Stage.REPLACING:
        times.append(here.replacement_due)
    if state.stage is Stage.DRAINING:
        times.append(attempt.drain_by)
    elif state.stage is Stage.ENDING:
        times.append(here.handover_deadline)
    return times


def _ahead(time: Instant | None, now: Instant) -> Instant | None:
    """The time, unless it has passed."""
    return time if time is not None and time > now else None


def _standby_timers(here: Situation) -> list[Instant | None]:
    """When the standby attempt is given up, or the next one may start. A live attempt that ends keeps its successor."""
    if here.state.stage not in LIVE:
        return []
    if here.state.standby is None:
        after = here.state.standby_after
        retry = [after] if after is not None and after > here.now and here.spec.overlap is not None else []
        return [*retry, hedge_due(here)]
    overlap, rate = here.spec.overlap, _rate(here.state.standby_nodes, here.state.standby.tier, here)
    bound = overlap.budget if overlap is not None else None
    used_up = None if bound is None or not rate else here.now + max(0.0, (bound - here.state.overlap_usd) / rate)
    return [here.standby_deadline, here.overlap_deadline, used_up]


def _budget_ends_at(here: Situation) -> Instant | None:
    state, budget = here.state, here.spec.budget
    rate = _rate(state.nodes, state.tier, here)
    if state.standby is not None:
        rate += _rate(state.standby_nodes, state.standby.tier, here)
    return None if budget is None or not rate else here.now + max(0.0, (budget - state.spent_usd) / rate)


def _rate(nodes: int, name: str, here: Situation) -> float:
    """USD per second for this number of nodes of a tier."""
    tier = here.spec.tier(name)
    return nodes * max(0.0, tier.price.per_node_hour) / HOUR if tier is not None else 0.0
