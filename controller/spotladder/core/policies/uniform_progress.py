"""`uniform-progress`: uses spot until it is lost, and on-demand whenever the job is behind uniform progress to its
deadline.

Source: Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under Deadlines", NSDI 2024.

Rules, with the work C0, the time R0 from submission to deadline, the finished work p at time t, and the overhead d
 1. Safety net: use only the fallback once no other tier can meet the deadline.
 2. Exploitation: stay on spot until it is lost.
 3. Use spot capacity when it is available; from on-demand only when p ≥ (t + 2d)·C0/R0.
 4. Otherwise, stay on on-demand.
 5. With neither, wait while p ≥ t·C0/R0; else on-demand.
"""

from __future__ import annotations

from spotladder.core.model import Seconds, Tier, TierChoice, TierView
from spotladder.core.policies.safety_net import EXACT, JUST_AFTER, SafetyNet


class UniformProgress:
    """Without a deadline, or while the remaining work is unknown, uniform progress is undefined: the job waits for
    spot capacity, as long as the safety net allows."""

    def choose(self, view: TierView) -> TierChoice:
        """The tier to use, or None to wait for spot capacity."""
        net = SafetyNet(view)
        fallback, spot = net.fallback, net.usable_spot
        if fallback is None:
            return net.choice(None, "no tier is open")
        if net.forced or not net.spot:
            return net.choice(fallback.name, net.why_forced if net.forced else "the job has no spot tier left")
        if net.on_fallback:
            return self._from_fallback(net, spot)
        if net.has_capacity:
            return net.choice(view.current, "the job stays on spot until it is lost")
        if spot is not None:
            return net.choice(spot.name, "spot capacity may be available")
        lead = ahead(view)
        if lead < -EXACT:
            why = "the job is behind uniform progress and no spot capacity is available"
            return net.choice(fallback.name, why)
        why = "waits for spot capacity: the job is ahead of uniform progress"
        return net.choice(net.waiting, why, view.now + lead + JUST_AFTER)

    def _from_fallback(self, net: SafetyNet, spot: Tier | None) -> TierChoice:
        """Leave on-demand for spot capacity that is known to be available, once the job is two overheads ahead. If the
        job trains until the spot attempt is ready, the capacity need not be known."""
        view, lead = net.view, ahead(net.view)
        if spot is None or not (view.outlook(spot.name).overlaps or view.outlook(spot.name).capacity):
            return net.choice(view.current, "no spot capacity is known to be available")
        if lead < 2.0 * net.overhead - EXACT:
            why = "the job is not far enough ahead of uniform progress to leave on-demand"
            return net.choice(view.current, why)
        found = "is available" if view.outlook(spot.name).capacity else "may be available"
        # A job that trains until the spot attempt is ready loses its lead again until its next commit.
        stays_at = view.now + lead - 2.0 * net.overhead + JUST_AFTER
        return net.choice(spot.name, f"spot capacity {found} and the job is ahead of uniform progress", stays_at)


def ahead(view: TierView) -> Seconds:
    """The seconds by which the job is ahead of uniform progress; infinity if uniform progress is undefined."""
    if view.deadline is None or view.work is None or view.remaining is None or view.work <= 0:
        return float("inf")
    length = view.deadline - view.submitted_at
    return (view.work - view.remaining) * length / view.work - (view.now - view.submitted_at)
