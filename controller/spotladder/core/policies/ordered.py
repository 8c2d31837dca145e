"""The default policy: uses the tiers in the user's order, each until it is exhausted."""

from __future__ import annotations

from spotladder.core.model import TierChoice, TierView


class Ordered:
    """Keep the current tier while it is open. Then use the next tier that can be used now, or else the next open tier.

    After the last tier, try the tiers that were skipped because they could not be used at the time.
    """

    def choose(self, view: TierView) -> TierChoice:
        """The tier to use. A new attempt skips a tier that cannot be used now if a later one can; a live attempt
        stays."""
        names = [tier.name for tier in view.tiers]
        if view.live and view.current in view.open:
            return TierChoice(view.current)
        start = names.index(view.current) if view.current in names else 0
        open_ones = [name for name in names[start:] + names[:start] if name in view.open]
        usable = [name for name in open_ones if name in view.available]
        return TierChoice(next(iter(usable or open_ones), None))
