"""The capacity of a tier in a simulated run: from statistics, and from traces."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spotladder.core.model import Exhausted, KnownCapacity
from spotladder.errors import InvalidSpec
from spotladder.planner import tier_capacity
from spotladder.planner.assumptions import assumed, observed, poisson_range
from spotladder.planner.plan import TierFacts
from spotladder.planner.simulated import Assumptions
from spotladder.planner.tier_capacity import lifetimes, with_traces
from spotladder.sim.spells import spells
from spotladder.sim.trace import Trace, of_ticks
from tests.planner.test_plan import ON_DEMAND, SPOT, given
from tests.planner.test_simulated import forecast

HOUR = 3600.0
BACKUP = TierFacts(ON_DEMAND, "b", KnownCapacity(evictions=0.0))


def facts(**fields: Any) -> TierFacts:
    return TierFacts(SPOT, "a", KnownCapacity(**{"evictions": 0.5, **fields}))


def drawn(tier: TierFacts, workers: int, horizon: float, seed: int) -> Trace:
    """The capacity of one tier that has no others beside it."""
    (found,) = tier_capacity.drawn([tier], workers, horizon, seed)
    return found


def periods(*hours: tuple[bool, float], prices: tuple[float, ...] | None = None, nodes: int = 2) -> Trace:
    """A trace with capacity or without it for each of these numbers of hours."""
    times = np.cumsum([0.0, *(length * HOUR for _, length in hours[:-1])])
    counts = np.array([nodes if has else 0 for has, _ in hours])
    end = HOUR * sum(length for _, length in hours)
    return Trace("zone", times, counts, end, prices=None if prices is None else np.array(prices))


def test_the_distribution_of_losses_has_mean_one_and_many_short_spells() -> None:
    found = lifetimes()
    assert found.mean() == pytest.approx(1.0)
    assert (found < 0.5).mean() > 0.5


def test_few_observations_give_a_wide_range_of_rates_and_a_given_rate_gives_none() -> None:
    """The numbers of lost nodes in 1,000 hours, over the runs."""

    def spread(observed: float, evictions: float | None = 0.5) -> float:
        tier = facts(observed=observed, evictions=evictions)
        lost = [len(drawn(tier, 1, 1000 * HOUR, seed).times) / 2 for seed in range(1, 60)]
        return float(np.std(lost) / np.mean(lost))

    assert spread(math.inf) == pytest.approx(spread(1e6), rel=0.2)
    assert spread(4.0) > 3 * spread(1e6)
    assert spread(2.0, evictions=0.0) > 1, "no loss in two hours does not mean that there are none"
    assert spread(0.0, evictions=None) > 3 * spread(1e6), "no history makes the range wide, too"


def test_a_tier_with_a_trace_has_its_capacity_from_the_moment_of_the_seed_on() -> None:
    trace = periods((True, 3), (False, 1), (True, 2), (False, 4))
    tier = with_traces(facts(), (trace,), 2)
    begins = drawn(tier, 2, 30 * HOUR, 0)
    assert (begins.times / HOUR).tolist() == [0, 3, 4, 6, 10, 13, 14, 16, 20, 23, 24, 26]
    assert begins.nodes.tolist() == [2, 0, 2, 0] * 3
    for seed in range(1, 20):
        found = drawn(tier, 2, 100 * HOUR, seed)
        assert found.times[0] == 0.0
        assert (np.diff(found.times) > 0).all()
    assert (drawn(tier, 2, 30 * HOUR, 5).times == drawn(tier, 2, 30 * HOUR, 5).times).all()


def test_a_run_is_beyond_a_short_record_more_often() -> None:
    """The record has capacity for 3 h and none for 2 h in turns. A run that is beyond it ends with a longer spell."""

    def beyond(repeated: int) -> float:
        tier = with_traces(facts(), (periods(*[(True, 3), (False, 2)] * repeated),), 2)
        last = [spells(drawn(tier, 2, 100 * HOUR, seed), 2)[-1] for seed in range(1, 100)]
        return float(np.mean([one.until - one.since > 4 * HOUR for one in last]))

    assert 2 * beyond(100) < beyond(10) < 0.9


def test_a_run_from_now_on_is_beyond_a_record_more_often_if_little_of_it_was_like_now() -> None:
    """The record is 50 times as long as the run, but a tenth of it is without capacity, as now."""
    outages = with_traces(facts(), (periods(*[(True, 9), (False, 1)] * 20),), 2)

    def beyond(tier: TierFacts) -> float:
        last = [spells(drawn(tier, 2, 4 * HOUR, seed), 2)[-1] for seed in range(1, 200)]
        return float(np.mean([not one.available and one.until - one.since > 1.01 * HOUR for one in last]))

    assert beyond(outages) < 0.05
    assert beyond(replace(outages, until_now=True)) > 0.1
    said = "\n".join(assumed(Assumptions(), given(replace(outages, until_now=True), BACKUP)))
    assert "h of trace like now do not show all that can happen" in said


@pytest.mark.parametrize("available", [True, False])
def test_a_trace_that_never_changes_may_change_in_a_run(available: bool) -> None:
    """After 10 h without a change, a run of 20 h has one in about half of the cases."""
    tier = with_traces(facts(), (periods((available, 10)),), 2)
    found = [drawn(tier, 2, 20 * HOUR, seed) for seed in range(1, 101)]
    assert {bool(one.available(2)[0]) for one in found} == {available}
    assert 25 < sum(len(spells(one, 2)) > 1 for one in found) < 75
    said = "\n".join(assumed(Assumptions(), given(tier, BACKUP, hours=2000)))
    assert "10 h of trace do not show all that can happen in 20000 h" in said


def test_a_gang_that_never_had_its_nodes_is_offered_as_many_as_the_trace_has() -> None:
    """These cost money while they wait for the others. No nodes, and all of them, are beyond the record."""
    some = replace(periods((True, 6), (False, 6)), nodes=np.array([3, 1]))
    found = [drawn(with_traces(facts(), (some,), 4), 4, 20 * HOUR, seed) for seed in range(1, 30)]
    assert {*np.concatenate([one.nodes for one in found]).tolist()} == {0, 1, 3, 4}


@pytest.mark.parametrize(("ticks_with", "ticks_without"), [(5, 1), (1, 5), (1, 20)])
def test_runs_have_capacity_for_longer_than_their_trace_as_often_as_for_shorter(
    ticks_with: int, ticks_without: int
) -> None:
    flags = np.array(([True] * ticks_with + [False] * ticks_without) * 40)
    tier = with_traces(facts(), (of_ticks("z", flags, 600.0),), 2)
    shares = [drawn(tier, 2, 50 * HOUR, seed).share(2) for seed in range(1, 400)]
    assert np.median(shares) == pytest.approx(flags.mean(), rel=0.05)


@pytest.mark.parametrize(
    ("trace", "runs"),
    [
        (periods((True, 48)), 40),
        (periods((False, 48)), 12),
        (periods((True, 1), (False, 1)), 12),
        (periods((True, 48), (False, 1)), 40),
    ],
    ids=["capacity", "no capacity", "ends in an outage", "ends in an outage after two days"],
)
def test_a_trace_that_says_little_gives_a_wide_range(trace: Trace, runs: int) -> None:
    tier = with_traces(facts(), (trace,), 2)
    asked = given(tier, hours=8, exhausted=Exhausted.RESTART, max_duration=20 * HOUR)
    found = forecast(asked, Assumptions(), runs)
    assert 0 < found.success < 1
    assert found.cost.at[99] > 1.02 * found.cost.values[0]


def test_a_run_from_now_on_goes_on_like_the_hours_before_it_in_the_record() -> None:
    """Two days of capacity with short outages follow two of the reverse, and the trace ends on a day like the first."""
    calm, busy = [(True, 3), (False, 0.5)] * 14, [(True, 0.5), (False, 3)] * 14
    tier = with_traces(facts(), (periods(*calm, *busy, *calm[:-1]),), 2, until_now=True)
    found = [drawn(tier, 2, 8 * HOUR, seed) for seed in range(1, 100)]
    assert np.mean([one.nodes[0] == 2 for one in found]) > 0.95
    assert np.median([one.share(2) for one in found]) > 0.7
    assert np.mean([drawn(replace(tier, until_now=False), 2, 8 * HOUR, seed).share(2) for seed in range(99)]) < 0.7


def test_an_outage_that_the_record_never_saw_end_ends_in_some_runs() -> None:
    tier = with_traces(facts(), (periods((True, 48), (False, 1)),), 2, until_now=True)
    shares = [drawn(tier, 2, 10 * HOUR, seed).share(2) for seed in range(1, 100)]
    assert 0.2 < np.mean([share > 0 for share in shares]) < 0.99


def test_a_trace_gives_the_rate_and_the_price_to_the_formulas() -> None:
    trace = periods((True, 3), (False, 1), (True, 2), (False, 4), prices=(0.2, 0.4, 0.2, 0.4))
    found = with_traces(facts(availability=0.1), (trace,), 2)
    assert found.known.evictions == pytest.approx(2 / (5 * 2))
    assert found.known.observed == pytest.approx(10.0)
    assert found.tier.price.per_node_hour == pytest.approx(0.3)
    assert found.tier.price.on_demand == 1.0
    assert with_traces(facts(), (periods((False, 5)),), 2).known.evictions == 0.0
    with pytest.raises(InvalidSpec, match="on-demand is on-demand, and its nodes are never lost: name a spot tier"):
        with_traces(BACKUP, (trace,), 2)


def test_a_run_pays_the_prices_of_the_trace() -> None:
    cheap = periods((True, 100), prices=(0.05,))
    asked = given(with_traces(facts(), (cheap,), 2), BACKUP)
    found = forecast(asked, Assumptions(), 3)
    assert found.tiers[0].cost.mean == pytest.approx(found.tiers[0].hours.mean * 2 * 0.05)
    assert found.cost.mean == pytest.approx(found.tiers[0].cost.mean)


@pytest.mark.parametrize("until_now", [False, True])
def test_capacity_that_is_lost_together_in_the_traces_is_lost_together_in_the_runs(until_now: bool) -> None:
    """A zone that has capacity exactly when the other has none, and the same with an hour more of history."""
    flags = np.random.default_rng(1).random(300) < 0.5
    records = [of_ticks(name, have, 600.0) for name, have in (("a", flags), ("b", ~flags))]
    records[1] = replace(records[1], times=np.append(0.0, records[1].times[1:] + HOUR), end=records[1].end + HOUR)
    tiers = [
        with_traces(replace(facts(), tier=replace(SPOT, name=one.zone)), (one,), 2, until_now=until_now)
        for one in records
    ]
    moments = np.arange(0.0, 20 * HOUR, 60.0)
    runs = [tier_capacity.drawn(tiers, 2, 20 * HOUR, seed) for seed in range(30)]
    same = [np.mean(one.at(moments) == other.at(moments)) for one, other in runs]
    assert np.median(same) == 0.0
    assert np.mean(same) < 0.2, "all zones together are beyond the record, too"


def test_observations_and_assumptions_name_their_source() -> None:
    asked = given(facts(observed=20.0), BACKUP)
    assert observed(asked) == ["spot: 10 losses in 20 node-hours, 0.5 per node and hour (95 %: 0.24 to 0.92)"]
    said = "\n".join(assumed(Assumptions(), asked))
    assert "each run draws its loss rate from those that the observed node-hours allow (20 of spot)" in said
    assert "a request that fails waits 1h beyond provisionTimeout" in said
    trace = replace(of_ticks("z", np.array([True, True, False, True]), 600.0), source="z.json")
    traced = given(with_traces(facts(), (trace,), 2), BACKUP)
    (sentence,) = observed(traced)
    assert sentence.startswith(
        "spot: 0.667 h of z.json, 75 % of them with nodes for all workers, which were lost 1 time"
    )
    said = "\n".join(assumed(Assumptions(), traced))
    assert "each run begins at a random moment of the traces of spot" in said
    assert "public spot traces" not in said


@pytest.mark.parametrize(("count", "low", "high"), [(0, 0.0, 3.69), (1, 0.03, 5.57), (10, 4.80, 18.39)])
def test_the_interval_of_a_count_is_that_of_the_published_tables(count: int, low: float, high: float) -> None:
    assert poisson_range(count) == (pytest.approx(low, abs=0.03), pytest.approx(high, rel=0.01))
