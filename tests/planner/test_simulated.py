"""The simulated estimate, compared with figures computed by hand, and its recommendations."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from spotladder.core.accounting.held_nodes import GIB
from spotladder.core.model import CapacityType, CommitSize, ExtraCosts, KnownCapacity, Price, Tier
from spotladder.errors import InvalidSpec
from spotladder.planner import simulated
from spotladder.planner.advice import LIMITS, interval, max_failures, with_limits
from spotladder.planner.assumptions import assumed
from spotladder.planner.plan import PlanInput, TierFacts
from spotladder.planner.simulated import (
    FOR_DEADLINES,
    Assumptions,
    Distribution,
    Forecast,
    expected_uninterrupted_usd,
    outcomes,
    simulator,
    summed,
    with_max_failures,
)
from spotladder.planner.tier_capacity import with_traces
from spotladder.sim.scenario import Scenario, simulate
from spotladder.sim.trace import Trace
from spotladder.sim.world.run import SimulationOutcome
from tests.planner.test_plan import ON_DEMAND, SPOT, given

FEW = 30
CALM = TierFacts(SPOT, "a", KnownCapacity(evictions=0.0))
BACKUP = TierFacts(ON_DEMAND, "b", KnownCapacity(evictions=0.0))


def forecast(asked: PlanInput, assumptions: Assumptions, runs: int, seed: int = 0) -> Forecast:
    """The job, simulated this many times."""
    return summed(asked, outcomes(asked, assumptions, range(seed, seed + runs)))


def test_without_losses_every_run_costs_the_same() -> None:
    """Two nodes are ready after 180 s; the restart takes 180 s, the work 5 h, the last commit 10 s."""
    found = forecast(given(CALM, BACKUP), Assumptions(), 5)
    assert (found.success, found.losses.mean, found.recomputed.mean) == (1.0, 0.0, 0.0)
    assert found.hours is not None
    assert found.hours.mean == pytest.approx(5 + (180 + 180 + 10) / 3600)
    assert found.cost.mean == pytest.approx(2 * 0.1 * (5 + 190 / 3600))
    assert list(found.cost.at.values()) == [pytest.approx(found.cost.mean)] * 4
    assert [(tier.name, tier.used) for tier in found.tiers] == [("spot", 1.0), ("on-demand", 0.0)]


def test_losses_occur_at_the_eviction_rate_of_the_tier() -> None:
    spot = TierFacts(
        Tier("spot", -1, price=Price(0.1, 1.0), capacity_type=CapacityType.SPOT), "a", KnownCapacity(evictions=0.25)
    )
    found = forecast(given(spot, hours=20), Assumptions(), FEW)
    assert found.success == 1.0
    assert 0.25 * 2 * 20 * 0.6 < found.losses.mean < 0.25 * 2 * 20 * 1.6
    assert 0 < found.recomputed.mean < 2


def test_a_tier_without_availability_falls_back() -> None:
    spot = TierFacts(SPOT, "a", KnownCapacity(evictions=0.1, availability=0.0))
    found = forecast(given(spot, BACKUP), Assumptions(), 10)
    assert [(tier.name, tier.used) for tier in found.tiers] == [("spot", 0.0), ("on-demand", 1.0)]


@pytest.mark.parametrize("policy", ["ordered", *sorted(FOR_DEADLINES)])
def test_if_all_spot_pools_are_always_closed_one_run_is_that_of_every_seed(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def counted(scenario: Scenario, name: str, seed: int) -> SimulationOutcome:
        made.append(seed)
        return simulate(scenario, name, seed)

    monkeypatch.setattr(simulated, "simulate", counted)
    never = TierFacts(
        replace(SPOT, max_failures=-1, provision_timeout=5.0),
        "a",
        KnownCapacity(evictions=0.4, closed=((0.0, math.inf),)),
    )
    asked = replace(given(never, BACKUP, max_duration=8 * 3600.0), policy=policy)
    run = simulator(asked, Assumptions())
    found = [run(seed) for seed in range(2)]
    assert (made, found) == ([0], found[:1] * 2)
    monkeypatch.setattr(TierFacts, "never_open", False)
    seeded = simulator(asked, Assumptions())
    results = [(one.cost, one.finished, one.attempts, one.path) for one in map(seeded, range(2))]
    assert results == [(one.cost, one.finished, one.attempts, one.path) for one in found]


def test_the_periods_in_which_a_pool_is_closed_are_assumed() -> None:
    facts = replace(CALM, known=KnownCapacity(0.0, closed=((0.0, 300.0), (3600.0, math.inf))))
    sentences = assumed(
        Assumptions(), given(facts, replace(BACKUP, known=KnownCapacity(0.0, closed=((0.0, math.inf),))))
    )
    assert "spot provides no new nodes from 0s to 5m and from 1h on, after the start of the job" in sentences
    assert "on-demand provides no new nodes from 0s on, after the start of the job" in sentences
    assert "requests for nodes on spot succeed at all other times: their capacity is unknown" in sentences


def test_heads_stored_commits_and_egress_are_a_part_of_the_cost() -> None:
    """The head runs from the launch on."""
    tier = replace(SPOT, head_per_hour=0.05, egress_per_gib=0.2)
    stored: dict[str, Any] = {"storage_per_gib_month": 0.73, "keep": 2}
    size = CommitSize(bytes=5 * GIB)
    calm = given(TierFacts(tier, "a", KnownCapacity(evictions=0.0)), BACKUP, **stored)
    found = forecast(calm, Assumptions(commit_size=size), 3)
    hours = 5 + (180 + 180 + 10) / 3600
    assert found.extra.heads == pytest.approx(0.05 * hours)
    assert found.extra.storage == pytest.approx(2 * 5 * 0.73 / 730 * hours, rel=0.05)
    assert found.extra.egress == 0.0
    nodes = 2 * 0.1 * (5 + 190 / 3600)
    assert found.cost.mean == pytest.approx(nodes + sum(asdict(found.extra).values()))
    assert found.tiers[0].cost.mean == pytest.approx(nodes)

    rough = given(TierFacts(replace(tier, max_failures=-1), "a", KnownCapacity(evictions=0.4)), BACKUP, **stored)
    found = forecast(rough, Assumptions(commit_size=size), 8)
    most = found.losses.mean * 5 * 0.2
    assert 0.5 * most < found.extra.egress <= most, "a program that is lost before its first commit reads nothing"
    extra = forecast(rough, Assumptions(), 3).extra
    assert extra == ExtraCosts(heads=extra.heads)


def test_the_run_on_demand_has_a_head_and_stores_commits() -> None:
    dear = replace(ON_DEMAND, head_per_hour=0.1)
    backup = TierFacts(dear, "b", KnownCapacity(evictions=0.0))
    asked = given(CALM, backup, storage_per_gib_month=0.73, keep=2)
    assert expected_uninterrupted_usd(asked, Assumptions()) == pytest.approx(5 * (2 * 1.0 + 0.1))
    size = Assumptions(commit_size=CommitSize(bytes=5 * GIB))
    more = 5 * 2 * 5 * 0.73 / 730
    assert expected_uninterrupted_usd(asked, size) == pytest.approx(5 * (2 * 1.0 + 0.1) + more)
    assert (
        expected_uninterrupted_usd(
            given(TierFacts(replace(SPOT, price=Price(0.1, 0.0)), "a", KnownCapacity(evictions=0.1))),
            Assumptions(),
        )
        is None
    )


def test_the_standard_error_of_a_mean_shrinks_with_the_number_of_runs() -> None:
    assert Distribution.of([1.0, 3.0]).error == pytest.approx(1.0)
    assert Distribution.of([1.0, 1.0, 1.0, 3.0, 3.0, 3.0]).error == pytest.approx(math.sqrt(1.2 / 6))
    assert Distribution.of([1.0]).error == 0.0


def test_a_higher_max_failures_keeps_the_job_on_spot_for_longer() -> None:
    none, five = (forecast(with_max_failures(given(), number), Assumptions(), 8) for number in (0, 5))
    assert none.tiers[0].hours.mean < five.tiers[0].hours.mean
    assert none.cost.mean > five.cost.mean


def test_the_runs_use_the_policy_of_the_job() -> None:
    """Spot capacity is often missing: `ordered` stays on demand after provisionTimeout, `greedy` returns to spot while
    the deadline allows it, and `on-demand` never uses spot."""
    tier = Tier("spot", -1, 600.0, CapacityType.SPOT, Price(0.1, 1.0))
    asked = given(
        TierFacts(tier, "a", KnownCapacity(evictions=0.3, availability=0.4)), BACKUP, max_duration=12 * 3600.0
    )
    ordered, greedy, dear = (
        forecast(replace(asked, policy=name), Assumptions(), 10) for name in ("ordered", "greedy", "on-demand")
    )
    assert greedy.success == dear.success == 1.0
    assert greedy.cost.mean < 0.9 * ordered.cost.mean
    assert ordered.cost.mean < dear.cost.mean
    assert dear.tiers[0].used == 0.0


def test_the_estimate_has_the_probability_of_meeting_the_deadline() -> None:
    """A deadline that leaves 30 minutes for starts and losses is met by some runs."""
    found = forecast(given(max_duration=5.5 * 3600), Assumptions(), FEW)
    assert 0.0 < found.success < 1.0
    low, high = found.success_range
    assert 0.0 <= low < found.success < high <= 1.0
    assert found.success_error == pytest.approx(math.sqrt(found.success * (1 - found.success) / FEW))
    assert found.hours is not None
    assert found.hours.at[99] <= 5.5 + 60 / 3600, "an attempt that is being drained may still finish"
    assert found.ends_within(found.success) == found.hours.values[-1]
    assert found.ends_within(found.success / 2) == found.hours.values[math.ceil(len(found.hours.values) / 2) - 1]
    assert found.ends_within(found.success + 0.5 / FEW) is None, "so many runs do not succeed"


def test_many_runs_on_a_short_record_do_not_make_its_probability_certain() -> None:
    """A day of record has room for two runs of twelve hours."""
    day = Trace("zone", np.array([0.0, 18.0]) * 3600, np.array([2, 0]), 24 * 3600.0)
    tier = with_traces(TierFacts(SPOT, "a"), (day,), 2)
    found = forecast(given(tier, max_duration=12 * 3600.0), Assumptions(), 40)
    low, high = found.success_range
    assert low < found.success < high
    assert high - low > 0.5


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (given(submitted_at=1000.0, deadline=900.0), "spec.deadline: is in the past"),
        (given(submitted_at=0.0, deadline=3600.0), "spec.deadline: leaves 1 h (expected at least the work, 5 h)"),
        (given(max_duration=3600.0), "spec.maxDuration: leaves 1 h"),
        (
            given(TierFacts(SPOT, "a", KnownCapacity(evictions=200.0)), BACKUP),
            "spec.tiers[0]: 4000 losses would be simulated",
        ),
        (replace(given(), hours=1e6), "spec.checkpoints.interval: 12000000 commits would be simulated"),
    ],
)
def test_jobs_that_cannot_be_simulated_are_rejected_with_the_cause(asked: PlanInput, said: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        forecast(asked, Assumptions(), 1)
    assert str(caught.value).startswith(said)


def test_the_advised_max_failures_saves_more_than_chance() -> None:
    """Spot costs a tenth and each loss three minutes, so that the job should stay there; without losses every value is
    as good as the job's own."""
    seeds = range(6)
    strict = with_max_failures(given(), 0)
    found = max_failures(strict, Assumptions(), outcomes(strict, Assumptions(), seeds), seeds)
    assert found is not None
    assert found.max_failures != 0
    assert found.saving > 2 * found.error
    assert found.usd[0] - found.usd[1] == pytest.approx(found.saving)
    calm = given(CALM, BACKUP)
    assert max_failures(calm, Assumptions(), outcomes(calm, Assumptions(), seeds), seeds) is None


def test_a_run_that_does_not_reach_a_limit_stands_for_all_higher_ones() -> None:
    seeds = range(4)
    found = with_limits(given(), Assumptions(), seeds)
    assert found == {limit: outcomes(with_max_failures(given(), limit), Assumptions(), seeds) for limit in LIMITS}
    assert found[0] != found[LIMITS[1]] != found[LIMITS[-1]]


def test_the_recommended_commit_interval_is_youngs() -> None:
    advice = interval(given(), 10.0)
    assert advice is not None
    between = 3600 / (5 / 6 * 2)
    assert advice.interval == pytest.approx(math.sqrt(2 * between * 10))
    assert advice.own_share is not None
    assert advice.share <= advice.own_share == pytest.approx(10 / 300 + 300 / (2 * between))
    assert interval(given(CALM, BACKUP), 10.0) is None


def test_the_estimate_names_the_unknown_price() -> None:
    unpriced = TierFacts(replace(SPOT, price=Price(known=False)), "a", KnownCapacity(evictions=0.1))
    said = "the price of spot is unknown: the simulated runs count it as $0.00"
    assert said in assumed(Assumptions(), given(unpriced, BACKUP))
    assert expected_uninterrupted_usd(given(unpriced, BACKUP), Assumptions()) is None, "nothing is saved at $0.00"
    assert said not in assumed(Assumptions(), given(CALM, BACKUP))


def test_the_estimate_says_that_the_discount_of_free_nodes_is_a_guess() -> None:
    free = TierFacts(replace(SPOT, price=Price(0.0, 0.0)), "a", KnownCapacity(evictions=0.1))
    said = "the closed formulas take spot to cost 10 % of on demand, whose price is unknown or 0"
    assert said in assumed(Assumptions(), given(free, BACKUP))
    assert said not in assumed(Assumptions(), given(CALM, BACKUP))
    assert forecast(given(free), Assumptions(), 2).cost.mean == 0.0


@pytest.mark.parametrize("policy", sorted(FOR_DEADLINES))
def test_commits_change_no_choice_without_a_deadline(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the runs need no decision after each commit, and are as fast as those of `ordered`."""
    asked = replace(given(), policy=policy)
    quick = outcomes(asked, Assumptions(), range(8))
    monkeypatch.setattr(simulated, "FOR_DEADLINES", frozenset())
    slow = outcomes(asked, Assumptions(), range(8))
    assert sum(one.decisions for one in slow) > 1.5 * sum(one.decisions for one in quick)
    assert [one.path for one in quick] == [one.path for one in slow]
    assert [one.cost for one in quick] == pytest.approx([one.cost for one in slow])


SPOT_FACTS: tuple[tuple[str, float, Any], ...] = (("spot-a", 0.1, 0.5), ("spot-b", 0.2, None))


@pytest.mark.parametrize("policy", sorted(FOR_DEADLINES))
@pytest.mark.parametrize("hours", [5.5, 12.0])
def test_commits_on_spot_capacity_change_no_choice(policy: str, hours: float, monkeypatch: pytest.MonkeyPatch) -> None:
    tiers = [
        TierFacts(
            Tier(name, -1, 600.0, CapacityType.SPOT, Price(price, 1.0), notice=30.0),
            name,
            KnownCapacity(evictions=0.3, availability=availability),
        )
        for name, price, availability in SPOT_FACTS
    ]
    asked = replace(given(*tiers, BACKUP, max_duration=hours * 3600.0), policy=policy)
    few = outcomes(asked, Assumptions(), range(3))
    monkeypatch.setattr(simulated, "_quiet_tiers", lambda _question: ())
    every = outcomes(asked, Assumptions(), range(3))
    assert sum(one.decisions for one in few) < sum(one.decisions for one in every)
    assert [replace(one, decisions=0) for one in few] == [replace(one, decisions=0) for one in every]


def test_every_commit_is_considered_where_the_fallback_is_spot_capacity() -> None:
    """Then progress may bring the job back from one spot tier to another."""
    spot = TierFacts(
        Tier("spot", -1, price=Price(0.1, 1.0), capacity_type=CapacityType.SPOT), "a", KnownCapacity(evictions=0.25)
    )
    assert simulated._quiet_tiers(replace(given(spot), policy="uniform-progress")) == ()
    assert simulated._quiet_tiers(replace(given(spot, BACKUP), policy="uniform-progress")) == ("spot",)
    assert simulated._quiet_tiers(replace(given(spot, BACKUP), policy="an entry point's")) == ()
