"""The zones of the fitted model, weighted by how well they explain the observed spells of one tier."""

from __future__ import annotations

import math
from functools import lru_cache
from operator import add, mul
from typing import NamedTuple

from spotladder.core.ages import TICK, age_class, ended_ticks, ticks_of
from spotladder.core.model import NO_OUTCOMES, Instant, Outcomes, Seconds, Spell
from spotladder.core.policies.adaptive_tables import (
    Model,
    endings,
    fleet_likelihood,
    reaching,
    survivals,
    waits_by_zone,
)

DISTRUST = 18.0
"""Minimum difference in log-likelihood by which constant hazard rates, fitted to the same spells, must explain them
better before the model is not used. On a zone that was excluded from the fit, the 32 newest spells had at most 16."""

FLEET_WEIGHT = 0.25
"""Weight of one outcome of the fleet, relative to one of the job. Jobs on a tier at the same time observe the same loss
of capacity, and the job's own spells are the newest."""


def weights(model: Model, spells: tuple[Spell, ...], fleet: Outcomes = NO_OUTCOMES) -> tuple[float, ...]:
    """The weight of each zone of the model, by the likelihood of these spells of one tier, and of the fleet's outcomes
    on it. More ends at an age never lower the mean hazard of the zones at this age."""
    logs = _prior(model, spells, fleet)
    if spells:
        logs = list(map(add, logs, survivals(model, spells[-1].available, ticks_of(spells[-1]))))
    best = max(logs)
    scaled = [math.exp(log - best) for log in logs]
    total = sum(scaled)
    return tuple([part / total for part in scaled])


def explains(model: Model, spells: tuple[Spell, ...]) -> bool:
    """Whether the model explains these spells about as well as constant hazard rates that are fitted to them."""
    if not spells:
        return True
    newest = spells[-1]
    return _explains(model, _closed(model, spells[:-1]), newest.available, ticks_of(newest))


def still_waits_until(
    model: Model,
    spells: tuple[Spell, ...],
    fleet: Outcomes,
    terms: tuple[Seconds, float],
    *,
    remaining: Seconds,
    slack: Seconds,
    needed: Seconds,
) -> Instant:
    """Until when a job with this slack, of which waiting needs `needed` now, waits if the newest spell, which is one
    without capacity, continues: the slack shrinks with time, and the needed slack and the trust in the model change
    with the age of the spell. At most until this age has doubled, because an older spell is expected to last longer.
    """
    newest, closed, logs = spells[-1], _closed(model, spells[:-1]), _prior(model, spells, fleet)
    now, best, place, first = newest.until, max(logs), -1, ticks_of(newest)
    last = first + max(AHEAD, first)
    odds = [math.exp(log - best) for log in logs]
    slacks: list[float]
    for ticks in range(first, last):
        begins, ends = now if ticks == first else newest.since + TICK * (ticks - 1), newest.since + TICK * ticks
        if ticks > first:
            if not _explains(model, closed, False, ticks):
                return begins
            if age_class(ticks) != place:
                place = age_class(ticks)
                slacks = list(map(mul, odds, waits_by_zone(model, terms, place, remaining)))
            reached = reaching(model, False, ticks)
            needed = sum(map(mul, slacks, reached)) / sum(map(mul, odds, reached)) + ROUNDING
        if now + slack - needed < ends:
            return max(begins, now + slack - needed)
    return newest.since + TICK * (last - 1)


def _prior(model: Model, spells: tuple[Spell, ...], fleet: Outcomes) -> list[float]:
    """For each zone, the log of its weight before the newest spell."""
    logs = [0.0 for _zone in model.zones]
    if spells:
        logs = list(map(add, _log_shares(model)[spells[0].available], _closed(model, spells[:-1]).logs))
    if fleet is not NO_OUTCOMES and fleet != NO_OUTCOMES:
        logs = [log + FLEET_WEIGHT * seen for log, seen in zip(logs, fleet_likelihood(model, fleet), strict=True)]
    return logs


@lru_cache(maxsize=64)
def _log_shares(model: Model) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """For each zone, the log of the fraction of time without capacity, and with it."""
    return (
        tuple([math.log(1.0 - share) for share in model.shares]),
        tuple([math.log(share) for share in model.shares]),
    )


class _Closed(NamedTuple):
    """For spells that have ended: their log-likelihood for each zone, and for each availability their number and their
    total duration in ticks. `units` is the log-likelihood in whole numbers of UNIT: sums of these do not depend on the
    order, so the result is the same with and without the cache."""

    logs: tuple[float, ...]
    units: tuple[int, ...]
    ends: tuple[int, int]
    ticks: tuple[int, int]


def _closed(model: Model, spells: tuple[Spell, ...]) -> _Closed:
    if not spells:
        return _summed([(0,) * len(model.shares)], (0, 0), (0, 0))
    key = (model, len(spells), spells[0].since, spells[-1].until)
    cached = _CACHE.get(key)
    if cached is not None and cached[0] == spells:
        return cached[1]
    before = _CACHE.get((model, len(spells) - 1, spells[0].since, spells[-2].until)) if len(spells) > 1 else None
    if before is not None and before[0] == spells[:-1]:
        new, parts, ends, ticks = spells[-1:], [before[1].units], list(before[1].ends), list(before[1].ticks)
    else:
        new, parts, ends, ticks = spells, [], [0, 0], [0, 0]
    for spell in new:
        ended = ended_ticks(spell)
        parts.append(_ending_units(model, spell.available, ended))
        ends[spell.available] += 1
        ticks[spell.available] += ended
    found = _summed(parts, (ends[0], ends[1]), (ticks[0], ticks[1]))
    if len(_CACHE) >= CACHED:
        _CACHE.clear()
    _CACHE[key] = (spells, found)
    return found


def _summed(parts: list[tuple[int, ...]], ends: tuple[int, int], ticks: tuple[int, int]) -> _Closed:
    units = tuple([sum(zone) for zone in zip(*parts, strict=True)])
    return _Closed(tuple([UNIT * zone for zone in units]), units, ends, ticks)


@lru_cache(maxsize=65536)
def _ending_units(model: Model, available: bool, ticks: int) -> tuple[int, ...]:
    return tuple([round(log / UNIT) for log in endings(model, available, ticks)])


def _explains(model: Model, closed: _Closed, available: bool, ticks: int) -> bool:
    """Whether the model explains the closed spells and a newest one that has reached this age."""
    best: float = max(map(add, closed.logs, survivals(model, available, ticks)))
    return best > _memoryless(closed, available, ticks) - DISTRUST


def _memoryless(closed: _Closed, available: bool, ticks: int) -> float:
    """The log-likelihood of these spells under one constant hazard rate for each availability, fitted to the spells."""
    total = 0.0
    for kind in (True, False):
        ends, reached = closed.ends[kind], closed.ticks[kind] + (ticks if available is kind else 0)
        hazard = (ends + 0.5) / (reached + 1.0)
        total += ends * math.log(hazard) + max(0, reached - ends) * math.log(1.0 - min(hazard, 0.99))
    return total


UNIT = 2.0**-32
"""Unit of a log-likelihood."""

ROUNDING: Seconds = 1e-3
"""Tolerance for the rounding of a minimum slack."""

AHEAD = 6
"""How many ticks ahead of a young spell the choice is computed."""

CACHED = 4096
"""Maximum number of cached sums."""

_CACHE: dict[tuple[Model, int, Instant, Instant], tuple[tuple[Spell, ...], _Closed]] = {}
"""The sums of the newest spells: compared by identity first, which is faster than their hash."""
