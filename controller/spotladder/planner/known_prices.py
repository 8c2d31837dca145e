"""The recorded prices that a policy knows at the start of a simulation."""

from __future__ import annotations

from collections.abc import Sequence

from spotladder.core.model import Instant, PricePoint
from spotladder.sim.world.market import START


def known_prices(points: Sequence[PricePoint], began: Instant) -> tuple[PricePoint, ...]:
    """The prices that were recorded by the moment at which the simulated run began, at times of the simulation."""
    return tuple(PricePoint(START + point.since - began, point.usd) for point in points if point.since <= began)
