"""Policies choose tiers; they keep nothing on themselves and never break an invariant of the lifecycle."""

from __future__ import annotations

from typing import Protocol

from spotladder.core.model import TierChoice, TierView


class Policy(Protocol):
    """Chooses the tier for the next attempt, or for the live one to move to."""

    def choose(self, view: TierView) -> TierChoice:
        """The tier to be on now. A tier that is not in `view.open` is never used, whatever is returned."""
