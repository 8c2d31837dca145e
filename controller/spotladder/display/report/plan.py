"""Where a finished run lies among the simulated runs of its plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.display.figures import money, percent, span


@dataclass(frozen=True, slots=True)
class Place:
    """A figure of a run, in hours or USD, and the share of the simulated runs with a smaller one, 0 to 1. `p10`, `p50`
    and `p90` are percentiles of the simulated runs."""

    value: float
    share: float
    p10: float
    p50: float
    p90: float


@dataclass(frozen=True, slots=True)
class PlanPlace:
    """The plan of a job from what was known at its start: `runs` simulated runs, of which the share `chance`
    succeeded. `cost` is None without prices. `hours` is among the simulated runs that succeeded, and None for a run
    that did not."""

    runs: int
    chance: float
    cost: Place | None
    hours: Place | None


def sentences(place: PlanPlace) -> list[str]:
    """The place of the run, one sentence each."""
    found = []
    if place.hours is not None:
        runs = "planned runs" if place.chance == 1 else "planned runs that succeed"
        found.append(_sentence("took", "longer", place.hours, lambda hours: span(hours * HOUR), runs))
    if place.cost is not None:
        found.append(_sentence("paid", "more", place.cost, money, "planned runs"))
    if place.hours is None or place.chance < 1:
        found.append(f"chance of success at the start: {percent(place.chance)}")
    return found


def _sentence(verb: str, more: str, place: Place, text: Callable[[float], str], runs: str) -> str:
    limits = ", ".join(f"{name} {text(value)}" for name, value in (("p10", place.p10), ("p90", place.p90)))
    return f"{verb} {text(place.value)}, {more} than {percent(place.share)} of the {runs} ({limits})"
