"""The choices of `uniform-progress` as a table of views."""

from __future__ import annotations

import math
from typing import Any

import pytest

from spotladder.core.policies.safety_net import JUST_AFTER, LEAST_STAY
from spotladder.core.policies.uniform_progress import UniformProgress, ahead
from tests.core.builders import START
from tests.core.policies.views import HOUR, NAMES, view

NONE_OF_SPOT = {"spot-dear": False, "spot-cheap": False}
ALL = dict.fromkeys(NAMES, True)
BEHIND: dict[str, Any] = {"now": START + 2 * HOUR, "remaining": 9.5 * HOUR}
"""The job needs one hour of work more to be on schedule: it is one hour behind, in time."""

AHEAD: dict[str, Any] = {"now": START + 2 * HOUR, "remaining": 8 * HOUR}
"""Two hours of work are on schedule after four hours."""


@pytest.mark.parametrize(
    ("given", "tier", "why"),
    [
        pytest.param({"open": frozenset()}, None, "no tier is open", id="no tier"),
        pytest.param(
            {"tiers": ("on-demand-dear",)}, "on-demand-dear", "the job has no spot tier left", id="no spot tier"
        ),
        pytest.param(
            {"remaining": 19.95 * HOUR},
            "on-demand-cheap",
            "only on-demand can still meet the deadline",
            id="forced",
        ),
        pytest.param(
            {"current": "spot-dear"},
            "spot-dear",
            "the job stays on spot until it is lost",
            id="on spot, not the cheapest",
        ),
        pytest.param({}, "spot-cheap", "spot capacity may be available", id="a start"),
        pytest.param(
            {"capacity": NONE_OF_SPOT, **BEHIND},
            "on-demand-cheap",
            "the job is behind uniform progress and no spot capacity is available",
            id="behind",
        ),
        pytest.param(
            {"capacity": NONE_OF_SPOT},
            None,
            "waits for spot capacity: the job is ahead of uniform progress",
            id="exactly on schedule",
        ),
        pytest.param(
            {"capacity": NONE_OF_SPOT, "current": "spot-dear", **AHEAD},
            "spot-dear",
            "waits for spot capacity: the job is ahead of uniform progress",
            id="ahead, and an attempt waits",
        ),
        pytest.param(
            {"capacity": NONE_OF_SPOT, "current": "spot-dear", "live": False, **AHEAD},
            None,
            "waits for spot capacity: the job is ahead of uniform progress",
            id="ahead, and the attempt has ended",
        ),
        pytest.param(
            {"current": "on-demand-cheap", "capacity": ALL, **BEHIND},
            "on-demand-cheap",
            "the job is not far enough ahead of uniform progress to leave on-demand",
            id="on-demand and behind",
        ),
        pytest.param(
            {"current": "on-demand-cheap", **BEHIND},
            "on-demand-cheap",
            "no spot capacity is known to be available",
            id="on-demand and behind, and no capacity is known",
        ),
        pytest.param(
            {"current": "on-demand-cheap", **AHEAD},
            "on-demand-cheap",
            "no spot capacity is known to be available",
            id="on-demand and ahead, and no capacity is known",
        ),
        pytest.param(
            {"current": "on-demand-cheap", "capacity": ALL, **AHEAD},
            "spot-cheap",
            "spot capacity is available and the job is ahead of uniform progress",
            id="on-demand and ahead, and there is capacity",
        ),
    ],
)
def test_the_choice_and_its_explanation(given: dict[str, Any], tier: str | None, why: str) -> None:
    choice = UniformProgress().choose(view(**given))
    assert (choice.tier, choice.why) == (tier, why)


def test_a_job_that_waits_is_reviewed_when_it_falls_behind() -> None:
    given: dict[str, Any] = {"capacity": {**ALL, **NONE_OF_SPOT}, **AHEAD}
    choice = UniformProgress().choose(view(**given))
    falls_behind = START + 4 * HOUR
    assert (choice.review_at, choice.holds_until) == (falls_behind + JUST_AFTER, falls_behind)
    late = UniformProgress().choose(view(**{**given, "deadline": START + 10.5 * HOUR, "now": START + 0.1 * HOUR}))
    assert late.holds_until is not None
    assert late.holds_until < START + 4 * HOUR, "the fallback is forced before the job falls behind"


@pytest.mark.parametrize(
    ("current", "given", "until_lost"),
    [
        pytest.param("spot-cheap", {}, True, id="the attempt that waits"),
        pytest.param("", {}, False, id="no attempt waits"),
        pytest.param("spot-cheap", {"capacity_lasts": False}, False, id="a decision may come late"),
        pytest.param("spot-cheap", {"starting": 9 * HOUR}, False, id="a long start forces the fallback first"),
    ],
)
def test_an_attempt_that_waits_announces_that_it_stays_on_the_capacity_that_comes(
    current: str, given: dict[str, Any], until_lost: bool
) -> None:
    facts = {"capacity_lasts": True, "starting": 180.0, **AHEAD, **given}
    choice = UniformProgress().choose(view(current, capacity={**ALL, **NONE_OF_SPOT}, **facts))
    assert (choice.tier, choice.until_lost) == (current or None, until_lost)


def test_a_job_without_a_deadline_waits_for_spot_capacity_without_a_limit() -> None:
    choice = UniformProgress().choose(view(capacity={**ALL, **NONE_OF_SPOT}, deadline=None))
    assert (choice.tier, choice.holds_until, choice.review_at) == (None, math.inf, None)


@pytest.mark.parametrize(
    ("given", "lead"),
    [
        pytest.param({}, 0.0, id="at the beginning"),
        pytest.param(AHEAD, 2 * HOUR, id="ahead"),
        pytest.param(BEHIND, -HOUR, id="behind"),
        pytest.param(
            {**AHEAD, "submitted_at": START + HOUR, "deadline": START + 21 * HOUR}, 3 * HOUR, id="submitted later"
        ),
        pytest.param({"deadline": None}, math.inf, id="no deadline"),
        pytest.param({"work": None}, math.inf, id="unknown work"),
        pytest.param({"remaining": None}, math.inf, id="unknown rest"),
        pytest.param({"work": 0.0}, math.inf, id="nothing to do"),
    ],
)
def test_the_lead_is_the_time_for_which_the_work_suffices_on_schedule(given: dict[str, Any], lead: float) -> None:
    assert ahead(view(**given)) == pytest.approx(lead)


def test_on_demand_is_left_once_the_job_is_two_starts_ahead() -> None:
    behind = UniformProgress().choose(view("on-demand-cheap", capacity=ALL, **BEHIND))
    assert behind.holds_until == pytest.approx(START + 2 * HOUR + HOUR + 2 * 180.0), "a second of work adds one of lead"
    fast: dict[str, Any] = {"work": 5 * HOUR, "remaining": 4.75 * HOUR, "now": START + 2 * HOUR}
    behind = UniformProgress().choose(view("on-demand-cheap", capacity=ALL, **fast))
    assert behind.holds_until == pytest.approx(START + 2 * HOUR + (HOUR + 2 * 180.0) / 3), "it adds three of lead"
    begun = UniformProgress().choose(view("on-demand-cheap", capacity=ALL, starting=180.0, **BEHIND))
    assert begun.holds_until == pytest.approx(START + 2 * HOUR + HOUR + 4 * 180.0), "a start makes no progress"
    moving = UniformProgress().choose(view("spot-cheap", capacity={**ALL, **NONE_OF_SPOT}, **BEHIND))
    assert (moving.tier, moving.holds_until) == ("on-demand-cheap", begun.holds_until), "the start is still to come"
    for lead, tier in ((2 * 180.0, "spot-cheap"), (2 * 180.0 - 1.0, "on-demand-cheap")):
        given: dict[str, Any] = {"now": START + 2 * HOUR, "remaining": 9 * HOUR - lead / 2}
        assert UniformProgress().choose(view("on-demand-cheap", capacity=ALL, **given)).tier == tier


def test_a_job_that_leaves_on_demand_is_reviewed_when_it_has_lost_its_lead() -> None:
    """It trains until its standby attempt is ready, and each second without a commit costs a second of lead."""
    choice = UniformProgress().choose(view("on-demand-cheap", capacity=ALL, **AHEAD))
    assert choice.tier == "spot-cheap"
    assert choice.review_at == START + 2 * HOUR + 2 * HOUR - 2 * 180.0 + JUST_AFTER


def test_without_spot_capacity_a_job_that_is_ahead_stays_on_demand_until_that_changes() -> None:
    given: dict[str, Any] = {"capacity": {**ALL, **NONE_OF_SPOT}, **AHEAD}
    choice = UniformProgress().choose(view("on-demand-cheap", **given))
    assert (choice.tier, choice.holds_until) == ("on-demand-cheap", math.inf)


def test_a_forced_fallback_is_kept_once_no_spot_attempt_may_start() -> None:
    tiers = ("spot-cheap", "on-demand-cheap")
    spare = 180.0 + 180.0 + 60.0 + LEAST_STAY
    over = view(tiers=tiers, capacity=NONE_OF_SPOT, deadline=START + 10 * HOUR + spare - 1.0)
    choice = UniformProgress().choose(over)
    assert (choice.tier, choice.regardless_of_spot) == ("on-demand-cheap", True)
