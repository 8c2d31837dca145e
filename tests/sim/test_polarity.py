"""Signs that a trace is read with the wrong polarity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from spotladder.sim.readers.polarity import Polarity, doubt
from spotladder.sim.trace import Trace, of_ticks

DAY = 144
"""Ticks of ten minutes."""


def windows(*spells: tuple[int, int], count: int = 1) -> list[Trace]:
    """Equal windows with these spells: whether there is capacity, and for how many ticks."""
    flags = np.array([bool(has) for has, ticks in spells for _ in range(ticks)])
    return [of_ticks("zone", flags, 600.0)] * count


DRY = windows((0, 3 * DAY))
RARE = windows((0, DAY), (1, 4), (0, 2 * DAY), (1, 2), (0, 20))
"""As in the scarcest of the public traces: two spells in three days."""

FREQUENT = windows(*[spell for _ in range(8) for spell in ((0, 60), (1, 1))])
"""The opposite of a zone with an outage of ten minutes every ten hours."""

SCARCE = windows((0, 2 * DAY), (1, DAY // 4))
STEADY = windows((1, 3 * DAY))


@pytest.mark.parametrize(
    ("traces", "certain"),
    [
        (DRY, True),
        (FREQUENT, True),
        (FREQUENT * 20, True),
        (RARE, False),
        (RARE * 20, False),
        (SCARCE, None),
        (STEADY, None),
        (DRY + STEADY, None),
    ],
)
def test_a_trace_whose_capacity_looks_like_outages_is_doubted(traces: Sequence[Trace], certain: bool | None) -> None:
    for one in Polarity:
        found = doubt(traces, one)
        assert (None if found is None else found.certain) is certain
        if found is not None:
            assert f"Give --polarity {one.opposite}, or --polarity {one} if" in found.sentence
