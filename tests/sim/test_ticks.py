"""The tick world: rules of the published benchmark as a table, and the fast path beside the real `decide`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from random import Random
from zlib import crc32

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from spotladder.core.model import CapacityType, Price, Tier, TierChoice, TierView
from spotladder.errors import InvalidSpec
from spotladder.policies import registry
from spotladder.sim.oscillation import PolicyOscillates
from spotladder.sim.synthetic import SyntheticMarket, generate
from spotladder.sim.ticks import drive, fast
from spotladder.sim.ticks.job import NEVER, TickJob, TickResult, TickTier
from tests.sim.builders import HOUR, ON_DEMAND, SPOT, tick_job

TICK = 600


class By:
    """A policy made of a function of the view."""

    def __init__(self, choose: Callable[[TierView], str | None]) -> None:
        self._choose = choose

    def choose(self, view: TierView) -> TierChoice:
        return TierChoice(self._choose(view))


STAY_ON_SPOT = By(lambda _view: "spot")
STAY_ON_DEMAND = By(lambda _view: "on-demand")
SPOT_IF_AVAILABLE = By(lambda view: "spot" if "spot" in view.available else "on-demand")


@pytest.mark.parametrize("run", [drive.run, fast.run])
class TestRules:
    def test_the_last_tick_is_billed_pro_rata_and_each_start_spends_the_overhead(
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

    def test_a_deadline_that_is_missed(self, run: Callable[[TickJob, By], TickResult]) -> None:
        result = run(tick_job([False] * 24), STAY_ON_SPOT)
        assert (result.met, result.cost, result.finished, result.ticks) == (False, 0.0, 4 * HOUR, 24)

    def test_an_overhead_longer_than_a_tick(self, run: Callable[[TickJob, By], TickResult]) -> None:
        result = run(tick_job([True] * 24, overhead=720), STAY_ON_DEMAND)
        assert result.finished == 2 * HOUR + 720


def by_digest(seed: int, names: tuple[str | None, ...]) -> By:
    """Any function of everything that a policy can see, which keeps to its choice within a tick."""

    def choose(view: TierView) -> str | None:
        shown = repr((seed, view.now, view.progress.step, sorted(view.available), view.spent_usd, view.deadline))
        return names[crc32(shown.encode()) % len(names)]

    return By(choose)


def random_job(dice: Random) -> TickJob:
    """One or two spot tiers that come and go, with or without prices over time, and on-demand."""
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
    """The policy; what it is shown goes to `views`, each view of a moment once."""

    def choose(view: TierView) -> str | None:
        shown = [str(sorted(value) if isinstance(value, frozenset | set) else value) for value in astuple(view)]
        if shown not in views[-3:]:
            views.append(shown)
        return policy.choose(view).tier

    return By(choose)


@settings(max_examples=25, phases=(Phase.explicit, Phase.generate))
@given(seed=st.integers(0, 2**32))
def test_the_fast_path_is_equal_to_decide(seed: int) -> None:
    """The same result and the same views, whatever the policy makes of them."""
    dice = Random(seed)
    job = random_job(dice)
    names = [entry.tier.name for entry in job.tiers]
    policy = by_digest(seed, tuple(names if dice.random() < 0.5 else [*names, None]))
    quick: list[list[str]] = []
    real: list[list[str]] = []
    assert fast.supports(job)
    assert fast.run(job, noted(policy, quick)) == drive.run(job, noted(policy, real))
    assert quick == real


@pytest.mark.parametrize("overhead", [180, 720])
@pytest.mark.parametrize("name", ["greedy", "on-demand", "uniform-progress"])
def test_the_fast_path_is_equal_to_decide_for_our_policies(name: str, overhead: int) -> None:
    """On a synthetic market, with a deadline that leaves a fifth of the time for waiting."""
    available = generate(SyntheticMarket(), 72, ["spot"], seed=overhead)[0].ticks(TICK).tolist()
    job = tick_job(available, work=10 * HOUR, overhead=overhead, deadline=12 * HOUR)
    found = fast.run(job, registry.by_name(name))
    assert found == drive.run(job, registry.by_name(name))
    assert found.met


@pytest.mark.parametrize("run", [drive.run, fast.run])
def test_a_policy_that_moves_to_and_fro_is_named(run: Callable[[TickJob, By], TickResult]) -> None:
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
def test_jobs_that_cannot_be_simulated(changes: dict[str, int], said: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        tick_job([True] * 24, **changes)
    assert str(caught.value).startswith(said)
