"""The adaptive policy: its model, its choices, and when it does not trust the model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from spotladder.core.history.ages import AGES, TICK, ticks_of
from spotladder.core.model import (
    CapacityType,
    Price,
    Progress,
    Spell,
    Tier,
    TierOutlook,
    TierRecord,
    TierView,
)
from spotladder.core.policies import adaptive_zones
from spotladder.core.policies.adaptive import Adaptive
from spotladder.core.policies.adaptive_tables import (
    Model,
    columns,
    endings,
    expected_life,
    knot_of,
    place_of,
    slack_at,
    survivals,
)
from spotladder.policies.adaptive_model import shipped
from tests.bench.ticks import drive
from tests.bench.ticks.job import NEVER, TickJob, TickTier
from tests.core.policies.deadline_world import ON_DEMAND

HOUR = 3600.0
EVEN = (1.0 / len(shipped().shares),) * len(shipped().shares)


def spells(*lengths: int, available: bool = True) -> tuple[Spell, ...]:
    """Spells of these lengths in ticks, alternately available and unavailable."""
    found, start = [], 0.0
    for ticks in lengths:
        found.append(Spell(available, start, start + (ticks - 1) * TICK))
        start, available = start + ticks * TICK, not available
    return tuple(found)


def weights(model: Model, *seen: Spell) -> tuple[float, ...]:
    return adaptive_zones.weights(model, seen, newest(seen))


def trusted(model: Model, *seen: Spell) -> bool:
    return adaptive_zones.trusted(model, seen, newest(seen))


def newest(seen: tuple[Spell, ...]) -> int:
    return ticks_of(seen[-1]) if seen else 0


WAIT, LEAVE = 0, 1


def least_slack(kind: int, weights: tuple[float, ...], terms: tuple[float, float], age: float, work: float) -> float:
    return slack_at(knot_of(work), weights, columns(shipped(), terms, place_of(age))[kind])


def zone(name: str, price: float) -> Tier:
    return Tier(name, -1, NEVER, CapacityType.SPOT, Price(price, 3.0))


BACKUP = Tier(ON_DEMAND, -1, NEVER, CapacityType.ON_DEMAND, Price(3.0, 3.0))


@pytest.mark.parametrize("available", [True, False])
def test_the_probabilities_of_all_spell_lengths_sum_to_one(available: bool) -> None:
    model = shipped()
    for zone in model.zones:
        ended = sum(math.exp(endings(model, available, ticks)[zone]) for ticks in range(1, 200))
        assert ended + math.exp(survivals(model, available, 200)[zone]) == pytest.approx(1.0)


def test_waiting_needs_more_slack_for_more_work_and_for_a_longer_outage() -> None:
    """More work, and an outage that has lasted, need more slack."""

    def wait(age: float = 0.0, work: float = 24.0, ratio: float = 3.145) -> float:
        return least_slack(WAIT, EVEN, (180.0, ratio), age, work * HOUR)

    assert 0 < wait(work=4) < wait(work=12) < wait(work=48) < wait(work=96)
    assert wait(work=96) == pytest.approx(2 * wait(work=48))
    assert wait(age=0) < wait(age=6 * HOUR)
    assert wait(ratio=100.0) == wait(ratio=8.0), "beyond the fitted ratios the last one counts"


def test_leaving_on_demand_needs_less_slack_when_the_spot_capacity_has_lasted() -> None:
    young, old = (least_slack(LEAVE, EVEN, (720.0, 3.145), age, 24 * HOUR) for age in (0.0, 6 * HOUR))
    assert old < young


def test_zones_are_weighted_by_the_spells_that_the_job_observed() -> None:
    model = shipped()
    assert weights(model) == EVEN
    for seen, low, high in ((spells(200, 1, 150, 1, 100), 0.9, 1.0), (spells(1, 60, 1, 90, 1, 80), 0.0, 0.4)):
        found = weights(model, *seen)
        assert sum(found) == pytest.approx(1.0)
        assert low < model.shares[found.index(max(found))] < high


def misfit() -> Model:
    """A model of zones where spells last for days."""
    return replace(shipped(), hazards=(((0.001,) * len(AGES),) * 2,) * len(shipped().shares))


def test_the_model_is_not_trusted_when_no_zone_explains_the_observed_spells() -> None:
    often = spells(3, 5, 20, 40, 1, 2, 9, 4, 1, 30)
    assert trusted(shipped(), *often)
    assert not trusted(misfit(), *often)


def test_the_expected_life_of_capacity_grows_with_its_age() -> None:
    """It is the sum of the probabilities to survive each further tick."""
    model = shipped()
    assert 2 * expected_life(model, EVEN, 0.0) < expected_life(model, EVEN, 40 * TICK)
    for zone in model.zones:
        alone = tuple(float(one == zone) for one in model.zones)
        summed = sum(math.exp(survivals(model, True, ticks)[zone]) for ticks in range(1, 20_000))
        assert expected_life(model, alone, 0.0) == pytest.approx(TICK * summed, rel=1e-3)


@pytest.mark.parametrize(
    ("dear", "work", "attempts"),
    [(2.0, 20, 2), (1.002, 20, 1), (2.0, 2, 1)],
    ids=["a cheaper zone", "a zone that is hardly cheaper", "a job that is nearly done"],
)
def test_the_job_moves_to_a_cheaper_spot_tier_if_that_pays(dear: float, work: int, attempts: int) -> None:
    """The cheap zone gets its capacity after two hours, and keeps it."""
    ticks = 12 * work
    late = tuple(tick >= 12 for tick in range(ticks))
    tiers = (TickTier(zone("cheap", 1.0), late), TickTier(zone("dear", dear), (True,) * ticks), TickTier(BACKUP))
    job = TickJob(tiers, work * 3600, 180, 2 * work * 3600)
    found = drive.run(job, Adaptive(shipped()))
    assert (found.met, found.attempts, found.evictions) == (True, attempts, 0)


WORK_LEFT = 20 * HOUR


def view_of_job(
    *outlooks: TierOutlook,
    tiers: tuple[Tier, ...],
    now: float,
    slack: float,
    spells: Mapping[str, tuple[Spell, ...]] | None = None,
    current: str = "",
    available: frozenset[str] | None = None,
) -> TierView:
    """A job with 20 hours of work left, and this much slack besides."""
    names = frozenset(tier.name for tier in tiers)
    return TierView(
        now=now,
        current=current,
        tiers=tiers,
        records=tuple(TierRecord(one.name, spells=(spells or {}).get(one.name, ())) for one in tiers),
        open=names,
        available=names if available is None else available,
        live=bool(current),
        progress=Progress(),
        deadline=now + WORK_LEFT + slack,
        spent_usd=0.0,
        outlooks=outlooks,
        work=WORK_LEFT,
        remaining=WORK_LEFT,
    )


@pytest.mark.parametrize(
    ("ago", "slack", "price", "chosen"),
    [
        (12 * HOUR, 20 * HOUR, 1.0, "spot"),
        (1200.0, 20 * HOUR, 1.0, ON_DEMAND),
        (12 * HOUR, 2000.0, 1.0, ON_DEMAND),
        (12 * HOUR, 20 * HOUR, 3.0, ON_DEMAND),
    ],
    ids=["it may be back", "it has just gone", "too little slack for a failed try", "it saves nothing"],
)
def test_a_try_to_return_to_capacity_that_is_not_known(ago: float, slack: float, price: float, chosen: str) -> None:
    """Spot has had no capacity for an hour when it was last asked, and nothing is known since."""
    now = HOUR + ago
    spot = replace(zone("spot", price), provision_timeout=600.0)
    outlooks = TierOutlook("spot", None, 180.0), TierOutlook(ON_DEMAND, True, 180.0)
    seen = {"spot": (Spell(False, 0.0, HOUR),)}
    view = view_of_job(*outlooks, tiers=(spot, BACKUP), now=now, slack=slack, spells=seen, current=ON_DEMAND)
    choice = Adaptive(shipped()).choose(view)
    assert choice.tier == chosen
    if chosen == ON_DEMAND:
        assert choice.review_at is not None
        assert now < choice.review_at <= now + TICK
    else:
        assert choice.why.startswith("spot capacity is back with a probability of ")


@pytest.mark.parametrize(("spare", "chosen"), [(1.0, "spot"), (-1.0, ON_DEMAND)])
def test_a_try_to_return_needs_slack_for_its_failure(spare: float, chosen: str) -> None:
    """A failed try takes two starts and the provisionTimeout; after it the slack must still be enough to leave
    on-demand."""
    now, failed = 13 * HOUR, 180.0 + 240.0 + 600.0
    seen = (Spell(False, 0.0, HOUR),)
    leave = least_slack(LEAVE, weights(shipped(), *seen), (240.0, 3.0), 0.0, WORK_LEFT)
    tiers = replace(zone("spot", 1.0), provision_timeout=600.0), BACKUP
    outlooks = TierOutlook("spot", None, 180.0), TierOutlook(ON_DEMAND, True, 240.0)
    slack = failed + leave + spare
    view = view_of_job(*outlooks, tiers=tiers, now=now, slack=slack, spells={"spot": seen}, current=ON_DEMAND)
    assert Adaptive(shipped()).choose(view).tier == chosen


@pytest.mark.parametrize(("overhead", "chosen"), [(0.0, "young"), (5400.0, "old")])
def test_a_start_prefers_capacity_that_lasts_if_it_takes_long(overhead: float, chosen: str) -> None:
    """One zone is cheaper and has just got capacity, the other has had it for long."""
    tiers = (zone("young", 1.0), zone("old", 1.05), BACKUP)
    seen = {"young": spells(40, 1, available=False), "old": spells(1, 40, available=False), ON_DEMAND: ()}
    outlooks = [TierOutlook(name, True, overhead) for name in seen]
    view = view_of_job(*outlooks, tiers=tiers, now=40 * TICK, slack=170 * HOUR, spells=seen)
    assert Adaptive(shipped()).choose(view).tier == chosen


@pytest.mark.parametrize("available", [True, False])
def test_constant_hazard_rates_explain_spells_by_their_number_and_length(available: bool) -> None:
    """Spells of 3 and 5 ticks like the newest one have ended, and between them others of 2 ticks and of 1."""
    same, other = (2 + 0.5) / (8 + 4 + 1.0), (2 + 0.5) / (3 + 1.0)
    expected = 2 * math.log(same) + 10 * math.log(1 - same) + 2 * math.log(other) + math.log(1 - other)
    assert adaptive_zones._memoryless(spells(4, 3, 6, 2, 5, available=available), 4) == pytest.approx(expected)
