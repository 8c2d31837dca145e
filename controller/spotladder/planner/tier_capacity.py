"""The capacity that a spot tier has for a job in one simulated run.

A tier with recorded traces has the capacity of a trace from a random moment on; after the end of the trace comes its
beginning. Tiers with traces begin at the same moment, so that capacity that is lost together in the record is lost
together in the run. If the trace of the only such tier ends at the start of the job, its last spell continues. The
future differs from the record, the more so the shorter this is: each run has its own mean length of the spells, but
none shorter than the ticks. Without a trace, the statistics of the tier are drawn:
1. Nodes are lost at the tier's rate. If jobs have observed it, each run draws one that these observations allow, so
   that few of them, or none, make the range wide. The time between losses has the shape of public spot traces, where a
   spell of capacity becomes less likely to end with its age.
2. A request for nodes succeeds with the probability `KnownCapacity.availability`, 1 if that is unknown. Otherwise it
   waits for longer than the provisionTimeout with which that was observed, by OUTAGE on average.

A tier whose nodes are never lost has as many as its pool, and one whose pool is always closed has none.

The same seed gives the same capacity, whatever the other settings of the job are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from random import Random

import numpy as np

from spotladder.core.accounting import HOUR
from spotladder.core.model import Price, Seconds, Spell
from spotladder.errors import InvalidSpec
from spotladder.planner.plan import TierFacts
from spotladder.sim.spells import spells
from spotladder.sim.synthetic import AGES, SyntheticMarket
from spotladder.sim.trace import UNLIMITED, Counts, Flags, Floats, Trace, mean_price

MOST_LOSSES = 500
"""A job with more expected losses than this in its longest run is not simulated."""

PRIOR_LOSSES, PRIOR_HOURS = 0.5, 1.0
"""The prior of the loss rate: losses and node-hours that a run adds to the observed ones. Without observations, 80 % of
the rates are between 0.01 and 1.4 losses per node and hour, the spread of public spot traces."""

OUTAGE: Seconds = 3600.0
"""Mean time for which a request that fails waits beyond provisionTimeout."""

REPLACED: Seconds = 1.0
"""Time for which a lost node is missing if the provisioner starts another one at once."""

DRIFT = 0.8
"""Standard deviation of the logarithm of the mean length of the spells of a run, relative to those of the trace before
it: 0.6 (capacity) to 0.85 (outages) between 32 h of a public trace and the days before."""

OLDEST = 100 * AGES[-1]
"""The age in ticks at which every spell has ended."""

STEPS = 1000
"""Number of equal steps of probability at which a distribution of lengths is tabulated."""


def drawn(facts: TierFacts, workers: int, horizon: Seconds, seed: int) -> Trace:
    """The capacity of the tier in the run with this seed, for `horizon` seconds."""
    if not facts.spot or facts.never_open:
        room = 0 if facts.never_open else UNLIMITED if facts.known.room is None else facts.known.room
        return Trace(facts.tier.name, np.zeros(1), np.array([room], dtype=np.int64), end=horizon)
    if facts.traces:
        return _recorded(facts, facts.traces[seed % len(facts.traces)], workers, horizon, seed)
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
    rate = min(rate, max(MOST_LOSSES / horizon, (facts.known.evictions or 0.0) * workers / HOUR))
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


def _recorded(facts: TierFacts, trace: Trace, workers: int, horizon: Seconds, seed: int) -> Trace:
    """The capacity of the tier by this trace, repeated until the horizon. Seed 0 begins at the start of the trace and
    has its spells. Other seeds begin at a random moment, or in the last spell of the trace if this is the present, and
    stretch the spells."""
    # Seeded on purpose: these numbers simulate a market and are no secret.
    dice = Random(seed)  # noqa: S311
    found = _spells(trace, workers)
    start, first, stretches = 0.0, 0.0, {True: 1.0, False: 1.0}
    if seed:
        start = dice.uniform(0.0, trace.end)
        if facts.until_now and len(found) > 1:
            start, first = _present(found, dice)
        stretches = {kind: _stretch(found, kind, dice) for kind in (True, False)}
    until = horizon / min(stretches.values())
    parts = [_part(trace, start - lap * trace.end, until) for lap in range(math.ceil((start + until) / trace.end))]
    times, nodes = (np.concatenate(one) for one in list(zip(*parts, strict=True))[:2])
    prices = None if trace.prices is None else np.concatenate([part[2] for part in parts if part[2] is not None])
    lengths = _stretched(np.diff(times), nodes[:-1] >= workers, stretches, trace.gap)
    times = np.concatenate(([0.0], np.cumsum(lengths)))
    if first:
        times = np.concatenate(([0.0], first + times))
        nodes = np.concatenate((trace.nodes[-1:], nodes))
        if trace.prices is not None and prices is not None:
            prices = np.concatenate((trace.prices[-1:], prices))
    path = Trace(trace.zone, times, nodes, end=horizon, prices=prices)
    if seed and len(found) == 1:
        path = _changing(path, workers, dice.gammavariate(0.5, 1.0) / trace.end, dice)
    if facts.known.room is not None:
        path = replace(path, nodes=np.minimum(path.nodes, facts.known.room))
    return _until(horizon, path)


def _stretched(lengths: Floats, available: Flags, stretches: Mapping[bool, float], least: Seconds) -> Floats:
    """The lengths of parts of a trace with capacity or without it, with the stretch of their kind. A spell that begins
    in them stays at least as long as the ticks of the trace, which show no shorter one. Where this makes the spells of
    one kind longer, those of the other become longer by the same factor, so that the share of time with capacity stays
    the same: spells that cannot be shorter are rarer."""
    begins = np.flatnonzero(np.diff(available, prepend=~available[:1]))
    recorded, kinds = np.add.reduceat(lengths, begins), available[begins]
    wanted = recorded * np.where(kinds, stretches[True], stretches[False])
    given = wanted.copy()
    given[1:] = np.maximum(given[1:], least)
    longer = {kind: given[kinds == kind].sum() / wanted[kinds == kind].sum() for kind in {*kinds.tolist()}}
    for kind, factor in longer.items():
        given[kinds == kind] *= max(longer.values()) / factor
    stretched: Floats = lengths * np.repeat(given / recorded, np.diff(begins, append=len(lengths)))
    return stretched


@lru_cache(maxsize=64)
def _spells(trace: Trace, workers: int) -> Sequence[Spell]:
    return spells(trace, workers)


def _until(horizon: Seconds, trace: Trace) -> Trace:
    kept = slice(0, int(np.searchsorted(trace.times, horizon)))
    prices = None if trace.prices is None else trace.prices[kept]
    return replace(trace, times=trace.times[kept], nodes=trace.nodes[kept], prices=prices)


def _stretch(found: Sequence[Spell], available: bool, dice: Random) -> float:
    """The length of the spells of one kind in a run, relative to the trace: log-normal, wider with fewer spells."""
    return math.exp(dice.gauss(0.0, spread_of(sum(spell.available is available for spell in found[:-1]))))


def spread_of(ended: int) -> float:
    """The standard deviation of the logarithm of the mean length of the spells of a run, relative to a trace with
    `ended` ended spells."""
    return math.sqrt(DRIFT**2 + 1 / (ended + 1))


def _present(found: Sequence[Spell], dice: Random) -> tuple[Seconds, Seconds]:
    """The moment of the trace from which a run continues, and how long its last spell lasts before: like that of a
    spell that was as old. One more draw stands for longer spells than any in the trace: the rest of such a spell is
    as likely shorter as longer than its age."""
    now = found[-1]
    age = now.until - now.since
    older = [one for one in found[:-1] if one.available is now.available and one.until - one.since > age]
    pick = dice.randrange(len(older) + 1)
    if pick < len(older):
        return older[pick].since + age, 0.0
    luck = dice.random()
    return dice.choice([one.since for one in found if one.available is not now.available]), age * luck / (1.0 - luck)


def _changing(path: Trace, workers: int, rate: float, dice: Random) -> Trace:
    """The capacity of a trace that never changes, with changes at this rate. One that such a trace may have is drawn
    from Jeffreys' posterior of a rate after no event."""
    moments = [dice.expovariate(rate)]
    while moments[-1] < path.end:
        moments += [moments[-1] + dice.expovariate(1.0 / OUTAGE)]
        moments += [moments[-1] + dice.expovariate(rate)]
    times = np.union1d(path.times, moments)
    changed = np.searchsorted(moments, times, side="right") % 2 == 1
    nodes = np.where(changed, 0 if path.nodes[0] >= workers else workers, path.at(times))
    prices = None if path.prices is None else path.prices[np.searchsorted(path.times, times, side="right") - 1]
    return replace(path, times=times, nodes=nodes, prices=prices)


def _part(trace: Trace, start: Seconds, horizon: Seconds) -> tuple[Floats, Counts, Floats | None]:
    """The times, nodes and prices of the trace from `start` on, which may be before its first sample, for `horizon`
    seconds. The times are after `start`."""
    first = max(0, int(np.searchsorted(trace.times, start, side="right")) - 1)
    part = slice(first, max(first + 1, int(np.searchsorted(trace.times, start + horizon))))
    prices = None if trace.prices is None else trace.prices[part]
    return np.maximum(trace.times[part] - start, 0.0), trace.nodes[part], prices
