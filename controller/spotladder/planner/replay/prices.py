"""The prices that a tier had during a recorded run, as the controller has written them down for all jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spotladder.core.durations import format_duration
from spotladder.core.model import Instant, PricePoint, Seconds
from spotladder.core.price_history import SPACING
from spotladder.planner.known_prices import known_prices
from spotladder.sim.world.market import START


@dataclass(frozen=True, slots=True)
class RecordedPrices:
    """`changes` are (seconds after the start of the run, USD per node-hour), ascending, from 0 on. `known` are the
    prices that the policy of the job knew at the start, at times of the simulation. `missing` is how long the run had
    lasted at the first recorded price, which is assumed for this time, too."""

    changes: tuple[tuple[Seconds, float], ...]
    known: tuple[PricePoint, ...]
    missing: Seconds = 0.0


def prices_of_run(points: Sequence[PricePoint], began: Instant) -> RecordedPrices | None:
    """The prices in a run that began then; None if none are recorded."""
    if not points:
        return None
    known = known_prices(points, began)
    first = known[-1].usd if known else points[0].usd
    later = ((point.since - began, point.usd) for point in points if point.since > began)
    missing = max(0.0, points[0].since - began)
    return RecordedPrices(((0.0, first), *later), known or (PricePoint(START, first),), missing)


def assumed_prices(tier: str, prices: RecordedPrices) -> list[str]:
    """Sentences about the prices of this tier."""
    usd = [price for _at, price in prices.changes]
    found = []
    if len(set(usd)) > 1:
        found.append(f"the price of {tier} changes as recorded: ${min(usd):.4g} to ${max(usd):.4g} per node-hour")
    if prices.missing > SPACING:
        span = format_duration(round(prices.missing))
        found.append(f"the price of {tier} in the first {span} of the run is not recorded: it is the next one")
    return found
