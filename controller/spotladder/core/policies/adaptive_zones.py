"""The zones of the fitted model, weighted by how well they explain the observed spells of one tier."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from operator import add
from typing import NamedTuple

from spotladder.core.ages import ended_ticks, ticks_of
from spotladder.core.model import NO_OUTCOMES, Instant, Outcomes, Spell
from spotladder.core.policies.adaptive_tables import Model, endings, fleet_likelihood, survivals

DISTRUST = 18.0
"""Minimum difference in log-likelihood by which constant hazard rates, fitted to the same spells, must explain them
better before the model is not used. On a zone that was excluded from the fit, the 32 newest spells had at most 16."""

FLEET_WEIGHT = 0.25
"""Weight of one outcome of the fleet, relative to one of the job. Jobs on a tier at the same time observe the same loss
of capacity, and the job's own spells are the newest."""


class Belief(NamedTuple):
    """`weights`: the weight of each zone of the model, by the likelihood of the observed spells of one tier, and of the
    fleet's outcomes on it. More ends at an age never lower the mean hazard of the zones at this age. `trusted`: the
    model explains these spells about as well as constant hazard rates that are fitted to them."""

    weights: tuple[float, ...]
    trusted: bool


class Evidence:
    """The observations of one tier before its newest spell, with their beliefs. For the spells that have ended: `logs`
    is their log-likelihood for each zone, `ends` and `ticks` are for each availability their number and their total
    duration in ticks. `units` is the log-likelihood in whole numbers of UNIT: sums of these do not depend on the order,
    so the result is the same with and without the cache. `prior` is the log of each zone's weight."""

    __slots__ = ("_beliefs", "_model", "ends", "logs", "prior", "ticks", "units")

    def __init__(self, model: Model, units: tuple[int, ...], ends: tuple[int, int], ticks: tuple[int, int]) -> None:
        self.units, self.ends, self.ticks = units, ends, ticks
        self.logs = self.prior = tuple([UNIT * zone for zone in units])
        self._model = model
        self._beliefs: dict[tuple[bool, int], Belief] = {}

    def belief(self, newest: Spell | None) -> Belief:
        """The belief with this newest spell, which has not ended; None: the tier was never observed."""
        return Belief(_scaled(self.prior), True) if newest is None else self.at(newest.available, ticks_of(newest))

    def at(self, available: bool, ticks: int) -> Belief:
        """The belief when the newest spell has reached this age."""
        found = self._beliefs.get((available, ticks))
        if found is None:
            reached = survivals(self._model, available, ticks)
            best: float = max(map(add, self.logs, reached))
            trusted = best > _memoryless(self, available, ticks) - DISTRUST
            found = Belief(_scaled(list(map(add, self.prior, reached))), trusted)
            self._beliefs[available, ticks] = found
        return found

    def trusts_outage(self, ticks: int, later: int) -> bool:
        """Whether the model is certainly trusted at every age of an outage from `ticks` to `later`: the log-likelihoods
        of the model and of the constant hazard rates both fall with this age."""
        best: float = max(map(add, self.logs, survivals(self._model, False, later)))
        return best > _memoryless(self, False, ticks) - DISTRUST


def evidence(model: Model, spells: tuple[Spell, ...], fleet: Outcomes = NO_OUTCOMES) -> Evidence:
    """The evidence of these spells of one tier, of which the last one has not ended, and of the outcomes of all jobs:
    one object for the same spells."""
    closed, known = spells[:-1], None if fleet is NO_OUTCOMES or fleet == NO_OUTCOMES else fleet
    if not closed:
        return _first(model, spells[0].available if spells else None, known)
    key = (model, known, len(closed), closed[0].since, closed[-1].until)
    cached = _CACHE.get(key)
    if cached is not None and cached[0] == closed:
        return cached[1]
    before = None
    if len(closed) > 1:
        before = _CACHE.get((model, known, len(closed) - 1, closed[0].since, closed[-2].until))
    found = _summed(model, closed, before)
    found.prior = _prior(model, spells[0].available, known, found.logs)
    if len(_CACHE) >= CACHED:
        del _CACHE[next(iter(_CACHE))]
    _CACHE[key] = (closed, found)
    return found


def _scaled(logs: Sequence[float]) -> tuple[float, ...]:
    """Weights with the sum 1 in proportion to these likelihoods."""
    best = max(logs)
    scaled = [math.exp(log - best) for log in logs]
    total = sum(scaled)
    return tuple([part / total for part in scaled])


@lru_cache(maxsize=256)
def _first(model: Model, available: bool | None, fleet: Outcomes | None) -> Evidence:
    """The evidence before the first spell, which has this availability; None without one."""
    zeros = (0,) * len(model.shares)
    found = Evidence(model, zeros, (0, 0), (0, 0))
    found.prior = _prior(model, available, fleet, found.logs)
    return found


def _prior(model: Model, available: bool | None, fleet: Outcomes | None, logs: tuple[float, ...]) -> tuple[float, ...]:
    """For each zone, the log of its weight before the newest spell."""
    if available is not None:
        logs = tuple(map(add, _log_shares(model)[available], logs))
    if fleet is not None:
        seen = fleet_likelihood(model, fleet)
        logs = tuple([log + FLEET_WEIGHT * one for log, one in zip(logs, seen, strict=True)])
    return logs


@lru_cache(maxsize=64)
def _log_shares(model: Model) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """For each zone, the log of the fraction of time without capacity, and with it."""
    return (
        tuple([math.log(1.0 - share) for share in model.shares]),
        tuple([math.log(share) for share in model.shares]),
    )


def _summed(model: Model, closed: tuple[Spell, ...], before: tuple[tuple[Spell, ...], Evidence] | None) -> Evidence:
    """The sums over these spells; `before` may have those of all but the last one."""
    if before is not None and before[0] == closed[:-1]:
        new, parts = closed[-1:], [before[1].units]
        ends, ticks = list(before[1].ends), list(before[1].ticks)
    else:
        new, parts, ends, ticks = closed, [], [0, 0], [0, 0]
    for spell in new:
        ended = ended_ticks(spell)
        parts.append(_ending_units(model, spell.available, ended))
        ends[spell.available] += 1
        ticks[spell.available] += ended
    units = tuple([sum(zone) for zone in zip(*parts, strict=True)])
    return Evidence(model, units, (ends[0], ends[1]), (ticks[0], ticks[1]))


@lru_cache(maxsize=65536)
def _ending_units(model: Model, available: bool, ticks: int) -> tuple[int, ...]:
    return tuple([round(log / UNIT) for log in endings(model, available, ticks)])


def _memoryless(closed: Evidence, available: bool, ticks: int) -> float:
    """The log-likelihood of these spells under one constant hazard rate for each availability, fitted to the spells."""
    total = 0.0
    for kind in (True, False):
        ends, reached = closed.ends[kind], closed.ticks[kind] + (ticks if available is kind else 0)
        hazard = (ends + 0.5) / (reached + 1.0)
        total += ends * math.log(hazard) + max(0, reached - ends) * math.log(1.0 - min(hazard, 0.99))
    return total


UNIT = 2.0**-32
"""Unit of a log-likelihood."""

CACHED = 4096
"""Maximum number of cached sums."""

_CACHE: dict[tuple[Model, Outcomes | None, int, Instant, Instant], tuple[tuple[Spell, ...], Evidence]] = {}
"""The evidence of the newest spells: compared by identity first, which is faster than their hash."""
