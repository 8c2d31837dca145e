"""Spells of a trace: uninterrupted time with capacity, or without it, and how long it lasts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from spotladder.core.model import Seconds
from spotladder.sim.trace import Flags, Floats, Trace


def spells(flags: Flags, available: bool) -> list[tuple[int, bool]]:
    """Length in ticks of each spell of that kind, and whether it ended within the trace."""
    return [(end - begin, end < len(flags)) for begin, end in _bounds(flags, available)]


def durations(trace: Trace, workers: int, available: bool) -> list[tuple[Seconds, bool]]:
    """Length in seconds of each spell with capacity for all of `workers` nodes, or without it, and whether it ended
    within the trace."""
    flags, times = trace.available(workers), [*trace.times.tolist(), trace.end]
    return [(times[end] - times[begin], end < len(flags)) for begin, end in _bounds(flags, available)]


def survival(flags: Sequence[Flags], available: bool, ages: int) -> Floats:
    """Shape (ages,): the share of spells that last longer than each age in ticks, as `surviving`."""
    return surviving([spell for one in flags for spell in spells(one, available)], range(ages))


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


def _bounds(flags: Flags, available: bool) -> Iterator[tuple[int, int]]:
    """The first sample of each spell of that kind, and the one after its last."""
    changes = np.flatnonzero(np.diff(flags)) + 1
    for begin, end in pairwise([0, *changes.tolist(), len(flags)]):
        if bool(flags[begin]) is available:
            yield begin, end
