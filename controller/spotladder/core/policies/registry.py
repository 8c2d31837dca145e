"""Finds policies by name: ours, and those that other packages offer under the entry point group below."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import cast

from spotladder.core.policies import Policy
from spotladder.errors import InvalidSpec

GROUP = "spotladder.policies"


def names() -> list[str]:
    """Names of all installed policies, sorted."""
    return sorted(point.name for point in entry_points(group=GROUP))


def by_name(name: str) -> Policy:
    """A new policy of that name; `InvalidSpec` if no installed package offers it."""
    for point in entry_points(group=GROUP):
        if point.name == name:
            return cast(Callable[[], Policy], point.load())()
    raise InvalidSpec(f"no policy is called {name!r}; installed are: {', '.join(names())}", path="spec.policy.name")
