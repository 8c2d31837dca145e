"""A recorded run as scenarios of the simulator: its job, its program as measured, and the capacity that it observed."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from types import MappingProxyType

import numpy as np

from spotladder.core.accounting import HOUR
from spotladder.core.durations import format_duration
from spotladder.core.model import Instant, JobSpec, JobState, PricePoint, Seconds, Stage, Tier
from spotladder.core.work import speed
from spotladder.display.records import Beat, Began, Committed, Lost, Moved, Record, Resized
from spotladder.errors import InvalidSpec
from spotladder.planner.replay.capacity import TierCapacity, recorded_capacity
from spotladder.planner.replay.prices import RecordedPrices, assumed_prices, prices_of_run
from spotladder.planner.replay.recoveries import Recovered, with_recoveries
from spotladder.sim.scenario import Scenario
from spotladder.sim.trace import Trace
from spotladder.sim.world.program import ProgramPlan
from spotladder.sim.world.zone import ZonePlan

RESTART: Seconds = 180.0
"""Time from ready workers to the first step, if the record has none."""

COMMIT_INTERVAL: Seconds = 300.0
"""Interval between commits, if the record has none."""

COMMIT_TIME: Seconds = 10.0
"""Duration of a commit, if no attempt of the record was asked to commit."""


NO_PRICES: Mapping[str, Sequence[PricePoint]] = MappingProxyType({})
"""No tier has recorded prices."""


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """The result of the recorded run so far: USD, hours, losses and attempts."""

    ended_with: str
    cost: float
    hours: float
    losses: int
    attempts: int


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A recorded run. `low` and `high` are the scenarios without and with the capacity that the run did not observe, on
    the tiers `uncertain`. `assumptions` are sentences about the values that the replay takes from the record.
    `policies` are the names of the job's policy and, if it has one, of its shadow policy."""

    job: str
    result: RecordedResult
    low: Scenario
    high: Scenario
    uncertain: tuple[str, ...]
    assumptions: tuple[str, ...]
    policies: tuple[str, ...]


def history(
    records: Sequence[Record],
    state: JobState,
    hours: float | None = None,
    prices: Mapping[str, Sequence[PricePoint]] = NO_PRICES,
) -> RecordedRun:
    """The history of a recorded job. `hours` is the work without interruptions; by default it follows from the measured
    duration of the steps. `prices` are the recorded ones of its tiers, oldest first; a tier without has the price of
    the spec. Raises InvalidSpec if the record lacks information."""
    opening = [record for record in records if isinstance(record, Began)]
    if not opening:
        raise InvalidSpec("has no recorded run: run it first, or name another job")
    first, newest = opening[0], opening[-1]
    priced = {
        tier.name: found
        for tier in newest.spec.tiers
        if (found := prices_of_run(prices.get(tier.name, ()), first.at)) is not None
    }
    spec = replace(
        newest.spec,
        tiers=tuple(
            replace(_priced(tier, priced.get(tier.name)), fleet=state.record(tier.name).fleet)
            for tier in newest.spec.tiers
        ),
    )
    recovered = with_recoveries(records, state, spec)
    records = recovered.records
    pace = _pace(records, state, spec)
    work = _work(state, pace, hours)
    restarts = _restarts(records, pace, spec)
    program = ProgramPlan(
        max(1, round(work)),
        median(restarts) if restarts else RESTART,
        _commit_interval(records),
        _commit_time(records, state),
        hands_over=state.progress.hands_over,
        stands_by=state.progress.stands_by,
        first_restarts=tuple(restarts),
        commit_size=state.progress.size,
        sizes=() if spec.min_workers is None else tuple(range(spec.min_workers, spec.workers + 1)),
    )
    tiers = recorded_capacity(records, state, spec, first.at)
    relative = _relative(spec, program)
    low, high = (
        Scenario(
            relative,
            program,
            tuple(_zone(one, spec, priced.get(one.name), complete=complete) for one in tiers),
            {tier.name: tier.name for tier in spec.tiers},
            measured=True,
        )
        for complete in (False, True)
    )
    uncertain = tuple(one.name for one in tiers if one.uncertain)
    return RecordedRun(
        first.job,
        _result(records, state, first.at),
        low,
        high,
        uncertain,
        (
            *_assumptions(program, tiers, uncertain, _suspended(records)),
            *_assumed_losses(recovered),
            *(sentence for name, found in priced.items() for sentence in assumed_prices(name, found)),
        ),
        tuple(name for name in (newest.policy, newest.shadow) if name),
    )


def _relative(spec: JobSpec, program: ProgramPlan) -> JobSpec:
    """The spec with its deadline as a duration from the start."""
    limits = [] if spec.max_duration is None else [spec.max_duration]
    if spec.deadline is not None:
        limits.append(spec.deadline - spec.submitted_at)
    stall = max(spec.stall_timeout, 5 * program.commit_interval)
    return replace(
        spec,
        deadline=None,
        max_duration=min(limits, default=None),
        submitted_at=0.0,
        suspend=False,
        stall_timeout=stall,
    )


def _priced(tier: Tier, prices: RecordedPrices | None) -> Tier:
    """The tier as it was at the start of the run."""
    if prices is None:
        return tier
    return replace(tier, price=replace(tier.price, per_node_hour=prices.changes[0][1]), prices=prices.known)


def _zone(capacity: TierCapacity, spec: JobSpec, prices: RecordedPrices | None, *, complete: bool) -> ZonePlan:
    tier = spec.tier(capacity.name)
    if tier is None:  # The capacity is that of the spec's tiers.
        raise AssertionError(capacity.name)
    nodes = dict(capacity.assumed(spec.workers, complete=complete))
    usd = dict(((0.0, tier.price.per_node_hour),) if prices is None else prices.changes)
    times = sorted({*nodes, *usd})
    trace = Trace(
        capacity.name,
        np.array(times, dtype=np.float64),
        np.array(_values(nodes, times), dtype=np.int64),
        math.inf,
        prices=None if prices is None else np.array(_values(usd, times), dtype=np.float64),
        source="the record",
    )
    return ZonePlan(capacity.name, trace, tier.price, capacity.ready_after, notice=capacity.notice)


def _values(changes: Mapping[Seconds, float], times: Sequence[Seconds]) -> list[float]:
    """The values at these times, of which the first one is 0, after the changes to them, which begin at 0."""
    found, value = [], 0.0
    for at in times:
        value = changes.get(at, value)
        found.append(value)
    return found


def _work(state: JobState, pace: Seconds | None, hours: float | None) -> Seconds:
    """The work of the whole job in seconds. Raises InvalidSpec if it is unknown."""
    if hours is not None:
        return hours * HOUR
    if not state.progress.total:
        raise InvalidSpec("the program has not reported how many steps it has: specify --hours")
    if pace is None:
        raise InvalidSpec("no attempt has made two commits, so the duration of a step is unknown: specify --hours")
    return state.progress.total * pace


def _pace(records: Sequence[Record], state: JobState, spec: JobSpec) -> Seconds | None:
    """Seconds for each step with all workers, between commits of one attempt, or else as the controller measured it,
    whose figure may contain starts of attempts; None if unknown."""
    pairs, sizes = _pairs(records), _sizes(records)
    steps = sum(after.step - before.step for before, after in pairs)
    took = sum((after.at - before.at) * speed(_workers(sizes, after), spec.workers) for before, after in pairs)
    if steps and took > 0:
        return took / steps
    return state.timed_seconds / state.timed_steps if state.timed_steps else None


def _sizes(records: Sequence[Record]) -> Mapping[int, Sequence[Resized]]:
    """The changes of the number of workers of each attempt, by its number, oldest first."""
    found: dict[int, list[Resized]] = {}
    for record in records:
        if isinstance(record, Resized):
            found.setdefault(record.attempt, []).append(record)
    return found


def _workers(sizes: Mapping[int, Sequence[Resized]], record: Committed | Beat) -> int:
    """The number of workers with which the program trained before this record; 0: all."""
    own = sizes.get(record.attempt, ())
    before = bisect_left(own, record.at, key=lambda resized: resized.at)
    return own[before - 1].workers if before else 0


def _pairs(records: Sequence[Record]) -> list[tuple[Committed, Committed]]:
    """Consecutive commits of one attempt, without those between which workers were missing or their number changed."""
    found: list[tuple[Committed, Committed]] = []
    last: Committed | None = None
    for record in records:
        if isinstance(record, Moved | Resized):
            last = None
        elif isinstance(record, Committed):
            if last is not None and last.attempt == record.attempt and record.step > last.step:
                found.append((last, record))
            last = record
    return found


def _commit_interval(records: Sequence[Record]) -> Seconds:
    gaps = [after.at - before.at for before, after in _pairs(records)]
    return max(1.0, median(gaps)) if gaps else COMMIT_INTERVAL


def _commit_time(records: Sequence[Record], state: JobState) -> Seconds:
    """The longest time from a request to commit until the commit, as the controller measured it or else as recorded."""
    if state.commit_seconds:
        return state.commit_seconds
    found, asked = [], dict[int, Instant]()
    for record in records:
        if isinstance(record, Moved) and record.move.target is Stage.DRAINING:
            asked[record.move.attempt] = record.at
        elif isinstance(record, Committed) and record.attempt in asked:
            found.append(max(0.0, record.at - asked.pop(record.attempt)))
    return max(found, default=COMMIT_TIME)


def _restarts(records: Sequence[Record], pace: Seconds | None, spec: JobSpec) -> list[Seconds]:
    """For each start, the time from ready workers to the first step, without the steps until the first sign of
    progress. A start without progress has the median of the others. Empty if no start made progress."""
    found: list[Seconds | None] = []
    waiting: dict[int, tuple[Seconds, int]] = {}
    committed, sizes = 0, _sizes(records)
    for record in records:
        if isinstance(record, Moved) and record.move.target is Stage.RUNNING:
            waiting[record.move.attempt] = (record.at, committed)
            found.append(None)
        elif isinstance(record, Committed | Beat):
            if record.attempt in waiting and record.step > waiting[record.attempt][1]:
                since, step = waiting.pop(record.attempt)
                trained = (record.step - step) * (pace or 0.0) / speed(_workers(sizes, record), spec.workers)
                found[-1] = max(0.0, record.at - since - trained)
            if isinstance(record, Committed):
                committed = record.step
    known = [restart for restart in found if restart is not None]
    return [median(known) if restart is None else restart for restart in found] if known else []


def _result(records: Sequence[Record], state: JobState, began: Instant) -> RecordedResult:
    ended = state.ended_at if state.ended_at is not None else records[-1].at
    losses = sum(1 for record in records if isinstance(record, Lost))
    ended_by = str(state.reason) if state.ended_at is not None else f"{state.phase}, not ended"
    return RecordedResult(
        ended_by, state.spent_usd, max(0.0, ended - began) / HOUR, max(losses, state.failures), state.last_number
    )


def _suspended(records: Sequence[Record]) -> Seconds:
    """How long the job was suspended, until it was resumed."""
    total, since = 0.0, None
    for record in records:
        if isinstance(record, Moved):
            if since is not None:
                total += record.at - since
            since = record.at if record.move.target is Stage.SUSPENDED else None
    return total


def _assumptions(
    program: ProgramPlan, tiers: Sequence[TierCapacity], uncertain: Sequence[str], suspended: Seconds
) -> tuple[str, ...]:
    """The assumptions of the replay, one sentence each."""
    restart, interval = format_duration(round(program.restart)), format_duration(round(program.commit_interval))
    work = f"the work takes {format_duration(round(program.work))} without interruptions"
    ready = [f"{format_duration(round(one.ready_after))} on {one.name}" for one in tiers]
    found = [
        f"{work}; the program restarts in {restart} and commits every {interval}",
        f"workers are ready after {', '.join(ready)}",
    ]
    if program.sizes:
        found.append(
            f"it trains with {program.sizes[0]} to {program.sizes[-1]} workers, at a rate in proportion to them"
        )
    if suspended:
        found.append(f"the run was suspended for {format_duration(max(1, round(suspended)))}, the replay is not")
    if uncertain:
        found.append(
            f"the run did not observe the capacity of {', '.join(uncertain)} at all times: the first value of a range "
            "assumes the last observed capacity, the second one capacity for all workers"
        )
    return tuple(found)


def _assumed_losses(recovered: Recovered) -> list[str]:
    """What the replay assumes about counted losses that the record lacks."""
    found = []
    if count := recovered.placed:
        losses = "1 loss that the record lacks was" if count == 1 else f"{count} losses that the record lacks were"
        found.append(f"{losses} when the steps of the heartbeats, the capacity or the attempt ended")
    if count := recovered.unplaced:
        losses = "1 counted failure has" if count == 1 else f"{count} counted failures have"
        found.append(f"{losses} no known time: the replay has no loss for {'it' if count == 1 else 'them'}")
    return found
