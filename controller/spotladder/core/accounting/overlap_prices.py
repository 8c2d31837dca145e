"""The prices without which nothing bounds the cost of `spec.overlap`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spotladder.core.model import Overlap


@dataclass(frozen=True, slots=True)
class MissingPrices:
    """Tiers without a known price. While there are `for_moves`, a planned move has no standby attempt; `for_hedges` are
    not started early beside a tier without capacity."""

    for_moves: tuple[str, ...] = ()
    for_hedges: tuple[str, ...] = ()


def missing_prices(overlap: Overlap | None, known: Mapping[str, bool]) -> MissingPrices:
    """`known` is whether the price of each tier is known, in the order of the job. The first tier is never a hedge."""
    if overlap is None:
        return MissingPrices()
    first, unpriced = next(iter(known), ""), tuple(name for name, has_price in known.items() if not has_price)
    hedges = tuple(name for name in unpriced if name != first)
    return MissingPrices(
        unpriced if overlap.max_duration is None else (), () if overlap.hedge_after is None else hedges
    )
