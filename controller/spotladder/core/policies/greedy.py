"""`greedy`: uses spot capacity whenever it is available, on-demand only when no other tier can meet the deadline."""

from __future__ import annotations

from spotladder.core.model import TierChoice, TierView
from spotladder.core.policies.safety_net import SafetyNet


class Greedy:
    """Wait for spot capacity as long as the deadline allows, then finish on the fallback.

    Without a deadline it waits for spot capacity without limit.
    """

    def choose(self, view: TierView) -> TierChoice:
        """The cheapest spot tier with capacity; None to wait for it; the fallback if the deadline requires it."""
        net = SafetyNet(view)
        if net.forced and net.fallback:
            return net.choice(net.fallback.name, net.why_forced)
        if view.live and view.current in view.open and (net.on_fallback or not net.late):
            return net.choice(view.current, "the job stays on its tier until it is lost")
        if usable := net.usable_spot:
            return net.choice(usable.name, "spot capacity may be available")
        if not net.spot and net.fallback:
            return net.choice(net.fallback.name, "the job has no spot tier left")
        return net.choice(None, "waits for spot capacity")
