"""Spells of a trace: uninterrupted time with capacity, or without it, and how long it lasts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from spotladder.core.model import Seconds, Spell
from spotladder.sim.trace import Floats, Trace


def spells(trace: Trace, workers: int) -> list[Spell]:
    """The spells of the trace, alternating, at times of the trace: with capacity for all of `workers` nodes, or without
    it. The last one has not ended."""
    flags, times = trace.available(workers), [*trace.times.tolist(), trace.end]
    changes = (np.flatnonzero(np.diff(flags)) + 1).tolist()
    return [Spell(bool(flags[begin]), times[begin], times[end]) for begin, end in pairwise([0, *changes, len(flags)])]


def durations(trace: Trace, workers: int, available: bool) -> list[tuple[Seconds, bool]]:
    """Length in seconds of each spell with capacity for all of `workers` nodes, or without it, and whether it ended
    within the trace."""
    found = spells(trace, workers)
    last = len(found) - 1
    return [(one.until - one.since, index < last) for index, one in enumerate(found) if one.available is available]


def surviving(found: Sequence[tuple[float, bool]], ages: Sequence[float]) -> Floats:
    """Shape (ages,): the share of these spells that last longer than each age, by Kaplan and Meier: a spell that is cut
    off by the end of the trace counts until then. `found` has the lengths, in the unit of the ages, and whether the
    spells ended."""
    lengths = np.array([length for length, _ended in found], dtype=np.float64)
    ends, counts = np.unique([length for length, ended in found if ended], return_counts=True)
    at_risk = np.array([(lengths >= end).sum() for end in ends])
    alive = np.concatenate(([1.0], np.cumprod(1.0 - counts / at_risk)))
    curve: Floats = alive[np.searchsorted(ends, np.asarray(ages, dtype=np.float64), side="right")]
    return curve
