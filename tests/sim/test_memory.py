"""The memory of a run does not grow with the length of its traces."""

from __future__ import annotations

import numpy as np
import pytest

from spotladder.core.model import Price
from spotladder.sim.trace import UNLIMITED
from spotladder.sim.world.zone import Zone, ZonePlan
from tests.sim.builders import HOUR
from tests.sim.memory import WEEK, changing, peak


def test_a_run_needs_no_more_memory_with_a_trace_that_is_100_times_as_long() -> None:
    assert peak(changing(100 * WEEK)) < 1.25 * peak(changing(WEEK))


@pytest.mark.parametrize("priced", [False, True])
def test_a_zone_is_the_same_during_a_run_of_limited_duration(priced: bool) -> None:
    plan = ZonePlan("spot", changing(WEEK, priced=priced), Price(1.0, 3.0))
    everything, limited = Zone(plan), Zone(plan, 20 * HOUR)
    moments = np.arange(0.0, 20 * HOUR, 300.0).tolist()
    for now in moments:
        assert (limited.nodes(now), limited.price(now)) == (everything.nodes(now), everything.price(now))
        assert limited.cost(0.0, now) == pytest.approx(everything.cost(0.0, now))
        after = everything.next_change(now)
        assert limited.next_change(now) == (after if after <= 20 * HOUR else np.inf)
    assert {limited.nodes(now) for now in moments} == {0, UNLIMITED}
    assert len(limited.times) < len(everything.times)
