"""Policies choose tiers. They have no state of their own and cannot break an invariant of the lifecycle."""

from __future__ import annotations

from typing import Protocol

from spotladder.core.model import TierChoice, TierView


class Policy(Protocol):
    """Chooses the tier for the next attempt, or for the live one to move to."""

    def choose(self, view: TierView) -> TierChoice:
        """The tier to use now. A tier that is not in `view.open` is never used, whatever the policy returns."""
