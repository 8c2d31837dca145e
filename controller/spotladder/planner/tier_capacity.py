"""The capacity that a spot tier has for a job in one simulated run.

A run of tiers with recorded traces copies this record from a moment on, which is the same for all of these tiers, so
that capacity that is lost together in the record is lost together in the run. If the record ends at the start of the
job, the moment is one at which the tiers had capacity as they have it now, and about as much of it in the hours before;
otherwise it is a random one. After the end of the record the copy continues at a moment that is like this end. The
future can be worse or better than all of the record: in one of n + 2 runs capacity is lost for good at a random moment,
and in one of n + 2 it comes for good, if the part of the record from which the run may be copied is n times as long as
the run may take. Without a trace, the statistics of the tier are drawn:
1. Nodes are lost at the tier's rate. If jobs have observed it, each run draws one that these observations allow, so
   that few of them, or none, make the range wide. The time between losses has the shape of public spot traces, where a
   spell of capacity becomes less likely to end with its age.
2. A request for nodes succeeds with the probability `KnownCapacity.availability`, 1 if that is unknown. Otherwise it
   waits for longer than the provisionTimeout with which that was observed, by OUTAGE on average.

A tier whose nodes are never lost has as many as its pool, and one whose pool is always closed has none.

The same seed gives the same capacity, whatever the other settings of the job are, except how long it may take.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random

import numpy as np

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.model import Price, Seconds
from spotladder.errors import InvalidSpec
from spotladder.planner.plan import TierFacts
from spotladder.sim.synthetic import AGES, SyntheticMarket
from spotladder.sim.trace import UNLIMITED, Counts, Floats, Trace, mean_price

MAX_LOSSES = 500
"""A job with more expected losses than this in its longest run is not simulated."""

PRIOR_LOSSES, PRIOR_HOURS = 0.5, 1.0
"""The prior of the loss rate: losses and node-hours that a run adds to the observed ones. Without observations, 80 % of
the rates are between 0.01 and 1.4 losses per node and hour, the spread of public spot traces."""

OUTAGE: Seconds = 3600.0
"""Mean time for which a request that fails waits beyond provisionTimeout."""

REPLACED: Seconds = 1.0
"""Time for which a lost node is missing if the provisioner starts another one at once."""

MEMORY: Seconds = 4 * HOUR
"""Time constant of the mean over the hours before a moment. On public traces, 2 to 8 h foretell about as well."""

UNLIKE = 0.2
"""The difference in the share of capacity, 0 to 1, at which a moment is 0.6 times as likely as one without any."""

MOMENTS = 2000
"""Number of moments of a record from which a run may continue."""

OLDEST = 100 * AGES[-1]
"""The age in ticks at which every spell has ended."""

STEPS = 1000
"""Number of equal steps of probability at which a distribution of lengths is tabulated."""


def drawn(tiers: Sequence[TierFacts], workers: int, horizon: Seconds, seed: int) -> list[Trace]:
    """The capacity of each tier in the run with this seed, for `horizon` seconds."""
    records = tuple(_record(facts, seed) for facts in tiers if facts.spot and facts.traces)
    return [_drawn(facts, records, workers, horizon, seed) for facts in tiers]


def _record(facts: TierFacts, seed: int) -> Trace:
    return facts.traces[seed % len(facts.traces)]


def _drawn(facts: TierFacts, records: tuple[Trace, ...], workers: int, horizon: Seconds, seed: int) -> Trace:
    if not facts.spot or facts.never_open:
        room = 0 if facts.never_open else UNLIMITED if facts.known.room is None else facts.known.room
        return Trace(facts.tier.name, np.zeros(1), np.array([room], dtype=np.int64), end=horizon)
    if facts.traces:
        return _copied(facts, records, workers, horizon, seed)
    return _invented(facts, workers, horizon, seed)


def with_traces(facts: TierFacts, traces: tuple[Trace, ...], workers: int, *, until_now: bool = False) -> TierFacts:
    """The tier with these recorded traces, and with the rate and the mean price in them. A loss is the moment at which
    the trace no longer has nodes for all workers. `until_now`: the traces end at the start of the job. Raises
    InvalidSpec for a tier whose nodes are never lost."""
    if not facts.spot:
        raise InvalidSpec(
            f"{facts.tier.name} is {facts.tier.capacity_type}, and its nodes are never lost: name a spot tier",
            path="--trace",
        )
    flags = [trace.available(workers) for trace in traces]
    losses = sum(int((one[:-1] & ~one[1:]).sum()) for one in flags)
    hours = sum(trace.share(workers) * trace.end for trace in traces) / HOUR
    tier, usd = facts.tier, mean_price(traces)
    if usd is not None:
        tier = replace(tier, price=Price.listed(usd, tier.price.on_demand or None), prices=())
    rate = losses / (hours * workers) if hours else 0.0
    known = replace(facts.known, evictions=rate, observed=hours * workers, unavailable="", closed=())
    return replace(facts, tier=tier, known=known, traces=traces, until_now=until_now)


@lru_cache(maxsize=1)
def lifetimes() -> Floats:
    """The lengths of spells of capacity in public spot traces, with mean 1, at equal steps of probability."""
    bounds = np.array([0, *AGES, OLDEST], dtype=np.float64)
    rates = -np.log1p(-np.array(SyntheticMarket().lost))
    hazard = np.concatenate(([0.0], np.cumsum(np.diff(bounds) * rates)))
    found = np.interp(-np.log((np.arange(STEPS) + 0.5) / STEPS), hazard, bounds)
    shape: Floats = found / found.mean()
    return shape


def _invented(facts: TierFacts, workers: int, horizon: Seconds, seed: int) -> Trace:
    dice = np.random.default_rng([seed, *facts.tier.name.encode()])
    most = workers if facts.known.room is None else min(workers, facts.known.room)
    met = 1.0 if facts.known.availability is None else facts.known.availability
    rate = _rate(facts, dice) * workers / HOUR
    rate = min(rate, max(MAX_LOSSES / horizon, (facts.known.evictions or 0.0) * workers / HOUR))
    losses = math.ceil(2.0 * rate * horizon) + 20
    failed = facts.tier.provision_timeout + dice.exponential(OUTAGE, losses + 1)
    waits = np.where(dice.random(losses + 1) < met, REPLACED, failed)
    first = failed[0] if facts.known.unavailable or waits[0] != REPLACED else 0.0
    lasting = dice.choice(lifetimes(), losses) / rate if rate else np.full(losses, math.inf)
    ends = first + np.cumsum(lasting + np.concatenate(([0.0], waits[1:-1])))
    ends = ends[ends < horizon]
    times = np.stack([ends, ends + waits[1 : len(ends) + 1]], axis=1).ravel()
    nodes = np.tile([max(0, most - 1), most], len(ends))
    begin = ([0.0, first], [0, most]) if first else ([0.0], [most])
    found = np.concatenate((begin[0], times)), np.concatenate((begin[1], nodes)).astype(np.int64)
    # It ends with the horizon, so that every run begins at its start.
    return Trace(facts.tier.name, *found, end=horizon)


def _rate(facts: TierFacts, dice: np.random.Generator) -> float:
    """The losses per node and hour in a run: as given, or drawn from the posterior of what jobs have observed."""
    rate, hours = facts.known.evictions, facts.known.observed
    if rate is None:
        rate = hours = 0.0
    elif not facts.rate_is_observed:
        return rate
    return float(dice.gamma(rate * hours + PRIOR_LOSSES) / (hours + PRIOR_HOURS))


def _copied(facts: TierFacts, records: tuple[Trace, ...], workers: int, horizon: Seconds, seed: int) -> Trace:
    """The capacity of the tier by its record. All random numbers are the same for all records of a run. Seed 0 repeats
    the record from its start."""
    # Seeded on purpose: these numbers simulate a market and are no secret.
    dice, trace = Random(seed), _record(facts, seed)  # noqa: S311
    comparable = _comparable(records, workers, until_now=facts.until_now)
    beyond, since = dice.random() / beyond_record(comparable, horizon), dice.uniform(0.0, horizon)
    moments = _like_the_end(records, workers)
    parts, filled = list[tuple[Floats, Counts, Floats]](), 0.0
    while filled < horizon:
        like_the_end = dice.random() >= moments.new if parts else facts.until_now
        weights = moments.cumulative_weights if like_the_end else None
        (age,) = dice.choices(moments.ages, cum_weights=weights) if seed else moments.ages[:1]
        times, nodes, prices = _part(trace, trace.end - age, min(age, horizon - filled))
        parts.append((filled + times, nodes, prices))
        filled += age
    times, nodes, prices = map(np.concatenate, zip(*parts, strict=True))
    if seed and beyond < 2.0:
        with_since = np.union1d(times, since)
        held = np.searchsorted(times, with_since, side="right") - 1
        then = 0 if beyond < 1.0 else np.maximum(nodes[held], workers)
        times, nodes, prices = with_since, np.where(with_since < since, nodes[held], then), prices[held]
    if facts.known.room is not None:
        nodes = np.minimum(nodes, facts.known.room)
    return Trace(trace.zone, times, nodes, end=horizon, prices=None if trace.prices is None else prices)


def comparable_record(traced: Sequence[TierFacts], workers: int) -> Seconds:
    """The length of the part of the traces of these tiers from which runs are copied."""
    records = tuple(trace for facts in traced for trace in facts.traces)
    return _comparable(records, workers, until_now=all(facts.until_now for facts in traced))


def _comparable(records: tuple[Trace, ...], workers: int, *, until_now: bool) -> Seconds:
    """The length of the part of the records from which a run is copied. If it begins at a moment that is like their
    end, that part has as many moments as the effective size of a sample with their weights (L. Kish, 1965)."""
    shortest = min(record.end for record in records)
    return shortest * _like_the_end(records, workers).share if until_now else shortest


def beyond_record(comparable: Seconds, horizon: Seconds) -> float:
    """The chance that a run of at most `horizon` seconds is worse than all of the record, and the chance that it is
    better: as likely as to be between two neighbours of as many runs as the comparable record has room for (B. M. Hill,
    1968), with one run more because the record is not divided exactly."""
    return 1.0 / (comparable / horizon + 2.0)


@dataclass(frozen=True, slots=True)
class _Moments:
    """The moments of a record from which a run may continue, as times before its end, and their cumulative weights by
    how much they are like it. `share` is the effective share of the moments, 0 to 1. `new` is the chance that what
    follows the end is like any other moment: with few changes, the record may not have seen it."""

    ages: Sequence[Seconds]
    cumulative_weights: Sequence[float]
    share: float
    new: float


@lru_cache(maxsize=64)
def _like_the_end(records: tuple[Trace, ...], workers: int) -> _Moments:
    ages = min(record.end for record in records) * (np.arange(MOMENTS, 0, -1) / MOMENTS)
    unlike, changes = np.zeros(MOMENTS), 0
    past = np.exp(-(ages[0] - ages) / MEMORY)
    for record in records:
        has = record.at(np.append(record.end - ages, record.end)) >= workers
        means = np.convolve(has[:-1], past)[:MOMENTS] / np.cumsum(past)
        before = np.append(means[0], means)  # The first moment has nothing before it.
        unlike += (has[:-1] != has[-1]) + (before[:-1] - before[-1]) ** 2
        changes += int((has[1:] != has[:-1]).sum())
    weights = np.exp(-unlike / len(records) / (2 * UNLIKE**2))
    share = float(weights.sum() ** 2 / (weights**2).sum() / MOMENTS)
    return _Moments(ages.tolist(), np.cumsum(weights).tolist(), share, 1.0 / (changes + 2))


def _part(trace: Trace, start: Seconds, length: Seconds) -> tuple[Floats, Counts, Floats]:
    """The times, nodes and prices (0 without any) of the trace from `start` on, for `length` seconds; the times are
    after `start`."""
    first = int(np.searchsorted(trace.times, start, side="right")) - 1
    part = slice(first, max(first + 1, int(np.searchsorted(trace.times, start + length))))
    times, nodes = np.maximum(trace.times[part] - start, 0.0), trace.nodes[part]
    return times, nodes, np.zeros(len(times)) if trace.prices is None else trace.prices[part]
