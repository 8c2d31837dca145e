"""The nodes that a job has held and their cost so far: node-seconds and money per tier, added at each observation. What
heads and stored commits cost over time is added, too; `extra_costs` has the other costs."""

from __future__ import annotations

from dataclasses import replace

from spotladder.core.gang import launched_workers
from spotladder.core.losses import with_record
from spotladder.core.model import (
    AttemptSeen,
    Instant,
    JobSpec,
    JobState,
    LeftAttempt,
    PodPhase,
    PodRole,
    Price,
    Seconds,
)

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
        state = _paid(state, spec, state.tier, state.nodes * elapsed, surge_seconds=_over(state, spec) * elapsed)
    if state.standby is not None:
        before = state.spent_usd
        state = _paid(state, spec, state.standby.tier, state.standby_nodes * elapsed)
        state = replace(state, overlap_usd=state.overlap_usd + state.spent_usd - before)
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
    heads, storage = state.heads_per_hour * elapsed / HOUR, stored_per_second(state, spec) * elapsed
    if not (heads or storage):
        return state
    extra = state.extra
    return replace(state, extra=replace(extra, heads=extra.heads + heads, storage=extra.storage + storage))


def stored_per_second(state: JobState, spec: JobSpec) -> float:
    """USD per second for the commits in the bucket."""
    return state.progress.size.bytes / GIB * spec.keep * spec.bucket.per_gib_month / MONTH


def _paid(state: JobState, spec: JobSpec, name: str, node_seconds: float, *, surge_seconds: float = 0.0) -> JobState:
    """The state after this number of node-seconds of a tier, of which `surge_seconds` are beyond the workers of the
    attempt."""
    if not node_seconds:
        return state
    tier = spec.tier(name)
    price = tier.price if tier else Price(known=False)
    cost, on_demand = charged(node_seconds, price)
    record = state.record(name)
    return with_record(
        state,
        replace(
            record,
            node_seconds=record.node_seconds + node_seconds,
            cost=record.cost + cost,
            unpriced=record.unpriced + (0.0 if price.known else node_seconds),
            surge_seconds=record.surge_seconds + surge_seconds,
            surge_cost=record.surge_cost + charged(surge_seconds, price)[0],
            on_demand_cost=record.on_demand_cost + on_demand,
        ),
    )


def _over(state: JobState, spec: JobSpec) -> int:
    """How many nodes the live attempt holds beyond its number of workers."""
    return max(0, state.nodes - launched_workers(state.attempt, spec))


def rewound(state: JobState, now: Instant) -> JobState:
    """Adjust the timers after the clock stepped back, so that none starts in the future. A timer may be late by the
    step."""
    if now >= state.clock:
        return state

    def not_after(instant: Instant | None) -> Instant | None:
        return None if instant is None else min(instant, now)

    attempt = state.attempt
    if attempt is not None:
        step = state.clock - now
        attempt = replace(
            attempt,
            created_at=min(attempt.created_at, now),
            running_at=not_after(attempt.running_at),
            all_ready_at=not_after(attempt.all_ready_at),
            ending_since=not_after(attempt.ending_since),
            exited_at=not_after(attempt.exited_at),
            drain_since=not_after(attempt.drain_since),
            drain_by=None if attempt.drain_by is None else attempt.drain_by - step,
            replace_by=None if attempt.replace_by is None else attempt.replace_by - step,
            leave_by=None if attempt.leave_by is None else attempt.leave_by - step,
            handing_over_since=not_after(attempt.handing_over_since),
            enough_since=not_after(attempt.enough_since),
        )
    impeded, standby = state.impeded, state.standby
    return replace(
        state,
        attempt=attempt,
        standby=standby
        and replace(standby, created_at=min(standby.created_at, now), enough_since=not_after(standby.enough_since)),
        left=tuple(replace(one, since=min(one.since, now)) for one in state.left),
        standby_after=None if state.standby_after is None else state.standby_after - (state.clock - now),
        impeded=impeded and replace(impeded, since=min(impeded.since, now)),
        started_at=not_after(state.started_at),
        waiting_since=not_after(state.waiting_since),
        progress_at=not_after(state.progress_at),
        recovering_since=not_after(state.recovering_since),
        paused_until=None if state.paused_until is None else state.paused_until - (state.clock - now),
    )
