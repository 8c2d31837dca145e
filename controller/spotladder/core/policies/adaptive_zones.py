"""The zones of the fitted model, weighted by how well they explain the observed spells of one tier."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from operator import add

from spotladder.core.history.ages import ended_ticks
from spotladder.core.model import Spell
from spotladder.core.policies.adaptive_tables import Model, endings, survivals

DISTRUST = 18.0
"""Minimum difference in log-likelihood by which constant hazard rates, fitted to the same spells, must explain them
better before the model is not used. On a zone that was excluded from the fit, the 32 newest spells had at most 16."""


def weights(model: Model, spells: tuple[Spell, ...], ticks: int) -> tuple[float, ...]:
    """The weight of each zone of the model, by the likelihood of the observed spells, of which the newest one has
    reached this age."""
    available = bool(spells) and spells[-1].available
    logs = tuple(map(add, _closed(model, spells[:-1]), survivals(model, available, ticks)))
    if spells:
        first = spells[0].available
        logs = tuple(map(add, logs, (math.log(share if first else 1.0 - share) for share in model.shares)))
    return _scaled(logs)


def trusted(model: Model, spells: tuple[Spell, ...], ticks: int) -> bool:
    """Whether the model explains the observed spells, of which the newest one has reached this age, about as well as
    constant hazard rates that are fitted to them."""
    best: float = max(map(add, _closed(model, spells[:-1]), survivals(model, spells[-1].available, ticks)))
    return best > _memoryless(spells, ticks) - DISTRUST


@lru_cache(maxsize=4096)
def _closed(model: Model, closed: tuple[Spell, ...]) -> tuple[float, ...]:
    """The log-likelihood of these spells, which have ended, for each zone."""
    logs = (0.0,) * len(model.shares)
    for spell in closed:
        logs = tuple(map(add, logs, endings(model, spell.available, ended_ticks(spell))))
    return logs


def _scaled(logs: Sequence[float]) -> tuple[float, ...]:
    """Weights with the sum 1 in proportion to these likelihoods."""
    most = max(logs)
    scaled = [math.exp(log - most) for log in logs]
    total = sum(scaled)
    return tuple(one / total for one in scaled)


def _memoryless(spells: tuple[Spell, ...], ticks: int) -> float:
    """The log-likelihood of these spells, of which the newest one has reached this age, under one constant hazard rate
    for each availability, fitted to the spells."""
    total = 0.0
    for kind in (True, False):
        lengths = [ended_ticks(spell) for spell in spells[:-1] if spell.available is kind]
        ends, reached = len(lengths), sum(lengths) + (ticks if spells[-1].available is kind else 0)
        hazard = (ends + 0.5) / (reached + 1.0)
        total += ends * math.log(hazard) + max(0, reached - ends) * math.log(1.0 - hazard)
    return total
