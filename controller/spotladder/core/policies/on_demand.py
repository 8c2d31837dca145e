"""`on-demand`: always the fallback tier. The baseline for measured savings."""

from __future__ import annotations

from spotladder.core.model import TierChoice, TierView
from spotladder.core.policies.safety_net import SafetyNet


class OnDemand:
    """The cheapest tier that is not spot, from the first attempt to the last."""

    def choose(self, view: TierView) -> TierChoice:
        """The fallback tier; None if no tier is open."""
        net, why = SafetyNet(view), "the policy uses no spot capacity"
        return net.choice(net.fallback.name, why) if net.fallback else net.choice(None, why)
