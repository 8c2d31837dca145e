"""Which tiers without a price leave the cost of an overlap without a bound."""

from __future__ import annotations

import pytest

from spotladder.core.accounting.overlap_prices import MissingPrices, missing_prices
from spotladder.core.model import Overlap

LIMITED = Overlap(max_duration=60.0)
HEDGING = Overlap(max_duration=60.0, budget=1.0, hedge_after=60.0)


@pytest.mark.parametrize(
    ("overlap", "known", "missing"),
    [
        pytest.param(None, {"spot": False}, MissingPrices(), id="no overlap"),
        pytest.param(Overlap(), {"spot": True}, MissingPrices(), id="all prices are known"),
        pytest.param(Overlap(), {"spot": False, "on-demand": True}, MissingPrices(("spot",)), id="no other bound"),
        pytest.param(LIMITED, {"spot": True, "on-demand": False}, MissingPrices(), id="a maximum duration"),
        pytest.param(
            HEDGING, {"spot": False, "on-demand": False}, MissingPrices((), ("on-demand",)), id="the first is no hedge"
        ),
        pytest.param(Overlap(), {}, MissingPrices(), id="no tiers"),
    ],
)
def test_the_prices_that_an_overlap_lacks(
    overlap: Overlap | None, known: dict[str, bool], missing: MissingPrices
) -> None:
    assert missing_prices(overlap, known) == missing
