"""The runs by slack: equal to those that ask the policy, for the policies and the jobs that have a rule."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from spotladder.core.ages import age_class, ticks_of
from spotladder.core.model import AgeCounts, CapacityType, Outcomes, Price, Spell, Tier
from spotladder.core.policies.adaptive import Adaptive
from spotladder.core.policies.adaptive_tables import columns, knot_of, slack_at
from spotladder.core.policies.adaptive_zones import evidence
from spotladder.policies import registry
from spotladder.policies.adaptive_model import shipped
from tests.bench.ticks import by_slack, drive, fast
from tests.bench.ticks.capacity import Capacity
from tests.bench.ticks.job import NEVER, START, TickJob, TickTier
from tests.bench.ticks.slack_rules import slack_rule
from tests.core.policies.test_adaptive import misfit
from tests.searching import examples
from tests.sim.builders import HOUR, tick_job

BY_SLACK = ("adaptive", "uniform-progress")


def two_tiers(dice: Random, *, longest: int) -> TickJob:
    """A job of up to `longest` hours of work on a spot tier with capacity in spells, and on-demand: with little slack
    or much, overheads up to more than a tick, and ticks of several lengths."""
    tick, workers = dice.choice([600, 600, 300, 900]), dice.choice([1, 3])
    work = dice.randrange(1, longest + 1) * HOUR + dice.choice([0, 1, 599])
    deadline = work + dice.choice([0, 700, 1200, 2000, HOUR, 4 * HOUR, longest * HOUR // 2])
    ticks = -(-deadline // tick) + dice.choice([0, 100])
    flags: list[bool] = []
    spells = dice.choice([(1, 1, 2, 3), (1, 2, 3, 7, 20, 60), (4, 9, 30, 200)])
    while len(flags) < ticks:
        flags += [dice.random() < 0.5] * dice.choice(spells)
    spot = Tier("spot", -1, NEVER, CapacityType.SPOT, Price(dice.choice([0.3, 0.9731, 2.5, 3.0]), 3.06))
    backup = Tier("on-demand", -1, NEVER, CapacityType.ON_DEMAND, Price(dice.choice([3.0, 3.06]), 3.06))
    tiers = [TickTier(spot, tuple(flags[:ticks])), TickTier(backup)]
    dice.shuffle(tiers)
    return TickJob(tuple(tiers), work, dice.choice([0, 60, 180, 720, 1900]), deadline, tick, workers)


@pytest.mark.parametrize("name", BY_SLACK)
@settings(max_examples=examples(20), deadline=None, phases=(Phase.explicit, Phase.generate))
@given(seed=st.integers(0, 2**32))
def test_a_run_by_slack_is_equal_to_decide(name: str, seed: int) -> None:
    job, policy = two_tiers(Random(seed), longest=6), registry.by_name(name)
    expected = drive.run(job, policy)
    assert by_slack.run(job, policy) in {None, expected}
    assert fast.run(job, policy) == expected


@pytest.mark.parametrize("name", BY_SLACK)
@settings(max_examples=examples(40), deadline=None, phases=(Phase.explicit, Phase.generate))
@given(seed=st.integers(0, 2**32))
def test_a_run_by_slack_is_equal_to_one_that_asks_the_policy(name: str, seed: int) -> None:
    """The jobs are as long as those of the published benchmark, so that the oldest spells are forgotten."""
    job, policy = two_tiers(Random(seed), longest=48), registry.by_name(name)
    assert by_slack.run(job, policy) in {None, fast.ask(job, policy)}


@pytest.mark.parametrize("name", BY_SLACK)
def test_most_jobs_are_run_by_slack(name: str) -> None:
    policy = registry.by_name(name)
    found = [by_slack.run(two_tiers(Random(seed), longest=48), policy) for seed in range(40)]
    assert sum(1 for one in found if one is not None) >= 20


@settings(max_examples=examples(20), deadline=None, phases=(Phase.explicit, Phase.generate))
@given(seed=st.integers(0, 2**32))
def test_the_slack_of_each_tick_is_that_of_the_policy(seed: int) -> None:
    dice = Random(seed)
    job = two_tiers(dice, longest=48)
    spot, backup = sorted(job.tiers, key=lambda entry: entry.tier.capacity_type is CapacityType.ON_DEMAND)
    rule = slack_rule(Adaptive(shipped()), job, spot, backup)
    if rule is None:
        return
    terms = float(job.overhead), backup.tier.price.per_node_hour / spot.tier.price.per_node_hour
    for tick in range(0, -(-job.deadline // job.tick), 7):
        spells = observed(rule.capacity, tick, job.tick)
        has, ticks, remaining = spells[-1].available, ticks_of(spells[-1]), dice.randrange(job.work)
        held = evidence(shipped(), spells)
        assert held.trusted(has, ticks)
        limit = slack_at(knot_of(remaining), held.weights(has, ticks), columns(shipped(), terms, age_class(ticks))[has])
        found = rule.leaves(tick, remaining) if has else rule.waits(tick, remaining)
        assert found == pytest.approx(limit, abs=1e-7)


def observed(capacity: Capacity, tick: int, length: int) -> tuple[Spell, ...]:
    """The newest spells that a job has observed by this tick."""
    seen = sum(1 for change in capacity.changes if change <= tick)
    since = capacity.changes[seen - 1] if seen else 0
    newest = Spell(capacity.first is (seen % 2 == 0), START + since * length, START + tick * length)
    return (*capacity.closed(seen), newest)


def test_a_trace_on_which_the_model_is_not_trusted_is_not_run_by_slack() -> None:
    """Capacity comes and goes every tick, which no zone of the model explains."""
    job = tick_job([tick % 2 == 0 for tick in range(300)], work=20 * HOUR, deadline=50 * HOUR)
    policy = Adaptive(misfit())
    assert by_slack.run(job, policy) is None
    assert by_slack.run(job, Adaptive(shipped())) is not None
    assert fast.run(job, policy) == fast.ask(job, policy)


@pytest.mark.parametrize("name", BY_SLACK)
def test_other_jobs_are_not_run_by_slack(name: str) -> None:
    policy, job = registry.by_name(name), tick_job([True] * 24)
    spot, backup = job.tiers
    assert by_slack.run(job, policy) is not None
    fleet = Outcomes(capacity=AgeCounts((1,), (1,)))
    for tiers in (
        (spot, replace(spot, tier=replace(spot.tier, name="spot-b")), backup),
        (spot, replace(backup, available=(True,) * 24)),
        (replace(spot, prices=(1.0,) * 24), backup),
        (replace(spot, tier=replace(spot.tier, fleet=fleet)), backup),
        (replace(spot, tier=replace(spot.tier, price=Price(known=False))), backup),
        (spot,),
    ):
        assert by_slack.run(replace(job, tiers=tiers), policy) is None


def test_other_policies_are_not_run_by_slack() -> None:
    assert by_slack.run(tick_job([True] * 24), registry.by_name("greedy")) is None
