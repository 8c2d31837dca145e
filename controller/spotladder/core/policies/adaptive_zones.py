"""The zones of the fitted model, weighted by how well they explain the observed spells of one tier."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from operator import add, mul, sub, truediv

from spotladder.core.ages import ended_ticks
from spotladder.core.model import NO_OUTCOMES, Instant, Outcomes, Spell
from spotladder.core.policies.adaptive_tables import Model, endings, fleet_likelihood, survivals

DISTRUST = 18.0
"""Minimum difference in log-likelihood by which constant hazard rates, fitted to the same spells, must explain them
better before the model is not used. On a zone that was excluded from the fit, the 32 newest spells had at most 16."""

FLEET_WEIGHT = 0.25
"""Weight of one outcome of the fleet, relative to one of the job. Jobs on a tier at the same time observe the same loss
of capacity, and the job's own spells are the newest."""


class Evidence:
    """The observations of one tier before its newest spell, and what follows from them for each age of that spell.

    For the spells that have ended: `logs` is their log-likelihood for each zone, `ends` and `ticks` are for each
    availability their number and their total duration in ticks. `units` is the log-likelihood in whole numbers of UNIT:
    sums of these do not depend on the order, so the result is the same with and without the cache. `prior` is the log
    of each zone's weight."""

    __slots__ = ("_model", "_trusted_until", "_weights", "ends", "logs", "prior", "ticks", "units")

    def __init__(self, model: Model, units: tuple[int, ...], ends: tuple[int, int], ticks: tuple[int, int]) -> None:
        self.units, self.ends, self.ticks = units, ends, ticks
        self.logs = self.prior = tuple(map(mul, units, repeat(UNIT)))
        self._model = model
        self._weights: dict[tuple[bool, int], tuple[float, ...]] = {}
        self._trusted_until = [0, 0]

    def weights(self, available: bool, ticks: int) -> tuple[float, ...]:
        """The weight of each zone of the model, by the likelihood of the observed spells, of which the newest one has
        reached this age, and of the fleet's outcomes. More ends at an age never lower the mean hazard of the zones at
        this age."""
        found = self._weights.get((available, ticks))
        if found is None:
            reached = survivals(self._model, available, ticks)
            found = self._weights[available, ticks] = _scaled(tuple(map(add, self.prior, reached)))
        return found

    def trusted(self, available: bool, ticks: int) -> bool:
        """Whether the model explains the observed spells, of which the newest one has reached this age, about as well
        as constant hazard rates that are fitted to them."""
        if ticks <= self._trusted_until[available]:
            return True
        if self.trusts(available, 0, 2 * ticks):
            self._trusted_until[available] = 2 * ticks
            return True
        return self.trusts(available, ticks, ticks)

    def trusts(self, available: bool, ticks: int, later: int) -> bool:
        """Whether the model is certainly trusted at every age of the newest spell from `ticks` to `later`: the
        log-likelihoods of the model and of the constant hazard rates both fall with this age."""
        best: float = max(map(add, self.logs, survivals(self._model, available, later)))
        return best > _memoryless(self, available, ticks) - DISTRUST


def evidence(model: Model, spells: tuple[Spell, ...], fleet: Outcomes = NO_OUTCOMES) -> Evidence:
    """The evidence of these spells of one tier, of which the last one has not ended, and of the outcomes of all jobs:
    one object for the same spells."""
    closed, known = spells[:-1], None if fleet is NO_OUTCOMES or fleet == NO_OUTCOMES else fleet
    if not closed:
        return _first(model, spells[0].available if spells else None, known)
    key = (model, known, closed[-1].since, closed[-1].until)
    cached = _CACHE.get(key)
    if cached is not None and cached[0] == closed:
        return cached[1]
    found = _summed(model, known, closed)
    found.prior = _prior(model, spells[0].available, known, found.logs)
    if len(_CACHE) >= CACHED:
        del _CACHE[next(iter(_CACHE))]
    _CACHE[key] = (closed, found)
    return found


def _scaled(logs: Sequence[float]) -> tuple[float, ...]:
    """Weights with the sum 1 in proportion to these likelihoods."""
    scaled = list(map(math.exp, map(sub, logs, repeat(max(logs)))))
    return tuple(map(truediv, scaled, repeat(sum(scaled))))


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


def _summed(model: Model, fleet: Outcomes | None, closed: tuple[Spell, ...]) -> Evidence:
    """The sums over these spells, from those of the last cached ones that overlap with them."""
    units, ends, ticks = (0,) * len(model.shares), [0, 0], [0, 0]
    dropped, new = closed[:0], closed
    for count in range(len(closed) - 1, max(0, len(closed) - SEARCHED - 1), -1):
        last = closed[count - 1]
        before = _CACHE.get((model, fleet, last.since, last.until))
        if before is not None and before[0][-count:] == closed[:count]:
            units, ends, ticks = before[1].units, list(before[1].ends), list(before[1].ticks)
            dropped, new = before[0][:-count], closed[count:]
            break
    for spells, sign, combined in ((new, 1, add), (dropped, -1, sub)):
        for spell in spells:
            ended = ended_ticks(spell)
            units = tuple(map(combined, units, _ending_units(model, spell.available, ended)))
            ends[spell.available] += sign
            ticks[spell.available] += sign * ended
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

SEARCHED = 8
"""Maximum number of spells that are added to cached sums."""

_CACHE: dict[tuple[Model, Outcomes | None, Instant, Instant], tuple[tuple[Spell, ...], Evidence]] = {}
"""The evidence of the newest spells: compared by identity first, which is faster than their hash."""
