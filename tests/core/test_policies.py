"""The ordered policy as a table, and how policies are found."""

from __future__ import annotations

import pytest

from spotladder.core.model import Progress, TierView
from spotladder.core.policies import registry
from spotladder.core.policies.ordered import Ordered
from spotladder.errors import InvalidSpec
from tests.core.builders import START, tier


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
def test_ordered(current: str, open_tiers: str, available: str, live: bool, chosen: str | None) -> None:
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


def test_policies_are_found_by_name() -> None:
    assert isinstance(registry.by_name("ordered"), Ordered)


def test_an_unknown_policy_names_the_installed_ones() -> None:
    with pytest.raises(InvalidSpec, match=r"spec\.policy\.name: no policy is called 'orderd'; installed are: ordered"):
        registry.by_name("orderd")
