"""The capacity that Karpenter's NodeClaims show over time.

Rules
 1. A launched NodeClaim is capacity as of its launch. One that ends without a launch existed from the start.
 2. A reclaimed one (an interruption, an instance that is gone) is capacity that is lost.
 3. A node that Karpenter removes by itself (empty, consolidated, expired), or that a user removes, is capacity that
    nothing used: it counts until the next launch takes its place, or until a launch fails or a node is reclaimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

import numpy as np

from spotladder.core.model import Instant
from spotladder.errors import InvalidSpec
from spotladder.sim.trace import Trace


class Change(Enum):
    """What happened to a NodeClaim. `REFUSED`: its launch failed for lack of capacity."""

    LAUNCHED = auto()
    RECLAIMED = auto()
    RELEASED = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class ClaimEvent:
    """A change of the NodeClaim of this name."""

    at: Instant
    name: str
    change: Change


def trace(events: Sequence[ClaimEvent], path: Path) -> Trace:
    """The number of nodes over time, from the first of these events to the last one. Raises InvalidSpec for events
    without time between them."""
    ordered = sorted(events, key=lambda event: event.at)
    if not ordered or ordered[0].at == ordered[-1].at:
        raise InvalidSpec("has no time between changes of nodes or NodeClaims: keep events for longer", where=str(path))
    began, held, idle, gone = ordered[0].at, _first(ordered), 0, set[str]()
    counts = {0.0: len(held)}
    for event in ordered:
        match event.change:
            case Change.LAUNCHED if event.name not in held | gone:
                held.add(event.name)
                idle = max(0, idle - 1)
            case Change.RECLAIMED if event.name in held:
                held.remove(event.name)
                gone.add(event.name)
                idle = 0
            case Change.RELEASED if event.name in held:
                held.remove(event.name)
                gone.add(event.name)
                idle += 1
            case Change.REFUSED:
                idle = 0
        counts[event.at - began] = len(held) + idle
    times = np.array(list(counts))
    nodes = np.array(list(counts.values()), dtype=np.int64)
    return Trace(path.stem, times, nodes, float(times[-1]), origin=began, source=str(path))


def _first(ordered: Sequence[ClaimEvent]) -> set[str]:
    """The NodeClaims whose first change is their end."""
    first: dict[str, Change] = {}
    for event in ordered:
        first.setdefault(event.name, event.change)
    return {name for name, change in first.items() if change in (Change.RECLAIMED, Change.RELEASED)}
