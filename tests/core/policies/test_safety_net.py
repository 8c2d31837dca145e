"""The rules that the deadline-aware policies share: the fallback, the slack and the limits of a start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.model import Spell, TierOutlook, TierRecord, TierView
from spotladder.core.policies import Policy
from spotladder.core.policies.greedy import Greedy
from spotladder.core.policies.safety_net import (
    EXACT,
    JUST_AFTER,
    LEAST_STAY,
    LONGEST_RETRY_INTERVAL,
    RETRY_INTERVAL,
    WAIT_SHARE,
    SafetyNet,
)
from spotladder.core.policies.uniform_progress import UniformProgress
from spotladder.policies import registry
from tests.core.builders import START
from tests.core.policies.views import HOUR, NAMES, view


@pytest.mark.parametrize(
    ("given", "fallback"),
    [
        pytest.param({}, "on-demand-cheap", id="the cheapest"),
        pytest.param({"current": "on-demand-dear"}, "on-demand-dear", id="that of the live attempt"),
        pytest.param({"current": "on-demand-dear", "live": False}, "on-demand-cheap", id="not that of an ended one"),
        pytest.param(
            {"current": "on-demand-dear", "capacity": {"on-demand-dear": False}},
            "on-demand-cheap",
            id="the live attempt has no capacity",
        ),
        pytest.param({"failed_at": {"on-demand-cheap": 30.0}}, "on-demand-dear", id="the cheapest has just failed"),
        pytest.param({"failed_at": {"on-demand-cheap": 61.0}}, "on-demand-cheap", id="it failed long ago"),
        pytest.param({"tiers": ("spot-dear", "on-demand-unpriced")}, "on-demand-unpriced", id="the only one"),
        pytest.param({"tiers": NAMES[2:]}, "on-demand-cheap", id="an unknown price is not the lowest"),
        pytest.param({"tiers": NAMES[:2]}, "spot-cheap", id="no such tier: the last one"),
        pytest.param(
            {"open": frozenset({"spot-dear", "on-demand-dear"})}, "on-demand-dear", id="the others are closed"
        ),
        pytest.param({"open": frozenset()}, None, id="no tier is open"),
    ],
)
def test_the_fallback_is_the_live_or_else_the_cheapest_open_tier_with_capacity(
    given: dict[str, Any], fallback: str | None
) -> None:
    found = SafetyNet(view(**given)).fallback
    assert (found.name if found else None) == fallback


@pytest.mark.parametrize(
    ("outage", "timeout", "pause"),
    [
        pytest.param(0.0, 5.0, RETRY_INTERVAL, id="the first refusal"),
        pytest.param(400.0, 5.0, 195.0, id="half of the outage lies between the starts"),
        pytest.param(7200.0, 5.0, LONGEST_RETRY_INTERVAL - 5.0, id="at most ten minutes"),
        pytest.param(7200.0, 600.0, RETRY_INTERVAL, id="an attempt that waits has tried the tier for long"),
    ],
)
def test_a_tier_is_tried_less_often_the_longer_it_has_had_no_capacity(
    outage: float, timeout: float, pause: float
) -> None:
    def at(ago: float) -> SafetyNet:
        given = view(tiers=("spot-cheap", "on-demand-cheap"))
        spot, *others = (replace(one, provision_timeout=timeout) for one in given.tiers)
        record = TierRecord(spot.name, spells=(Spell(False, START - ago - outage, START - ago),))
        return SafetyNet(replace(given, tiers=(spot, *others), records=(record,)))

    assert at(pause - 1.0).usable_spot is None
    assert at(pause - 1.0).choice(None, "waits").review_at == START + 1.0
    assert at(pause).usable_spot is not None


@pytest.mark.parametrize(
    ("given", "spot"),
    [
        pytest.param({}, ["spot-cheap", "spot-dear"], id="cheapest first"),
        pytest.param({"tiers": NAMES[:2]}, ["spot-dear"], id="without the fallback"),
        pytest.param({"open": frozenset({"spot-dear", "on-demand-dear"})}, ["spot-dear"], id="only open ones"),
    ],
)
def test_the_spot_tiers_are_sorted_by_price(given: dict[str, Any], spot: list[str]) -> None:
    assert [tier.name for tier in SafetyNet(view(**given)).spot] == spot


def test_the_slack_is_the_time_that_neither_the_work_nor_the_stop_needs() -> None:
    net = SafetyNet(view(grace=90.0, remaining=8 * HOUR))
    assert (net.slack, net.overhead) == (12 * HOUR - 90.0, 180.0)
    net = SafetyNet(view(deadline=None))
    assert (net.slack, net.latest, net.late, net.forced, net.start_until(net.spot[0])) == (
        None,
        None,
        False,
        False,
        None,
    )
    assert SafetyNet(view(open=frozenset())).overhead == 0.0


def test_the_reserve_for_a_start_bounds_the_time_off_the_fallback_but_is_not_its_overhead() -> None:
    outlooks = (TierOutlook("spot-cheap"), TierOutlook("on-demand-cheap", overhead=50.0, reserve=400.0))
    net = SafetyNet(view(outlooks=outlooks, tiers=("spot-cheap", "on-demand-cheap")))
    assert (net.overhead, net.reserve) == (50.0, 400.0)
    assert net.latest == START + SLACK - 400.0 - 60.0
    assert net.start_until(net.spot[0]) == START + SLACK - 400.0 - 60.0 - LEAST_STAY
    assert SafetyNet(view()).reserve == 180.0


SLACK = 10 * HOUR


@pytest.mark.parametrize(
    ("given", "after"),
    [
        pytest.param({}, SLACK - 180.0 - 60.0, id="a start on the fallback and one interval"),
        pytest.param({"current": "spot-cheap"}, SLACK - 180.0 - 60.0, id="the same while an attempt runs"),
        pytest.param({"current": "spot-cheap", "capacity_lasts": True}, SLACK - 180.0, id="capacity lasts"),
        pytest.param(
            {"capacity_lasts": True},
            SLACK - 180.0 - 60.0,
            id="no attempt, so capacity that lasts does not count",
        ),
        pytest.param(
            {"current": "spot-cheap", "capacity_lasts": True, "starting": 30.0, "remaining": 20 * HOUR - 200.0},
            20.0 - 30.0,
            id="the rest of the start does not fit",
        ),
        pytest.param(
            {"current": "spot-cheap", "capacity_lasts": True, "starting": 20.0, "remaining": 20 * HOUR - 200.0},
            0.0,
            id="the rest of the start just fits",
        ),
    ],
)
def test_the_job_must_move_to_the_fallback_before_one_more_interval_could_miss_the_deadline(
    given: dict[str, Any], after: float
) -> None:
    assert SafetyNet(view(**given)).latest == pytest.approx(START + after)


def outlooks(**spot: Any) -> dict[str, Any]:
    """A view whose only spot tier has this outlook."""
    tiers = ("spot-cheap", "on-demand-cheap")
    return {
        "tiers": tiers,
        "outlooks": (TierOutlook("spot-cheap", **spot), TierOutlook("on-demand-cheap", overhead=180.0)),
    }


@pytest.mark.parametrize(
    ("given", "after"),
    [
        pytest.param(outlooks(overhead=300.0), SLACK - 180 - 300 - 60 - 300, id="it can stay as long as it starts"),
        pytest.param(outlooks(overhead=100.0), SLACK - 180 - 100 - 60 - LEAST_STAY, id="and for three minutes"),
        pytest.param({**outlooks(overhead=300.0), "capacity_lasts": True}, SLACK - 180 - 300, id="capacity lasts"),
        pytest.param(
            outlooks(overhead=300.0, overlaps=True), SLACK - 180 - 60 - 300, id="it starts beside the live attempt"
        ),
    ],
)
def test_a_spot_attempt_starts_only_if_it_and_the_move_back_fit(given: dict[str, Any], after: float) -> None:
    net = SafetyNet(view(**given))
    until = net.start_until(net.spot[0])
    assert until == pytest.approx(START + after)


def at_limit(late_by: float, **more: Any) -> TierView:
    """A view in which a spot attempt had to start so many seconds ago."""
    slack = 180.0 + 180.0 + 60.0 + LEAST_STAY
    return view(
        tiers=("spot-cheap", "on-demand-cheap"),
        deadline=START + 10 * HOUR + slack - late_by,
        **more,
    )


def test_at_its_limit_a_spot_attempt_may_still_start_and_after_it_not() -> None:
    for late_by, usable in ((0.0, True), (1.0, False)):
        net = SafetyNet(at_limit(late_by))
        assert (net.usable_spot is not None, net.final) == (usable, not usable)


@pytest.mark.parametrize(
    ("given", "usable"),
    [
        pytest.param({}, "spot-cheap", id="the cheapest whose capacity is unknown"),
        pytest.param({"capacity": {"spot-cheap": False}}, "spot-dear", id="the cheapest has none"),
        pytest.param({"failed_at": {"spot-cheap": 30.0}}, "spot-dear", id="it has just failed"),
        pytest.param({"failed_at": {"spot-cheap": RETRY_INTERVAL}}, "spot-cheap", id="it may be tried again"),
        pytest.param(
            {"failed_at": {"spot-cheap": 30.0}, "capacity": {"spot-cheap": True}},
            "spot-cheap",
            id="it has capacity now",
        ),
        pytest.param(
            {"failed_at": {"spot-cheap": RETRY_INTERVAL}, "waiting_since": START - 1.0, "current": "spot-dear"},
            "spot-dear",
            id="it failed before the live attempt waits",
        ),
        pytest.param({"available": frozenset({"spot-dear"})}, "spot-dear", id="the cheapest cannot be used"),
        pytest.param({"available": frozenset()}, None, id="none can be used"),
    ],
)
def test_the_usable_spot_tier_is_the_cheapest_that_has_or_may_have_capacity(
    given: dict[str, Any], usable: str | None
) -> None:
    found = SafetyNet(view(**given)).usable_spot
    assert (found.name if found else None) == usable


@pytest.mark.parametrize(
    ("given", "forced"),
    [
        pytest.param({"view": view()}, False, id="there is time"),
        pytest.param({"view": at_limit(0.0, capacity={"spot-cheap": False})}, False, id="a start fits"),
        pytest.param(
            {"view": at_limit(1.0, capacity={"spot-cheap": False})}, True, id="no start fits: nothing to wait for"
        ),
        pytest.param({"view": at_limit(1.0, current="spot-cheap")}, False, id="the live attempt may stay"),
        pytest.param({"view": at_limit(361.0, current="spot-cheap")}, True, id="the live attempt must stop"),
        pytest.param({"view": at_limit(360.0, current="spot-cheap")}, False, id="at its limit it may stay"),
        pytest.param({"view": at_limit(1.0, current="on-demand-cheap")}, True, id="it may not leave the fallback"),
        pytest.param({"view": at_limit(0.0, current="on-demand-cheap")}, False, id="it may just leave the fallback"),
        pytest.param({"view": at_limit(1.0, capacity_lasts=True)}, False, id="capacity lasts: a start needs less"),
    ],
)
def test_only_the_fallback_is_left_when_no_other_tier_can_meet_the_deadline(
    given: dict[str, TierView], forced: bool
) -> None:
    assert SafetyNet(given["view"]).forced is forced


def test_without_a_spot_tier_a_job_on_the_fallback_is_not_forced_to_it() -> None:
    assert not SafetyNet(view("on-demand-cheap", tiers=("on-demand-cheap",), remaining=30 * HOUR)).forced


CERTAIN = dict.fromkeys(NAMES, True)


def test_a_choice_is_reviewed_when_the_fallback_is_forced_or_a_start_no_longer_fits() -> None:
    net = SafetyNet(at_limit(-1000.0, capacity=CERTAIN))
    assert net.latest is not None
    choice = net.choice("spot-cheap", "why")
    assert (choice.tier, choice.why) == ("spot-cheap", "why")
    assert choice.review_at == pytest.approx(START + 1000.0 + JUST_AFTER, abs=EXACT)
    past = SafetyNet(at_limit(1.0, capacity=CERTAIN, current="spot-cheap"))
    assert past.choice("spot-cheap", "").review_at == (past.latest or 0.0) + JUST_AFTER, "the start is over"
    assert net.choice("on-demand-cheap", "").review_at is None, "the fallback needs no review"


def test_an_unknown_capacity_is_reviewed_when_its_tier_may_be_tried_again() -> None:
    net = SafetyNet(view(failed_at={"spot-cheap": 20.0, "spot-dear": 10.0}))
    assert net.choice("on-demand-cheap", "").review_at == START + 40.0
    known = SafetyNet(view(failed_at={"spot-cheap": 20.0}, capacity=CERTAIN))
    assert (known.certain, net.certain) == (True, False)
    assert known.choice("on-demand-cheap", "").review_at is None


WAIT_LIMIT = START + WAIT_SHARE * 20 * HOUR


AT_LIMIT: dict[str, Any] = {"remaining": None, "now": WAIT_LIMIT}
AFTER_LIMIT: dict[str, Any] = {"remaining": None, "now": WAIT_LIMIT + 1.0}


@pytest.mark.parametrize("policy", [Greedy(), UniformProgress(), registry.by_name("adaptive")])
@pytest.mark.parametrize(
    ("given", "tier"),
    [
        pytest.param({**AT_LIMIT}, "spot-cheap", id="spot capacity may come until the limit"),
        pytest.param({**AFTER_LIMIT}, "on-demand-cheap", id="no attempt starts on spot after it"),
        pytest.param({**AT_LIMIT, "current": "spot-cheap"}, "spot-cheap", id="an attempt waits until the limit"),
        pytest.param({**AFTER_LIMIT, "current": "spot-cheap"}, "on-demand-cheap", id="and then moves"),
        pytest.param(
            {**AFTER_LIMIT, "current": "spot-cheap", "capacity": {"spot-cheap": False}},
            "on-demand-cheap",
            id="it lacks nodes",
        ),
        pytest.param(
            {**AFTER_LIMIT, "current": "spot-cheap", "capacity": {"spot-cheap": True}}, "spot-cheap", id="it trains"
        ),
        pytest.param(
            {**AFTER_LIMIT, "current": "on-demand-cheap", "capacity": CERTAIN},
            "on-demand-cheap",
            id="it is there already",
        ),
        pytest.param({**AFTER_LIMIT, "trained": 2.0}, "spot-cheap", id="the time that it trained is no wait"),
        pytest.param({**AFTER_LIMIT, "deadline": None}, "spot-cheap", id="no deadline, no limit"),
    ],
)
def test_a_job_whose_work_is_unknown_waits_for_spot_capacity_for_a_share_of_its_time(
    policy: Policy, given: dict[str, Any], tier: str
) -> None:
    assert policy.choose(view(**given)).tier == tier


def test_a_wait_of_unknown_work_is_reviewed_at_its_limit() -> None:
    lacks = {"spot-cheap": False, "spot-dear": False}
    choice = Greedy().choose(view(remaining=None, capacity=lacks, tiers=NAMES[:4]))
    assert (choice.tier, choice.review_at) == (None, pytest.approx(WAIT_LIMIT, abs=1e-4))
    moved = Greedy().choose(view(capacity=lacks, tiers=NAMES[:4], **AFTER_LIMIT))
    assert moved.why == "the job has no spot capacity, and how much work it has is unknown"
