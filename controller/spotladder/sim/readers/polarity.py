"""The meaning of a 1 in a trace, and signs that it is the opposite of the assumed one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from spotladder.sim.spells import durations
from spotladder.sim.synthetic import DAY
from spotladder.sim.trace import Trace, share_of


class Polarity(StrEnum):
    """The meaning of a 1 in a trace."""

    AVAILABLE = "available"
    PREEMPTED = "preempted"

    @property
    def opposite(self) -> Polarity:
        """The other meaning."""
        return Polarity.PREEMPTED if self is Polarity.AVAILABLE else Polarity.AVAILABLE


SCARCE = 0.02
"""Share of the time below which capacity is so rare that the polarity may be wrong."""

OUTAGES = 0.05
"""Share of the time below which frequent spells of capacity look like the outages of a zone that has capacity."""

LEAST_SPELLS = 3
"""Number of spells from which their frequency counts."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A sign that a 1 means the opposite. `certain`: no recorded capacity looks like this."""

    sentence: str
    certain: bool


def doubt(traces: Sequence[Trace], one: Polarity) -> Doubt | None:
    """Whether these traces, read with this meaning of a 1, look as if it was the opposite; None if they do not.

    In public traces of scarce capacity, spells of it are rare: less than one a day. Outages of a zone that has capacity
    for more than 95 % of the time come twice a day.
    """
    total = sum(trace.end for trace in traces)
    share = share_of(traces)
    spells = sum(len(durations(trace, 1, available=True)) for trace in traces)
    mend = f"Give --polarity {one.opposite}, or --polarity {one} if"
    if share == 0.0:
        return Doubt(f"there is never capacity: does a 1 mean the opposite? {mend} there really was none", certain=True)
    certain = share < OUTAGES and spells >= LEAST_SPELLS and spells > total / DAY
    if not certain and share >= SCARCE:
        return None
    often = "1 spell" if spells == 1 else f"{spells} spells"
    seen = f"there is capacity for {100 * share:.1f} % of the time only, in {often} of {total / DAY:.3g} days"
    return Doubt(f"{seen}: does a 1 mean the opposite? {mend} it was so", certain)
