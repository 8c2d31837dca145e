"""The tick world: the rules of the published benchmark."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spotladder.core.model import TierChoice, TierView
from spotladder.sim.world.run import PolicyOscillates
from tests.bench.ticks import drive
from tests.sim.builders import HOUR, ON_DEMAND, SPOT, tick_job

TICK = 600


class By:
    """A policy that calls a function of the view."""

    def __init__(self, choose: Callable[[TierView], str | None]) -> None:
        self._choose = choose

    def choose(self, view: TierView) -> TierChoice:
        return TierChoice(self._choose(view))


STAY_ON_SPOT = By(lambda _view: "spot")
STAY_ON_DEMAND = By(lambda _view: "on-demand")
SPOT_IF_AVAILABLE = By(lambda view: "spot" if "spot" in view.available else "on-demand")


class TestRules:
    def test_the_last_tick_is_billed_pro_rata_and_each_start_has_an_overhead(self) -> None:
        result = drive.run(tick_job([True] * 24), STAY_ON_DEMAND)
        assert result.finished == 2 * HOUR + 180
        assert result.cost == pytest.approx(ON_DEMAND * (2 + 180 / HOUR))
        assert (result.met, result.evictions, result.attempts) == (True, 0, 1)

    def test_an_interruption_costs_the_overhead_again(self) -> None:
        result = drive.run(tick_job([True] * 6 + [False] * 3 + [True] * 15), STAY_ON_SPOT)
        assert (result.evictions, result.attempts) == (1, 1)
        assert result.finished == 2 * HOUR + 360 + 3 * TICK
        assert result.cost == pytest.approx(SPOT * (2 * HOUR + 360) / HOUR)

    def test_a_switch_costs_the_overhead_again(self) -> None:
        result = drive.run(tick_job([True] * 6 + [False] * 18), SPOT_IF_AVAILABLE)
        assert (result.evictions, result.attempts) == (1, 2)
        assert result.cost == pytest.approx(SPOT + ON_DEMAND * (1 + 360 / HOUR))

    def test_a_missed_deadline_ends_the_run(self) -> None:
        result = drive.run(tick_job([False] * 24), STAY_ON_SPOT)
        assert (result.met, result.cost, result.finished) == (False, 0.0, 4 * HOUR)

    def test_an_overhead_may_be_longer_than_a_tick(self) -> None:
        result = drive.run(tick_job([True] * 24, overhead=720), STAY_ON_DEMAND)
        assert result.finished == 2 * HOUR + 720


def test_the_error_for_an_oscillating_policy_names_it() -> None:
    restless = By(lambda view: "spot" if view.current == "on-demand" else "on-demand")
    with pytest.raises(PolicyOscillates, match="policy By moves the job back and forth at 0 s"):
        drive.run(tick_job([True] * 24), restless)
