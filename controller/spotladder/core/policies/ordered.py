"""The default policy: tiers in the user's order, each until it is spent."""

from __future__ import annotations

import math

from spotladder.core.model import TierChoice, TierView


class Ordered:
    """Stay while the tier is open; then the next one that can be used now; then the next one that is open at all.

    After the last tier come those that were passed over because they could not be used at the time.
    """

    def choose(self, view: TierView) -> TierChoice:
        """The tier to be on. A tier that cannot be used now is passed over when a later one can, but never left."""
        names = [tier.name for tier in view.tiers]
        if view.live and view.current in view.open:
            return TierChoice(view.current, holds_until=math.inf, regardless_of_spot=True)
        start = names.index(view.current) if view.current in names else 0
        open_ones = [name for name in names[start:] + names[:start] if name in view.open]
        usable = [name for name in open_ones if name in view.available]
        return TierChoice(next(iter(usable or open_ones), None))
