"""The nodes that a job has held and their cost so far: node-seconds and money per tier, added at each observation. What
heads and stored commits cost over time is added, too; `extra_costs` has the other costs."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TypeVar

from spotladder.core.history.losses import with_record
from spotladder.core.model import (
    TERMINAL,
    Attempt,
    AttemptSeen,
    Ending,
    Impeded,
    Instant,
    JobSpec,
    JobState,
    LeftAttempt,
    NoticeResponse,
    PodPhase,
    PodRole,
    Price,
    Seconds,
    Spell,
    Standby,
    TierRecord,
    Timers,
)
from spotladder.core.model.gang import launched_workers

Record = TypeVar("Record", JobState, Attempt, Ending, Impeded, LeftAttempt, NoticeResponse, Spell, Standby, Timers)

HOUR: Seconds = 3600.0

MONTH: Seconds = 730 * HOUR
"""Seconds in a month of 730 hours, as clouds bill storage."""

GIB = 2**30
"""Bytes in a GiB."""


def held_nodes(seen: AttemptSeen | None) -> int:
    """Number of nodes of the tier that the attempt holds. The head runs on other capacity and is not included."""
    if seen is None:
        return 0
    return sum(1 for pod in seen.pods if pod.role is PodRole.WORKER and pod.phase is PodPhase.RUNNING)


def charged(node_seconds: float, price: Price) -> tuple[float, float]:
    """USD for this number of node-seconds, and for the same on demand. Without an on-demand price the price itself is
    used, so no savings are reported."""
    hours = node_seconds / HOUR
    return hours * price.per_node_hour, hours * (price.on_demand or price.per_node_hour)


def account(state: JobState, spec: JobSpec, now: Instant) -> JobState:
    """Charge the nodes held since the last decision to their tier, and the heads and the stored commits. If the clock
    stepped back, charge nothing."""
    elapsed = max(0.0, now - state.clock) if state.clock else 0.0
    state = _extra(state, spec, elapsed)
    if state.tier:
        before = state.spent_usd
        state = _paid(state, spec, state.tier, state.nodes * elapsed)
        if over := max(0, state.nodes - launched_workers(state.attempt, spec)):
            surge = state.surplus.surge + (state.spent_usd - before) * over / state.nodes
            state = replace(state, surplus=replace(state.surplus, surge=surge))
    if state.standby.attempt is not None:
        before = state.spent_usd
        state = _paid(state, spec, state.standby.attempt.tier, state.standby.nodes * elapsed)
        overlap = state.surplus.overlap + state.spent_usd - before
        state = replace(state, surplus=replace(state.surplus, overlap=overlap))
    for left in state.left:
        state = _paid(state, spec, left.tier, left.nodes * elapsed)
    return replace(state, clock=now)


def account_steps(state: JobState, spec: JobSpec, steps: int) -> JobState:
    """Charge the workers of the live attempt for the `step_time` of these steps."""
    if state.attempt is None or steps <= 0 or not spec.step_time:
        return state
    workers = min(state.nodes, launched_workers(state.attempt, spec))
    return _paid(state, spec, state.tier, workers * steps * spec.step_time)


def left_costs(state: JobState, spec: JobSpec, now: Instant) -> list[tuple[LeftAttempt, float, float]]:
    """For each attempt that is being removed, what `account` charges for it until `now`: USD, and USD on demand."""
    elapsed = max(0.0, now - state.clock)
    tiers = ((left, spec.tier(left.tier)) for left in state.left if left.nodes and elapsed)
    return [(left, *charged(left.nodes * elapsed, tier.price)) for left, tier in tiers if tier is not None]


def _extra(state: JobState, spec: JobSpec, elapsed: Seconds) -> JobState:
    heads = state.heads_per_hour * elapsed / HOUR
    storage = 0.0 if state.stage in TERMINAL else stored_per_second(state, spec) * elapsed
    if not (heads or storage):
        return state
    extra = state.extra
    return replace(state, extra=replace(extra, heads=extra.heads + heads, storage=extra.storage + storage))


def stored_per_second(state: JobState, spec: JobSpec) -> float:
    """USD per second for the commits in the bucket."""
    return state.progress.size.bytes / GIB * spec.keep * spec.storage_per_gib_month / MONTH


def _paid(state: JobState, spec: JobSpec, name: str, node_seconds: float) -> JobState:
    """The state after this number of node-seconds of a tier."""
    if not node_seconds:
        return state
    tier, record = spec.tier(name), state.record(name)
    price = tier.price if tier else _mean_price(record)
    cost, on_demand = charged(node_seconds, price)
    return with_record(
        state,
        replace(
            record,
            node_seconds=record.node_seconds + node_seconds,
            cost=record.cost + cost,
            unpriced=record.unpriced + (0.0 if price.known else node_seconds),
            on_demand_cost=record.on_demand_cost + on_demand,
        ),
    )


def _mean_price(record: TierRecord) -> Price:
    """What a node of a tier that the spec no longer has cost so far; unknown without a price of all of its nodes."""
    if record.unpriced or not record.node_seconds:
        return Price(known=False)
    hours = record.node_seconds / HOUR
    return Price(record.cost / hours, record.on_demand_cost / hours)


def rewound(state: JobState, now: Instant) -> JobState:
    """Adjust the timers after the clock stepped back, so that none starts in the future. A timer may be late by the
    step."""
    if now >= state.clock or state.stage in TERMINAL:
        return state
    step = state.clock - now
    standby = replace(_rewound(state.standby, now, step), attempt=_attempt_rewound(state.standby.attempt, now, step))
    return replace(
        _rewound(state, now, step),
        attempt=_attempt_rewound(state.attempt, now, step),
        standby=standby,
        timers=_rewound(state.timers, now, step),
        left=tuple(_rewound(one, now, step) for one in state.left),
        tiers=tuple(
            replace(one, spells=tuple(_rewound(spell, now, step) for spell in one.spells)) for one in state.tiers
        ),
        impeded=state.impeded and _rewound(state.impeded, now, step),
    )


def _attempt_rewound(attempt: Attempt | None, now: Instant, step: Seconds) -> Attempt | None:
    if attempt is None:
        return None
    notice, ending = _rewound(attempt.notice, now, step), _rewound(attempt.ending, now, step)
    return replace(_rewound(attempt, now, step), notice=notice, ending=ending, steps=())  # Their pace is measured anew.


def _rewound(record: Record, now: Instant, step: Seconds) -> Record:
    """The record with none of its own times in the past after `now`, and each of its deadlines earlier by the step."""
    times = {one.name: getattr(record, one.name) for one in fields(record) if one.type in ("Instant", "Instant | None")}
    known = {name: at for name, at in times.items() if at is not None}
    return replace(record, **{name: at - step if name in _DEADLINES else min(at, now) for name, at in known.items()})


_DEADLINES = frozenset({"drain_by", "replace_by", "leave_by", "paused_until", "not_before"})
