"""The choices of `uniform-progress` as a table of views."""

from __future__ import annotations

import math
from typing import Any

import pytest

from spotladder.core.policies.safety_net import JUST_AFTER
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
    assert choice.review_at == START + 4 * HOUR + JUST_AFTER


def test_a_job_without_a_deadline_waits_for_spot_capacity_without_a_limit() -> None:
    choice = UniformProgress().choose(view(capacity={**ALL, **NONE_OF_SPOT}, deadline=None))
    assert (choice.tier, choice.review_at) == (None, None)


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
    for lead, tier in ((2 * 180.0, "spot-cheap"), (2 * 180.0 - 1.0, "on-demand-cheap")):
        given: dict[str, Any] = {"now": START + 2 * HOUR, "remaining": 9 * HOUR - lead / 2}
        assert UniformProgress().choose(view("on-demand-cheap", capacity=ALL, **given)).tier == tier


def test_a_job_that_leaves_on_demand_is_reviewed_when_it_has_lost_its_lead() -> None:
    """It trains until its standby attempt is ready, and each second without a commit costs a second of lead."""
    choice = UniformProgress().choose(view("on-demand-cheap", capacity=ALL, **AHEAD))
    assert choice.tier == "spot-cheap"
    assert choice.review_at == START + 2 * HOUR + 2 * HOUR - 2 * 180.0 + JUST_AFTER
