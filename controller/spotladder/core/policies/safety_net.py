"""What the deadline-aware policies share: which tiers are spot, which one is the fallback, and when only it is left.

Rules
 1. The fallback is the cheapest open tier that is not spot. One that just had no capacity comes after the others.
    Without such a tier, the fallback is the last open tier.
 2. The job may be off the fallback only while it can still finish there in time, if the policy is asked again after one
    decision interval, the job has made no progress until then, and its attempt takes the whole grace period to stop.
 3. A deadline or a remaining work that is not known forces nothing.

Work that is not committed counts as work to do, so a lost node never invalidates rule 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from spotladder.core.model import CapacityType, Instant, Seconds, Tier, TierChoice, TierView


@dataclass(frozen=True)
class SafetyNet:
    """The fallback of a view and the time that is left for anything else."""

    view: TierView

    @cached_property
    def fallback(self) -> Tier | None:
        """The tier that finishes the job in time; None when no tier is open."""
        tiers = [tier for tier in self.view.tiers if tier.name in self.view.open]
        steady = [tier for tier in tiers if tier.capacity_type is not CapacityType.SPOT]
        if steady:
            return min(steady, key=lambda tier: (self._failed_recently(tier), _price(tier)))
        return tiers[-1] if tiers else None

    @cached_property
    def spot(self) -> tuple[Tier, ...]:
        """The other open tiers, cheapest first; the user's order among equal prices."""
        fallback = self.fallback
        return tuple(
            sorted((tier for tier in self.view.tiers if tier.name in self.view.open and tier != fallback), key=_price)
        )

    @cached_property
    def usable_spot(self) -> Tier | None:
        """The cheapest spot tier that has capacity now, or may have it."""
        return next((tier for tier in self.spot if self.may_start(tier)), None)

    def may_start(self, tier: Tier) -> bool:
        """Whether an attempt on this tier is worth a try: it has capacity, or nothing is known against that."""
        capacity = self.view.outlook(tier.name).capacity
        return (
            tier.name in self.view.available and capacity is not False and (capacity or not self._failed_recently(tier))
        )

    def _failed_recently(self, tier: Tier) -> bool:
        spells = self.view.spells(tier.name)
        return bool(spells) and not spells[-1].available and self.view.now - spells[-1].until < RETRY_INTERVAL

    @property
    def has_capacity(self) -> bool:
        """Whether the live attempt runs, or its tier is not known to be without capacity."""
        view = self.view
        return view.live and view.current in view.open and view.outlook(view.current).capacity is not False

    @property
    def on_fallback(self) -> bool:
        """Whether the live attempt is on the fallback."""
        fallback = self.fallback
        return self.view.live and fallback is not None and self.view.current == fallback.name

    @cached_property
    def overhead(self) -> Seconds:
        """The overhead of a new attempt on the fallback."""
        return self.view.outlook(self.fallback.name).overhead if self.fallback else 0.0

    @cached_property
    def slack(self) -> Seconds | None:
        """Time until the deadline that is not needed for the remaining work or for the live attempt to stop."""
        view = self.view
        if view.deadline is None or view.remaining is None:
            return None
        return view.deadline - view.now - view.remaining - view.grace

    @cached_property
    def latest(self) -> Instant | None:
        """When the job must move to the fallback at the latest; None without a deadline or a known remaining work."""
        return None if self.slack is None else self.view.now + self.slack - self.overhead - self.view.interval

    def choice(self, tier: str | None, why: str) -> TierChoice:
        """The choice of this tier, to be reviewed when only the fallback is left. It never exhausts its tier: these
        policies come back to a tier that had no capacity."""
        on_fallback = self.fallback is not None and tier == self.fallback.name
        return TierChoice(tier, why=why, review_at=None if on_fallback else self.latest, keeps_open=True)

    @property
    def forced(self) -> bool:
        """Whether only the fallback can still meet the deadline."""
        latest = self.latest
        return latest is not None and self.view.now > latest + EXACT


RETRY_INTERVAL: Seconds = 60.0
"""How long a tier that had no capacity is taken to have none, when nothing else is known."""

EXACT: Seconds = 1e-6
"""Rounding of sums of times."""


def _price(tier: Tier) -> float:
    return tier.price.per_node_hour if tier.price.known else float("inf")
