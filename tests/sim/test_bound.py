"""The oracle of the simulated world: exact in small worlds, and never more expensive than a policy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from spotladder.core.accounting import GIB
from spotladder.core.model import FOR_EVER, CapacityType, CommitSize, JobSpec, Price, Tier
from spotladder.errors import InvalidSpec
from spotladder.sim.scenario import Scenario, simulate
from spotladder.sim.world.program import ProgramPlan
from spotladder.sim.world.zone import ZonePlan
from tests.bench import bound, oracle
from tests.searching import examples
from tests.sim.builders import HOUR, trace

POLICIES = ("ordered", "on-demand", "greedy", "uniform-progress", "adaptive")
FAST: dict[str, Any] = {"provision_delay": 120.0, "boot": 60.0}


def scenario(*plans: ZonePlan, workers: int = 1, within: float | None = 4 * HOUR, **program: Any) -> Scenario:
    """A job of one hour on these zones; those called on-demand are on-demand capacity."""
    tiers = tuple(
        Tier(
            plan.name,
            FOR_EVER,
            600.0,
            CapacityType.ON_DEMAND if plan.name.startswith("on-demand") else CapacityType.SPOT,
            plan.price,
            notice=plan.notice,
        )
        for plan in plans
    )
    spec = JobSpec(tiers, workers=workers, max_duration=within, stall_timeout=1e9)
    program_plan = ProgramPlan(
        **{"work": HOUR, "restart": 180.0, "commit_interval": 300.0, "commit_time": 10.0, **program}
    )
    return Scenario(spec, program_plan, plans, {tier.name: tier.name for tier in tiers})


def spot(*steps: tuple[float, int], price: float = 1.0, **more: Any) -> ZonePlan:
    return ZonePlan("spot", trace(*steps) if steps else None, Price(price, 3.0), **{**FAST, **more})


ON_DEMAND = ZonePlan("on-demand", None, Price(3.0, 3.0), **FAST)
START = 60 + 180
"""Billed seconds of a start."""


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("zones", [(spot(), ON_DEMAND), (ON_DEMAND,), (spot((0, 0)), ON_DEMAND)])
def test_in_a_world_without_interruptions_it_is_as_cheap_as_the_best_policy(
    zones: tuple[ZonePlan, ...], workers: int
) -> None:
    world = scenario(*zones, workers=workers)
    least = oracle.run(world)
    assert least.cost == pytest.approx(min(simulate(world, name, 0).cost for name in ("ordered", "on-demand")))
    assert least.succeeded
    assert least.finished == pytest.approx(120 + START + HOUR + 10)


def test_it_requests_nodes_of_a_zone_that_closes_before_that() -> None:
    """On-demand capacity costs three times as much."""
    waits = oracle.run(scenario(spot(closed=((0, 1800),)), ON_DEMAND))
    assert waits.finished == pytest.approx(1800 + 120 + START + HOUR + 10)
    keeps = oracle.run(scenario(spot(closed=((600, math.inf),)), ON_DEMAND))
    assert keeps.node_hours["on-demand"] == 0
    never = oracle.run(scenario(spot(closed=((0, math.inf),)), ON_DEMAND))
    assert never.node_hours["spot"] == 0


def test_it_pays_for_egress_only_if_that_is_cheaper() -> None:
    zones = spot((0, 1), (1800, 0), region="east"), replace(ON_DEMAND, region="west")
    world = replace(scenario(*zones, commit_size=CommitSize(1, GIB)), egress={("east", "west"): 0.1})
    assert oracle.run(world).egress == pytest.approx(0.1)
    dear = replace(world, egress={("east", "west"): 9.0})
    assert (oracle.run(dear).egress, oracle.run(dear).node_hours["spot"]) == (0, 0)


def test_a_deadline_out_of_proportion_to_the_work_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="expected a deadline of 20000 times the work or less: set an earlier one"):
        oracle.run(scenario(ON_DEMAND, within=40_000.0, work=1))


def random_zone(name: str, dice: Random) -> ZonePlan:
    steps, at = [(0.0, dice.randint(0, 3))], 0.0
    while at < 8 * HOUR:
        at += dice.choice([60.0, 600.0, 1800.0, 5000.0, dice.uniform(1, 3000)])
        steps.append((at, dice.randint(0, 4)))
    prices = [dice.choice([0.5, 1.0, 2.5]) for _ in steps] if dice.random() < 0.4 else None
    return ZonePlan(
        name,
        trace(*steps, prices=prices),
        Price(1.0, 3.0),
        provision_delay=dice.choice([0.0, 45.0, 120.0]),
        boot=dice.choice([0.0, 60.0, 200.5]),
        notice=dice.choice([0.0, 30.0, 120.0, 900.0]),
        closed=dice.choice([(), ((700.0, 2000.0), (5000.0, math.inf))]),
        region=dice.choice(["east", "west"]),
    )


def random_world(dice: Random) -> Scenario:
    zones = [random_zone(name, dice) for name in ("spot-a", "spot-b")[: dice.randint(1, 2)]]
    world = scenario(
        *zones,
        replace(ON_DEMAND, boot=dice.choice([0.0, 60.0]), region=dice.choice(["east", "west"])),
        workers=dice.randint(1, 3),
        within=dice.choice([None, 2 * HOUR, 5.5 * HOUR]),
        restart=dice.choice([0.0, 33.0, 180.0]),
        commit_time=dice.choice([0.0, 10.0, 200.0]),
        commit_interval=dice.choice([60.0, 300.0]),
        commit_size=dice.choice([CommitSize(), CommitSize(1, GIB)]),
    )
    prices = {("east", "west"): 0.02, ("west", "east"): 0.05}
    return replace(world, egress=prices, probed=dice.random() < 0.5)


@pytest.fixture(scope="module")
def coarse_grid() -> Iterator[None]:
    """Round more than usual, which is faster."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bound, "MOST_STATES", 500_000)
        yield


@pytest.mark.usefixtures("coarse_grid")
@settings(max_examples=examples(12), deadline=None, phases=(Phase.explicit, Phase.generate))
@given(seed=st.integers(0, 2**32))
def test_no_policy_is_cheaper_than_the_oracle(seed: int) -> None:
    world = random_world(Random(seed))
    start = seed % 2
    least = oracle.run(world, start)
    for name in POLICIES:
        found = simulate(world, name, start)
        if found.succeeded:
            assert least.succeeded, name
            assert least.cost <= found.cost + 1e-6, name


CELL = 600


def small_world(dice: Random) -> Scenario:
    """Cells of ten minutes. A start takes one of them, and a commit takes one or none."""
    zones = []
    for name in ("spot-a", "spot-b"):
        steps = [(CELL * cell, int(dice.random() < 0.6)) for cell in range(14)]
        prices = [dice.choice([0.5, 1.0, 4.0]) for _ in steps]
        zones.append(ZonePlan(name, trace(*steps, prices=prices), boot=CELL))
    fallback = ZonePlan("on-demand", None, Price(3.0, 3.0), boot=CELL)
    commit_time = dice.choice([0.0, CELL])
    return scenario(
        *zones, fallback, within=dice.choice([8, 10, 12]) * CELL, restart=0.0, commit_time=commit_time, work=3 * CELL
    )


def searched(world: Scenario) -> float:
    """The lowest cost, found by trying every request and every stop at the beginning of a cell."""
    cells, commit = round((world.spec.max_duration or 0) / CELL), round(world.program.commit_time / CELL)
    plans = world.zones

    def has(plan: ZonePlan, cell: int) -> bool:
        return plan.trace is None or bool(plan.trace.nodes[cell])

    def usd(plan: ZonePlan, cell: int) -> float:
        prices = None if plan.trace is None else plan.trace.prices
        return (plan.price.per_node_hour if prices is None else float(prices[cell])) * CELL / HOUR

    @cache
    def best(cell: int, left: int) -> float:
        if cell >= cells:
            return 0.0 if cell == cells and not left else math.inf
        if not left:
            return 0.0
        costs = [best(cell + 1, left)]
        for plan in plans:
            usable = range(cell, next((end for end in range(cell, 99) if end >= 14 or not has(plan, end)), cell))
            for trained in range(1, left + 1):
                stops = cell + 1 + trained
                if stops + commit <= min(usable.stop, cells):
                    paid = sum(usd(plan, at) for at in range(cell, stops + commit))
                    costs.append(paid + best(stops + commit, left - trained))
        return min(costs)

    return best(0, 3)


@pytest.mark.usefixtures("coarse_grid")
@settings(max_examples=examples(25), deadline=None, phases=(Phase.explicit, Phase.generate))
@given(seed=st.integers(0, 2**32))
def test_it_is_as_cheap_as_a_search_over_all_choices(seed: int) -> None:
    world = small_world(Random(seed))
    found, least = oracle.run(world), searched(world)
    assert found.succeeded == (least < math.inf)
    if found.succeeded:
        assert found.cost == pytest.approx(least)
        assert found.finished <= (world.spec.max_duration or 0)
