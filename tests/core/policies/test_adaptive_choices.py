"""The choices of `adaptive` and their explanations as a table of views."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.model import MoveCosts, PricePoint, TierRecord, TierView
from spotladder.core.policies.adaptive import Adaptive
from spotladder.core.policies.uniform_progress import UniformProgress
from spotladder.policies.adaptive_model import shipped
from tests.core.policies.test_adaptive import spells
from tests.core.policies.views import HOUR, NAMES, view

NONE_OF_SPOT = {"spot-dear": False, "spot-cheap": False}
ALL = dict.fromkeys(NAMES, True)


@pytest.mark.parametrize(
    ("given", "tier", "why"),
    [
        pytest.param({}, "spot-cheap", "spot capacity may be available", id="a start"),
        pytest.param(
            {"capacity": NONE_OF_SPOT},
            None,
            "waits for spot capacity: 10h of slack are left, 1h14m needed",
            id="enough slack to wait",
        ),
        pytest.param(
            {"capacity": NONE_OF_SPOT, "current": "spot-dear"},
            "spot-dear",
            "waits for spot capacity: 10h of slack are left, 1h14m needed",
            id="enough slack, and an attempt waits",
        ),
        pytest.param(
            {"capacity": NONE_OF_SPOT, "remaining": 18.5 * HOUR},
            "on-demand-cheap",
            "no spot capacity, and waiting needs 1h47m of slack, 1h30m are left",
            id="too little slack to wait",
        ),
        pytest.param({"current": "spot-dear"}, "spot-dear", "the job stays on spot until it is lost", id="on spot"),
        pytest.param(
            {"current": "spot-dear", "capacity": ALL},
            "spot-cheap",
            "spot-cheap is cheaper, and is expected to last for 1h56m",
            id="a cheaper tier has capacity",
        ),
        pytest.param(
            {"current": "on-demand-cheap"},
            "on-demand-cheap",
            "no spot capacity is known to be available",
            id="on-demand, and no capacity is known",
        ),
        pytest.param(
            {"current": "on-demand-cheap", "capacity": ALL},
            "spot-cheap",
            "spot capacity is available and 10h of slack are left",
            id="on-demand, and there is capacity",
        ),
        pytest.param(
            {"current": "on-demand-cheap", "capacity": ALL, "remaining": 19.7 * HOUR},
            "on-demand-cheap",
            "leaving on-demand needs 53m of slack, 18m are left",
            id="on-demand, and too little slack to leave it",
        ),
    ],
)
def test_the_choice_and_its_explanation(given: dict[str, Any], tier: str | None, why: str) -> None:
    choice = Adaptive(shipped()).choose(view(**given))
    assert (choice.tier, choice.why) == (tier, why)


def test_a_spot_attempt_that_starts_beside_the_live_one_needs_no_known_capacity() -> None:
    usual = view("on-demand-cheap")
    beside = tuple(replace(one, overlaps=one.name == "spot-dear") for one in usual.outlooks)
    choice = Adaptive(shipped()).choose(replace(usual, outlooks=beside))
    assert (choice.tier, choice.why) == ("spot-dear", "spot capacity may be available and 10h of slack are left")


def with_costs(given: TierView, **egress: float) -> TierView:
    """The view, in which a move to each of these tiers costs so much egress in USD."""
    names = {name.replace("_", "-"): usd for name, usd in egress.items()}
    outlooks = (replace(one, move=MoveCosts(names.get(one.name, 0.0))) for one in given.outlooks)
    return replace(given, outlooks=tuple(outlooks), workers=2)


@pytest.mark.parametrize(
    ("given", "tier", "why"),
    [
        pytest.param(
            with_costs(view("spot-dear", capacity=ALL), spot_cheap=0.5),
            "spot-cheap",
            "spot-cheap is cheaper, and is expected to last for 1h56m; moving costs 0.50 USD of egress, saves 3.87 USD",
            id="a cheaper tier that is worth the egress",
        ),
        pytest.param(
            with_costs(view("spot-dear", capacity=ALL), spot_cheap=5.0),
            "spot-dear",
            "the job stays on spot until it is lost",
            id="a cheaper tier that is not",
        ),
        pytest.param(
            with_costs(view("on-demand-cheap", capacity=ALL), spot_cheap=0.5, spot_dear=0.5),
            "spot-cheap",
            "spot capacity is available and 10h of slack are left; moving costs 0.50 USD of egress, saves 11.62 USD",
            id="a return that is worth the egress",
        ),
        pytest.param(
            with_costs(view("on-demand-cheap", capacity=ALL), spot_cheap=20.0, spot_dear=20.0),
            "on-demand-cheap",
            "a return to spot does not pay; moving costs 20.00 USD of egress, saves 11.62 USD",
            id="a return that is not",
        ),
        pytest.param(
            with_costs(view(), spot_cheap=20.0),
            "spot-dear",
            "spot capacity may be available",
            id="a start on the tier without egress",
        ),
        pytest.param(
            with_costs(view(), spot_cheap=20.0, spot_dear=20.0),
            "on-demand-cheap",
            "no spot tier saves more than 20.00 USD of egress",
            id="a start where spot costs more egress than it saves",
        ),
        pytest.param(
            with_costs(view(), spot_cheap=5.0, spot_dear=5.0, on_demand_cheap=5.0),
            "spot-cheap",
            "spot capacity may be available",
            id="a start where every tier costs the same egress",
        ),
    ],
)
def test_egress_counts_in_the_choice_and_in_its_explanation(given: TierView, tier: str | None, why: str) -> None:
    choice = Adaptive(shipped()).choose(given)
    assert (choice.tier, choice.why) == (tier, why)


RETURNS = view(
    "spot-dear",
    records=tuple(TierRecord(name, spells=spells(30, 90) if name == "spot-cheap" else ()) for name in NAMES),
)
"""A job on the dear spot tier, some time after the cheap one had no capacity."""


def granted(given: TierView, ago: float) -> TierView:
    """The view, in which another job got capacity on spot-cheap so many seconds ago."""
    at = given.now - ago
    outlooks = (replace(one, granted_at=at) if one.name == "spot-cheap" else one for one in given.outlooks)
    return replace(given, outlooks=tuple(outlooks))


@pytest.mark.parametrize(
    ("given", "tier", "why"),
    [
        pytest.param(RETURNS, "spot-cheap", "spot capacity is back with a probability of 57 %", id="it may be back"),
        pytest.param(
            replace(RETURNS, deadline=RETURNS.now + 10.2 * HOUR),
            "spot-dear",
            "",
            id="too little slack for a failed try",
        ),
        pytest.param(with_costs(RETURNS, spot_cheap=50.0), "spot-dear", "", id="the egress is more than it saves"),
        pytest.param(view("spot-dear", failed_at={"spot-cheap": 600.0}), "spot-dear", "", id="it has just had none"),
        pytest.param(view("spot-dear"), "spot-dear", "", id="the job has never observed it"),
        pytest.param(
            granted(view("spot-dear"), 1200.0),
            "spot-cheap",
            "another job got capacity on spot-cheap 20m ago, 80 % that it lasts",
            id="another job got it",
        ),
        pytest.param(
            granted(view("spot-dear", failed_at={"spot-cheap": 3600.0}), 7200.0),
            "spot-cheap",
            "spot capacity is back with a probability of 17 %",
            id="another job got it before the outage",
        ),
        pytest.param(
            granted(view("spot-dear", failed_at={"spot-cheap": 600.0}), 300.0),
            "spot-dear",
            "",
            id="another job got it, but the last try was too recent",
        ),
        pytest.param(
            granted(view("on-demand-cheap"), 1200.0),
            "spot-cheap",
            "another job got capacity on spot-cheap 20m ago, 80 % that it lasts",
            id="another job got it, from on-demand",
        ),
    ],
)
def test_a_job_tries_a_cheaper_spot_tier_whose_capacity_is_unknown(given: TierView, tier: str, why: str) -> None:
    choice = Adaptive(shipped()).choose(given)
    assert (choice.tier, choice.why) == (tier, why or "the job stays on spot until it is lost")


def test_a_short_drop_of_the_price_moves_no_job() -> None:
    """The cheaper tier was as dear as the other until ten minutes ago."""
    given = view("spot-dear", capacity=ALL)
    past = (PricePoint(given.now - 24 * HOUR, 2.0), PricePoint(given.now - 600.0, 1.0))
    tiers = tuple(replace(one, prices=past) if one.name == "spot-cheap" else one for one in given.tiers)
    assert Adaptive(shipped()).choose(given).tier == "spot-cheap"
    assert Adaptive(shipped()).choose(replace(given, tiers=tiers)).tier == "spot-dear"


def test_a_move_needs_slack_for_the_usual_wait() -> None:
    given = view("spot-dear", capacity=ALL, remaining=16.5 * HOUR)
    tiers = tuple(replace(one, wait=7200.0) if one.name == "spot-cheap" else one for one in given.tiers)
    assert Adaptive(shipped()).choose(given).tier == "spot-cheap"
    assert Adaptive(shipped()).choose(replace(given, tiers=tiers)).tier == "spot-dear"


def test_a_try_beside_the_live_attempt_needs_less_probable_capacity() -> None:
    """A failed try costs no training."""
    late = view("spot-dear", failed_at={"spot-cheap": 1900.0}, remaining=0.8 * HOUR)
    beside = tuple(replace(one, overlaps=one.name == "spot-cheap") for one in late.outlooks)
    assert Adaptive(shipped()).choose(late).tier == "spot-dear"
    assert Adaptive(shipped()).choose(replace(late, outlooks=beside)).tier == "spot-cheap"


FITS = "the rest of the job fits into the budget of 30 USD there"
NONE_FITS = "no tier with capacity is cheap enough to finish the job within the budget of 30 USD"
GONE = {"spot-cheap": False, "spot-dear": False}


@pytest.mark.parametrize(
    ("given", "tier", "why"),
    [
        pytest.param({"current": "spot-cheap"}, "spot-cheap", "the job stays on spot until it is lost", id="there"),
        pytest.param({}, "spot-cheap", FITS, id="a start"),
        pytest.param({"capacity": GONE}, None, NONE_FITS, id="no capacity"),
        pytest.param({"capacity": GONE, "remaining": 18.5 * HOUR}, None, NONE_FITS, id="little slack"),
        pytest.param(
            {"capacity": GONE, "remaining": 19.95 * HOUR},
            "on-demand-cheap",
            "only on-demand can still meet the deadline",
            id="no slack",
        ),
        pytest.param({"current": "on-demand-cheap", "capacity": ALL}, "spot-cheap", FITS, id="from on-demand"),
        pytest.param(
            {"current": "on-demand-cheap", "capacity": ALL, "remaining": 19.7 * HOUR, "budget": 30.0},
            "spot-cheap",
            FITS,
            id="from on-demand, with less slack than the model needs",
        ),
        pytest.param({"current": "on-demand-cheap"}, "on-demand-cheap", NONE_FITS, id="a tier that was never observed"),
        pytest.param(
            {"current": "on-demand-cheap", "failed_at": {"spot-cheap": 2000.0}, "tiers": NAMES[1:]},
            "spot-cheap",
            FITS,
            id="a try after an outage",
        ),
        pytest.param({"current": "spot-dear", "capacity": ALL, "spent_usd": 15.0}, "spot-cheap", FITS, id="from spot"),
        pytest.param(
            {"current": "spot-dear", "spent_usd": 15.0}, "spot-dear", NONE_FITS, id="from spot, and nothing is known"
        ),
    ],
)
def test_a_tier_that_finishes_within_the_budget_is_preferred(given: dict[str, Any], tier: str | None, why: str) -> None:
    """10 h of work cost $10 on the cheap spot tier, $20 on the other one and $40 on demand."""
    choice = Adaptive(shipped()).choose(view(**{"budget": 30.0, **given}))
    assert (choice.tier, choice.why) == (tier, why)


@pytest.mark.parametrize("budget", [40.0, 9.0], ids=["it fits on demand", "it fits nowhere"])
@pytest.mark.parametrize("current", ["", "on-demand-cheap", "spot-dear"])
def test_a_budget_that_decides_nothing_changes_no_choice(budget: float, current: str) -> None:
    given = view(current, capacity=NONE_OF_SPOT if current != "spot-dear" else ALL)
    policy = Adaptive(shipped())
    assert policy.choose(replace(given, budget=budget)) == policy.choose(given)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"deadline": None}, id="no deadline"),
        pytest.param({"remaining": None}, id="unknown work"),
        pytest.param({"open": frozenset()}, id="no tier"),
        pytest.param({"tiers": ("on-demand-dear",)}, id="no spot tier"),
        pytest.param({"remaining": 19.95 * HOUR}, id="the fallback is forced"),
    ],
)
def test_without_a_use_of_the_model_the_choice_is_that_of_uniform_progress(given: dict[str, Any]) -> None:
    assert Adaptive(shipped()).choose(view(**given)) == UniformProgress().choose(view(**given))


def test_a_job_that_leaves_on_demand_is_reviewed_when_its_slack_is_used_up() -> None:
    """It trains until its standby attempt is ready, and each second without a commit costs a second of slack."""
    job = view("on-demand-cheap", capacity=ALL, remaining=18.9 * HOUR)
    choice = Adaptive(shipped()).choose(job)
    assert choice.tier == "spot-cheap"
    assert choice.review_at is not None
    late = replace(job, now=choice.review_at)
    assert Adaptive(shipped()).choose(late).tier == "on-demand-cheap"
    assert Adaptive(shipped()).choose(replace(late, now=choice.review_at - 1.0)).tier == "spot-cheap"
