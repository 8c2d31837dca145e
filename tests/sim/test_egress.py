"""Egress in the simulated world: what a job pays for the newest commit in another region, and what its policy knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from spotladder.core.accounting import GIB
from spotladder.core.model import CommitSize, Price, TierChoice, TierView
from spotladder.core.policies import Policy
from spotladder.policies import registry
from spotladder.sim.world.run import SimulationOutcome, run
from spotladder.sim.world.zone import ZonePlan
from tests.sim.builders import HOUR, market, runner, trace, zone

Prices = Mapping[tuple[str, str], float]

BOTH_WAYS: Prices = {("east", "west"): 0.02, ("west", "east"): 0.02}


def one_move(prices: Prices, *, steps: tuple[tuple[float, int], ...] = ((0, 1), (1000, 0))) -> SimulationOutcome:
    """A job that has spot capacity in the east at first, and falls back to the west. Its commits have 10 GiB."""
    here = market(zone("spot", *steps, region="east"), zone("on-demand", price=3.0, region="west"))
    job = runner(here, max_failures=0, commit_size=CommitSize(2, 10 * GIB))
    job.backend.egress = prices
    return run(here, [job], 100 * HOUR)[0]


def test_a_start_pays_for_a_commit_of_another_region() -> None:
    found = one_move(BOTH_WAYS)
    assert (found.succeeded, found.extra.egress) == (True, pytest.approx(0.2))
    assert found.cost == pytest.approx(sum(found.tier_usd.values()) + 0.2)


def test_the_price_is_that_from_the_region_of_the_commit_to_the_region_of_the_tier() -> None:
    assert one_move({("east", "west"): 0.0, ("west", "east"): 0.02}).extra.egress == 0
    assert one_move({("east", "west"): 0.05, ("west", "east"): 0.02}).extra.egress == pytest.approx(0.5)


class WithoutEgress:
    """The policy `adaptive` with outlooks whose moves cost no egress."""

    def choose(self, view: TierView) -> TierChoice:
        outlooks = tuple(replace(one, move=replace(one.move, egress=0.0)) for one in view.outlooks)
        return registry.by_name("adaptive").choose(replace(view, outlooks=outlooks))


def in_turns(policy: Policy, gib: float, prices: Prices) -> SimulationOutcome:
    """A job of 20 h between two spot zones that have capacity in turns, six hours each."""
    turns = [(6.0 * HOUR * turn, turn % 2) for turn in range(12)]
    spots = [
        ZonePlan(region, trace(*((at, has ^ first) for at, has in turns)), Price(1.0, 3.0), 120.0, region=region)
        for region, first in (("east", 1), ("west", 0))
    ]
    here = market(*spots, zone("on-demand", price=3.0, provision_delay=120.0, region="east"))
    limits = {"max_duration": 50.0 * HOUR, "work": 20.0 * HOUR, "overhead": 300.0}
    size = CommitSize(1, round(gib * GIB))
    job = runner(here, policy=policy, work=20 * HOUR, commit_size=size, spec=limits)
    job.backend.egress, job.backend.probed = prices, True
    return run(here, [job], 60 * HOUR)[0]


def reads(found: SimulationOutcome, gib: float) -> int:
    """How often the job has read a commit of another region, at 0.02 USD a GiB."""
    return round(found.extra.egress / (0.02 * gib))


def test_adaptive_moves_less_if_a_move_costs_egress() -> None:
    """A move costs 20 USD, and six hours of spot capacity save 12."""
    knows = in_turns(registry.by_name("adaptive"), 1000.0, BOTH_WAYS)
    unaware = in_turns(WithoutEgress(), 1000.0, BOTH_WAYS)
    assert (knows.succeeded, unaware.succeeded) == (True, True)
    assert reads(knows, 1000.0) == 0
    assert reads(unaware, 1000.0) == 3
    assert knows.cost < unaware.cost - 20.0


def test_adaptive_pays_egress_that_a_move_saves() -> None:
    knows = in_turns(registry.by_name("adaptive"), 50.0, BOTH_WAYS)
    assert (knows.succeeded, reads(knows, 50.0)) == (True, 3)
    assert knows.node_hours["on-demand"] == 0
