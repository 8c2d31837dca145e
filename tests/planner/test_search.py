"""The proposed settings: their order, maxFailures, provisionTimeout and commit interval."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.model import FOR_EVER, CapacityType, Price, Tier
from spotladder.planner import parallel
from spotladder.planner.plan import Question, TierFacts
from spotladder.planner.runs import Runs
from spotladder.planner.search import Curves, Proposal, advised
from spotladder.planner.simulated import Assumptions
from tests.planner.test_plan import ON_DEMAND, SPOT, question

BACKUP = TierFacts(ON_DEMAND, "b", evictions=0.0)
RUNS = 20


def spot(name: str, price: float, max_failures: int = FOR_EVER, **facts: Any) -> TierFacts:
    tier = Tier(name, max_failures, price=Price(price, 1.0), capacity_type=CapacityType.SPOT)
    return TierFacts(tier, name, **{"evictions": 0.1, **facts})


def found(asked: Question, assumptions: Assumptions | None = None, interval: float | None = None) -> Proposal | None:
    known = assumptions or Assumptions()
    return advised(asked, known, Runs(), range(RUNS), interval).proposal


def test_the_cheaper_tier_comes_first() -> None:
    better = found(question(spot("dear", 0.5), spot("cheap", 0.1), BACKUP))
    assert better is not None
    assert [facts.tier.name for facts in better.tiers] == ["cheap", "dear", "on-demand"]
    assert better.after.cost.mean < better.before.cost.mean
    assert (better.before.runs, better.after.runs) == (RUNS, RUNS)
    assert better.saving == pytest.approx(better.before.cost.mean - better.after.cost.mean)
    assert 0 < better.error < better.saving / 2, "the difference is not chance"


def test_a_low_max_failures_is_raised() -> None:
    better = found(question(spot("spot", 0.1, max_failures=0, evictions=0.3), BACKUP))
    assert better is not None
    assert better.tiers[0].tier.max_failures in (*range(3, 11), FOR_EVER)
    assert better.tiers[1] == BACKUP
    assert better.after.cost.mean < better.before.cost.mean


def test_the_advice_has_its_curves_also_if_nothing_is_proposed() -> None:
    asked = question(spot("cheap", 0.1, availability=0.999), spot("dear", 0.5), BACKUP)
    result = advised(asked, Assumptions(), Runs(), range(RUNS))
    assert result.proposal is None
    curves = result.curves
    assert list(curves.orders) == [("cheap", "dear", "on-demand"), ("dear", "cheap", "on-demand")]
    assert list(curves.max_failures) == [*range(11), FOR_EVER]
    assert curves.max_failures[0].usd == max(one.usd for one in curves.max_failures.values())
    (timeouts,) = curves.provision_timeouts.values()
    assert list(curves.provision_timeouts) == ["cheap"], "requests for the other tier always succeed"
    assert list(timeouts) == sorted({300.0, 600.0, 1200.0, 2400.0, 4800.0, asked.tiers[0].tier.provision_timeout})


def test_a_job_without_spot_capacity_has_no_curves() -> None:
    assert advised(question(BACKUP), Assumptions(), Runs(), range(2)).curves == Curves({}, {}, {})


def test_settings_that_are_good_are_kept() -> None:
    assert found(question(spot("spot", 0.1), BACKUP)) is None
    assert found(question(spot("spot", 0.1, evictions=0.0), BACKUP)) is None


def test_the_deadline_comes_before_the_cost() -> None:
    """A restart costs half an hour, so that a job with losses that stays on spot misses a deadline of 6 h."""
    asked = question(spot("spot", 0.1, evictions=0.4), BACKUP, max_duration=6 * 3600.0)
    better = found(asked, Assumptions(restart=1800.0))
    assert better is not None
    assert better.after.success > better.before.success
    assert better.tiers[0].tier.max_failures != FOR_EVER


def test_settings_with_which_no_run_succeeds_are_not_proposed() -> None:
    """The start takes six minutes, and 72 s are left for it."""
    assert found(question(spot("dear", 0.5), spot("cheap", 0.1), BACKUP, max_duration=5.02 * 3600.0)) is None


def test_a_provision_timeout_shorter_than_the_start_of_a_node_is_raised() -> None:
    hasty = replace(SPOT, provision_timeout=60.0)
    better = found(question(TierFacts(hasty, "a", evictions=0.0, ready_after=170.0), BACKUP))
    assert better is not None
    assert better.tiers[0].tier.provision_timeout == 360.0
    assert better.after.tiers[0].used == 1.0


def test_each_tier_has_its_own_limit() -> None:
    """The first tier often loses nodes and costs as much as the second, which never does."""
    asked = question(spot("rough", 0.1, evictions=2.0), spot("calm", 0.1, evictions=0.0), BACKUP)
    better = found(asked, Assumptions(restart=1800.0))
    assert better is not None
    limits = {facts.tier.name: facts.tier.max_failures for facts in better.tiers}
    assert next(iter(limits)) == "calm" or limits["rough"] == 0
    assert better.after.losses.mean <= 1


def test_a_provision_timeout_that_is_worth_it_is_proposed() -> None:
    """Requests always fail at first. Outages that end after an hour on average are worth waiting for."""
    hasty = spot("spot", 0.1, evictions=0.0, availability=0.0)
    better = found(question(hasty, BACKUP))
    assert better is not None
    assert better.tiers[0].tier.provision_timeout > hasty.tier.provision_timeout
    assert better.tiers[0].in_time == hasty.tier.provision_timeout
    assert better.after.cost.mean < better.before.cost.mean


def test_another_commit_interval_is_proposed_if_it_costs_less() -> None:
    asked = question(spot("spot", 0.1, evictions=0.4), BACKUP)
    rare = Assumptions(commit_interval=3600.0)
    better = found(asked, rare, 300.0)
    assert better is not None
    assert better.commit_interval == 300.0
    assert better.after.recomputed.mean < better.before.recomputed.mean
    assert found(question(spot("spot", 0.1, evictions=0.0), BACKUP), rare, 300.0) is None


@pytest.mark.parametrize("seed", [0, 7])
def test_the_same_seeds_give_the_same_proposal(seed: int) -> None:
    asked = question(spot("spot", 0.1, max_failures=0, evictions=0.3), BACKUP)
    known = Assumptions()
    first, again = (advised(asked, known, Runs(), range(seed, seed + RUNS)) for _ in range(2))
    assert first == again


def test_the_processors_change_the_time_and_not_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = question(spot("a", 0.1, max_failures=0, evictions=0.3), spot("b", 0.2, availability=0.7), BACKUP)
    found = []
    for number in (1, 3):
        monkeypatch.setattr(parallel, "processors", lambda number=number: number)
        runs = Runs()
        found.append((advised(asked, Assumptions(), runs, range(RUNS)), runs.simulated))
    assert found[0] == found[1]
