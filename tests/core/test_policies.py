"""The ordered policy as a table, and how policies are found."""

from __future__ import annotations

import pytest

from spotladder.core.lifecycle import decide
from spotladder.core.model import JobState, Observation, Progress, Stage, TierChoice, TierView
from spotladder.core.policies.ordered import Ordered
from spotladder.errors import InvalidSpec
from spotladder.policies import registry
from tests.core.builders import START, spec, tier


@pytest.mark.parametrize(
    ("current", "open_tiers", "available", "live", "chosen"),
    [
        ("", "abc", "abc", False, "a"),
        ("", "abc", "bc", False, "b"),
        ("", "abc", "", False, "a"),
        ("a", "abc", "abc", True, "a"),
        ("a", "abc", "bc", True, "a"),
        ("a", "bc", "bc", False, "b"),
        ("a", "bc", "c", False, "c"),
        ("b", "ac", "ac", False, "c"),
        ("b", "abc", "abc", False, "b"),
        ("c", "ab", "b", False, "b"),
        ("gone", "abc", "abc", True, "a"),
        ("a", "", "", False, None),
    ],
)
def test_the_ordered_policy_keeps_the_current_tier_or_takes_the_next_open_one(
    current: str, open_tiers: str, available: str, live: bool, chosen: str | None
) -> None:
    view = TierView(
        now=START,
        current=current,
        tiers=(tier("a"), tier("b"), tier("c")),
        records=(),
        open=frozenset(open_tiers),
        available=frozenset(available),
        live=live,
        progress=Progress(),
        deadline=None,
        spent_usd=0.0,
    )
    assert Ordered().choose(view).tier == chosen


class Restless:
    """A policy that always prefers the tier that the job is not on."""

    def choose(self, view: TierView) -> TierChoice:
        return TierChoice(next(tier.name for tier in view.tiers if tier.name != view.current))


def test_a_policy_that_always_prefers_another_tier_does_not_loop_within_one_decision() -> None:
    wanted, state = spec(tier("a", -1), tier("b", -1)), JobState()
    for number in (1, 2, 3):
        decision = decide(wanted, state, Observation(0), START, Restless())
        state = decision.state
        assert (state.stage, state.last_number, decision.actions) == (Stage.STARTING, number, ())


def test_policies_are_found_by_name() -> None:
    assert isinstance(registry.by_name("ordered"), Ordered)


def test_the_error_for_an_unknown_policy_lists_the_installed_ones() -> None:
    with pytest.raises(InvalidSpec, match=r"spec\.policy: no policy is called 'orderd'; installed are: .*ordered"):
        registry.by_name("orderd")
