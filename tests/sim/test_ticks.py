"""The tick world: the rules of the published benchmark, and the fast path compared with the real `decide`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, replace
from random import Random
from zlib import crc32

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from spotladder.core.model import CapacityType, Price, Tier, TierChoice, TierView
from spotladder.core.policies import Policy
from spotladder.errors import InvalidSpec
from spotladder.policies import registry
from spotladder.sim.oscillation import PolicyOscillates
from tests.bench.ticks import drive, fast
from tests.bench.ticks.job import NEVER, TickJob, TickResult, TickTier
from tests.searching import examples
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


@pytest.mark.parametrize("run", [drive.run, fast.run])
class TestRules:
    def test_the_last_tick_is_billed_pro_rata_and_each_start_has_an_overhead(
        self, run: Callable[[TickJob, By], TickResult]
    ) -> None:
        result = run(tick_job([True] * 24), STAY_ON_DEMAND)
        assert result.finished == 2 * HOUR + 180
        assert result.cost == pytest.approx(ON_DEMAND * (2 + 180 / HOUR))
        assert (result.met, result.evictions, result.attempts, result.recomputed) == (True, 0, 1, 180)

    def test_an_interruption_costs_the_overhead_again(self, run: Callable[[TickJob, By], TickResult]) -> None:
        result = run(tick_job([True] * 6 + [False] * 3 + [True] * 15), STAY_ON_SPOT)
        assert (result.evictions, result.attempts, result.recomputed) == (1, 1, 360)
        assert result.finished == 2 * HOUR + 360 + 3 * TICK
        assert result.cost == pytest.approx(SPOT * (2 * HOUR + 360) / HOUR)

    def test_a_switch_costs_the_overhead_again(self, run: Callable[[TickJob, By], TickResult]) -> None:
        result = run(tick_job([True] * 6 + [False] * 18), SPOT_IF_AVAILABLE)
        assert (result.evictions, result.attempts, result.recomputed) == (1, 2, 360)
        assert result.cost == pytest.approx(SPOT + ON_DEMAND * (1 + 360 / HOUR))

    def test_a_missed_deadline_ends_the_run(self, run: Callable[[TickJob, By], TickResult]) -> None:
        result = run(tick_job([False] * 24), STAY_ON_SPOT)
        assert (result.met, result.cost, result.finished, result.ticks) == (False, 0.0, 4 * HOUR, 24)

    def test_an_overhead_may_be_longer_than_a_tick(self, run: Callable[[TickJob, By], TickResult]) -> None:
        result = run(tick_job([True] * 24, overhead=720), STAY_ON_DEMAND)
        assert result.finished == 2 * HOUR + 720


def by_digest(seed: int, names: tuple[str | None, ...]) -> By:
    """A pseudo-random function of the whole view, with the same choice throughout a tick."""

    def choose(view: TierView) -> str | None:
        facts = repr((seed, view.now, view.progress.step, sorted(view.available), view.spent_usd, view.deadline))
        return names[crc32(facts.encode()) % len(names)]

    return By(choose)


def random_job(dice: Random) -> TickJob:
    """One or two spot tiers with changing capacity, with or without changing prices, and on-demand."""
    varying = dice.random() < 0.5
    tiers = [
        TickTier(
            Tier(f"spot-{index}", -1, NEVER, CapacityType.SPOT, Price(1.0, 3.0)),
            tuple(dice.random() < 0.6 for _ in range(36)),
            tuple(dice.choice([0.5, 1.0, 1.5]) for _ in range(36)) if varying else None,
        )
        for index in range(dice.choice([1, 2]))
    ]
    on_demand = TickTier(Tier("on-demand", -1, NEVER, CapacityType.ON_DEMAND, Price(3.0, 3.0)))
    overhead, workers = dice.choice([0, 180, 720]), dice.choice([1, 2])
    return TickJob((*tiers, on_demand), 3 * HOUR, overhead, 6 * HOUR, workers=workers)


def noted(policy: By, views: list[list[str]]) -> By:
    """The policy, which also appends its views to `views`, without repetitions."""

    def choose(view: TierView) -> str | None:
        facts = [str(sorted(value) if isinstance(value, frozenset | set) else value) for value in astuple(view)]
        if facts not in views[-3:]:
            views.append(facts)
        return policy.choose(view).tier

    return By(choose)


@settings(max_examples=examples(25), phases=(Phase.explicit, Phase.generate))
@given(seed=st.integers(0, 2**32))
def test_the_fast_path_is_equal_to_decide(seed: int) -> None:
    """The results and the views are the same for any policy."""
    dice = Random(seed)
    job = random_job(dice)
    names = [entry.tier.name for entry in job.tiers]
    policy = by_digest(seed, tuple(names if dice.random() < 0.5 else [*names, None]))
    quick: list[list[str]] = []
    real: list[list[str]] = []
    assert fast.supports(job)
    assert fast.run(job, noted(policy, quick)) == drive.run(job, noted(policy, real))
    assert quick == real


SHIPPED = ("adaptive", "greedy", "on-demand", "ordered", "uniform-progress")


def spelled_job(dice: Random) -> TickJob:
    """One or two spot tiers with capacity in spells, with or without changing prices, an optional on-demand tier, any
    slack, and ticks of several lengths."""
    tick = dice.choice([TICK, TICK, 300, 900])
    work = dice.choice([2, 5, 11]) * HOUR + dice.choice([0, 1, 599])
    deadline = work + dice.choice([0, 1200, HOUR, 4 * HOUR, 20 * HOUR])
    ticks = -(-deadline // tick)

    def spells() -> tuple[bool, ...]:
        flags: list[bool] = []
        while len(flags) < ticks:
            flags += [dice.random() < 0.5] * dice.choice([1, 1, 2, 3, 7, 20, 60])
        return tuple(flags[:ticks])

    varying = dice.random() < 0.2
    tiers = [
        TickTier(
            Tier(f"spot-{index}", -1, NEVER, CapacityType.SPOT, Price(dice.choice([0.5, 1.0]), 3.0)),
            spells(),
            tuple(dice.choice([0.5, 1.0, 1.5]) for _ in range(ticks)) if varying else None,
        )
        for index in range(dice.choice([1, 1, 2]))
    ]
    if dice.random() < 0.9:
        tiers.append(TickTier(Tier("on-demand", -1, NEVER, CapacityType.ON_DEMAND, Price(3.0, 3.0))))
    return TickJob(tuple(tiers), work, dice.choice([0, 180, 720]), deadline, tick, workers=dice.choice([1, 3]))


class RecordedPolicy:
    """Wraps a policy and records its views and choices. Costs are rounded because sums depend on their order."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.asked: dict[str, str | None] = {}
        self.held: dict[float, str] = {}

    def choose(self, view: TierView) -> TierChoice:
        choice = self.policy.choose(view)
        records = [
            replace(one, cost=round(one.cost, 6), on_demand_cost=round(one.on_demand_cost, 6)) for one in view.records
        ]
        sets, none = (sorted(view.open), sorted(view.available)), frozenset[str]()
        rounded = replace(view, records=tuple(records), spent_usd=round(view.spent_usd, 6), open=none, available=none)
        self.asked[repr((astuple(rounded), sets))] = choice.tier
        self.held[view.now] = choice.tier or (view.current if view.live else "")
        return choice


@pytest.mark.parametrize("name", SHIPPED)
@settings(max_examples=examples(40), deadline=None, phases=(Phase.explicit, Phase.generate))
@given(seed=st.integers(0, 2**32))
def test_the_fast_path_skips_only_ticks_in_which_decide_changes_nothing(name: str, seed: int) -> None:
    """For every shipped policy: the result and the cost are the same; where the fast path calls the policy, the view
    and the choice are the same; where it does not, `decide` keeps the tier of the previous tick."""
    job, policy = spelled_job(Random(seed)), registry.by_name(name)
    quick, real = RecordedPolicy(policy), RecordedPolicy(policy)
    assert fast.supports(job)
    assert fast.run(job, quick) == drive.run(job, real)
    assert quick.asked.items() <= real.asked.items()
    tier = ""
    for now, held in real.held.items():
        tier = quick.held.get(now, tier)
        assert held == tier, now


@pytest.mark.parametrize(
    ("name", "most"),
    [("on-demand", 1), ("ordered", 12), ("greedy", 6), ("uniform-progress", 20), ("adaptive", 22)],
)
def test_the_fast_path_calls_a_policy_rarely(name: str, most: int) -> None:
    """420 ticks with 11 changes of capacity: a policy is called twice for each change at most."""
    trace = [tick % 70 < 55 for tick in range(420)]
    policy = RecordedPolicy(registry.by_name(name))
    fast.run(tick_job(trace, work=60 * HOUR, deadline=70 * HOUR), policy)
    assert len(policy.asked) <= most


@pytest.mark.parametrize("run", [drive.run, fast.run])
def test_the_error_for_an_oscillating_policy_names_it(run: Callable[[TickJob, By], TickResult]) -> None:
    restless = By(lambda view: "spot" if view.current == "on-demand" else "on-demand")
    with pytest.raises(PolicyOscillates, match="policy By moves the job back and forth at 0 s"):
        run(tick_job([True] * 24), restless)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"deadline": HOUR}, "deadline: expected at least the work (2 h), got 1 h"),
        ({"deadline": 5 * HOUR}, "deadline: the trace has 24 ticks, the deadline needs 30"),
        ({"work": 0}, "work: expected a whole number above 0, got 0"),
        ({"overhead": -1}, "overhead: expected 0 or more seconds, got -1"),
    ],
)
def test_invalid_jobs_are_rejected(changes: dict[str, int], said: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        tick_job([True] * 24, **changes)
    assert str(caught.value).startswith(said)
