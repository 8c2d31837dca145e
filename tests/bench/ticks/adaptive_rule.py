"""The slack that `adaptive` needs in each tick of a trace, tabulated from its model for all ticks at once.

The tables have what `core.policies.adaptive_prospects` computes for one view: the weights of the zones of the model by
the likelihood of the spells that the job has observed until a tick, and with them the minimum slack at each knot of the
remaining work. Several runs on the same trace share them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotladder.core.ages import AGES, TICK
from spotladder.core.ages import EXACT as EXACT_TICKS
from spotladder.core.availability import SPELLS
from spotladder.core.model import Price
from spotladder.core.policies.adaptive_tables import WORK, Model, columns, knot_of
from spotladder.core.policies.adaptive_zones import DISTRUST, UNIT
from spotladder.sim.trace import Floats
from tests.bench.ticks.capacity import Capacity
from tests.bench.ticks.job import TickJob

Ints = NDArray[np.int64]

MOST_TICKS = 2048
"""The longest run for which tables are made: two weeks of ticks of ten minutes."""

BLOCK = 512
"""Tables end at a multiple of this number of ticks, so that runs with other deadlines share them."""


KNOTS = len(WORK) + 1
"""Number of knots of the remaining work, with the one of no work."""


@dataclass(frozen=True, slots=True)
class AdaptiveRule:
    """`slacks` has the minimum slack in seconds at each knot of the remaining work, tick by tick: in a tick without
    capacity to wait, in one with capacity to leave on-demand."""

    capacity: Capacity
    slacks: memoryview

    def waits(self, tick: int, remaining: int) -> float:
        """The minimum slack, by interpolation between two knots."""
        high, part, factor = knot_of(remaining)
        slacks, place = self.slacks, tick * KNOTS + high
        found: float = factor * (slacks[place - 1] * (1.0 - part) + slacks[place] * part)
        return found

    leaves = waits


def adaptive_rule(model: Model, capacity: Capacity, job: TickJob, on_demand: Price, spot: Price) -> AdaptiveRule | None:
    """The rule of `adaptive` for a job with these prices; None for a long job, for a price of 0, and if the policy does
    not trust the model somewhere on the trace."""
    ticks = -(-job.deadline // job.tick)
    if ticks > MOST_TICKS or spot.per_node_hour <= 0:
        return None
    terms = float(job.overhead), on_demand.per_node_hour / spot.per_node_hour
    ticks = min(capacity.ticks, -(-ticks // BLOCK) * BLOCK)
    slacks = _slacks(model, capacity, job.tick, ticks, terms)
    return None if slacks is None else AdaptiveRule(capacity, slacks)


@lru_cache(maxsize=64)
def _slacks(model: Model, capacity: Capacity, length: int, ticks: int, terms: tuple[float, float]) -> memoryview | None:
    course = _course(model, capacity, length, ticks)
    if course is None:
        return None
    needed = np.matmul(_columns(model, terms)[course.kind, course.place], course.weights[:, :, None])
    return memoryview(needed.ravel())


@lru_cache(maxsize=64)
def _columns(model: Model, terms: tuple[float, float]) -> Floats:
    """The minimum slack in seconds by availability, age class, knot and zone."""
    pairs = [columns(model, terms, place) for place in range(len(AGES))]
    return TICK * np.array([[pair[kind] for pair in pairs] for kind in (0, 1)])


@dataclass(frozen=True, slots=True)
class _Course:
    """For each tick: whether it has capacity (1) or not (0), the age class of its spell, and the weight of each
    zone."""

    kind: Ints
    place: Ints
    weights: Floats


@lru_cache(maxsize=64)
def _course(model: Model, capacity: Capacity, length: int, ticks: int) -> _Course | None:
    """What a job has observed on this trace until each tick. None if it does not trust the model in one of them."""
    starts = np.array([0, *(change for change in capacity.changes if change < ticks)])
    kinds = (np.arange(len(starts)) + int(capacity.first)) % 2
    oldest = np.maximum(0, np.arange(len(starts)) + 1 - SPELLS)
    ended = np.maximum(1, np.ceil(np.diff(starts) * length / TICK - EXACT_TICKS).astype(np.int64))
    spell = np.searchsorted(starts, np.arange(ticks), side="right") - 1
    ages = 1 + ((np.arange(ticks) - starts[spell]) * length / TICK + EXACT_TICKS).astype(np.int64)
    kind = kinds[spell]
    most = 1 << int(max(ages.max(), ended.max(initial=1))).bit_length()
    reached = _survivals(model, most)[kind, ages]
    logs = UNIT * _sums(_ending_units(model, most)[kinds[:-1], ended], oldest)
    if np.any((logs[spell] + reached).max(axis=1) <= _memoryless(kinds, ended, oldest, spell, ages) - DISTRUST):
        return None
    shares = np.log([[1.0 - share for share in model.shares], model.shares])
    likelihood = (logs + shares[kinds[oldest]])[spell] + reached
    weights = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    return _Course(kind, _place(ages), weights / weights.sum(axis=1, keepdims=True))


def _memoryless(kinds: Ints, ended: Ints, oldest: Ints, spell: Ints, ages: Ints) -> Floats:
    """For each tick, the log-likelihood of the observed spells under one constant hazard rate for each availability,
    fitted to these spells. `spell` is the index of the newest one in each tick, and `ages` its age."""
    total = np.zeros(len(spell))
    for kind in (0, 1):
        closed = kinds[:-1] == kind
        ends, lasted = _sums(np.stack([closed, np.where(closed, ended, 0)], axis=1), oldest)[spell].T
        lasted = lasted + np.where(kinds[spell] == kind, ages, 0)
        hazard = (ends + 0.5) / (lasted + 1.0)
        total += ends * np.log(hazard) + np.maximum(0, lasted - ends) * np.log(1.0 - np.minimum(hazard, 0.99))
    return total


def _sums(rows: NDArray[Any], oldest: Ints) -> NDArray[Any]:
    """For each spell, the sums of the rows of the spells before it, from the oldest one that the job remembers."""
    before = np.concatenate([np.zeros_like(rows[:1], shape=(1, rows.shape[1])), rows]).cumsum(axis=0)
    found: NDArray[Any] = before - before[oldest]
    return found


def _place(ages: Ints) -> Ints:
    """The age class of each age in ticks."""
    return np.maximum(0, np.searchsorted(AGES, ages, side="right") - 1)


@lru_cache(maxsize=16)
def _survivals(model: Model, most: int) -> Floats:
    """By availability, age in ticks up to `most`, and zone: the log-probability that a spell reaches this age."""
    hazards, ages = np.array(model.hazards), np.arange(most + 1)
    found = np.zeros((2, most + 1, len(model.shares)))
    for place, (first, following) in enumerate(pairwise((*AGES, sys.maxsize))):
        spent = np.maximum(0, np.minimum(ages, following) - first)
        found += spent[:, None] * np.log1p(-hazards[:, :, place].T)[:, None, :]
    return found


@lru_cache(maxsize=16)
def _ending_units(model: Model, most: int) -> Ints:
    """The same for the log-probability that a spell ends at this age, in whole numbers of UNIT."""
    ends = np.log(np.array(model.hazards))[:, :, _place(np.arange(most + 1))].transpose(1, 2, 0)
    units: Ints = np.rint((_survivals(model, most) + ends) / UNIT).astype(np.int64)
    return units
