"""Finds policies by name: the built-in ones, and those that other packages register under the entry point group
below."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, cast

from spotladder.core.policies import Policy
from spotladder.errors import InvalidSpec

if TYPE_CHECKING:
    from spotladder.core.policies.adaptive_tables import Model

GROUP = "spotladder.policies"

ADAPTIVE = "spotladder.core.policies.adaptive:Adaptive"
"""Entry point of the policy that needs the fitted model."""


def names() -> list[str]:
    """Names of all installed policies, sorted."""
    return sorted(point.name for point in entry_points(group=GROUP))


def by_name(name: str) -> Policy:
    """A new policy of that name. `adaptive` gets the model of the package, because the core reads no files.

    Raises InvalidSpec if no installed package offers the policy, or if it cannot be loaded.
    """
    for point in entry_points(group=GROUP):
        if point.name == name:
            try:
                made = cast(Callable[..., Policy], point.load())
                return made(_model()) if point.value == ADAPTIVE else made()
            except Exception as error:
                problem = f"cannot be loaded from {point.value} ({type(error).__name__}: {error})"
                raise InvalidSpec(f"{name!r} {problem}: repair its package", path="spec.policy") from error
    raise InvalidSpec(f"no policy is called {name!r}; installed are: {', '.join(names())}", path="spec.policy")


def _model() -> Model:
    from spotladder.policies import adaptive_model

    return adaptive_model.shipped()
