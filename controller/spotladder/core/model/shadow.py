"""What a shadow policy would have done, in a few numbers. `core.shadowing` has the rules."""

from __future__ import annotations

from dataclasses import dataclass

from spotladder.core.model.units import Seconds


@dataclass(frozen=True, slots=True)
class ShadowTier:
    """The time in which the shadow policy would have used this tier while the attempt was on another one.

    `actual_usd` is what the attempt's nodes have cost in this time and `estimated_usd` what the same nodes would have
    cost on this tier. `assumed` is the part of `seconds` for which this counts on capacity that nobody has seen, and
    `uncounted` the part without an estimate: the tier was known to have no capacity, the attempt had no nodes, or a
    price is unknown.
    """

    name: str
    seconds: Seconds = 0.0
    assumed: Seconds = 0.0
    uncounted: Seconds = 0.0
    actual_usd: float = 0.0
    estimated_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Shadow:
    """What the shadow policy of this name would have done since it was set.

    `tier` is the one that it would use since `JobState.clock`, while `attempt` is live; "" if it was not asked.
    `capacity` is whether that tier has capacity, None if unknown. `agreed` is the time in which this was the tier of
    the attempt. `moves` are the changes of the choice during an attempt, and `moves_usd` what they would have cost.
    """

    policy: str
    tier: str = ""
    attempt: int = 0
    capacity: bool | None = None
    agreed: Seconds = 0.0
    tiers: tuple[ShadowTier, ...] = ()
    moves: int = 0
    moves_usd: float = 0.0

    @property
    def differed(self) -> Seconds:
        """The time in which the policy would have used another tier."""
        return sum(tier.seconds for tier in self.tiers)

    @property
    def agreement(self) -> float | None:
        """The share of the time in which the policy would have used the tier of the attempt; None before any time."""
        asked = self.agreed + self.differed
        return self.agreed / asked if asked else None

    @property
    def saved_usd(self) -> float | None:
        """Estimated USD that the policy would have saved; negative if it would have cost more. None if the choices
        differed and none of that time could be estimated."""
        if self.tiers and all(tier.uncounted >= tier.seconds for tier in self.tiers):
            return None
        return sum(tier.actual_usd - tier.estimated_usd for tier in self.tiers) - self.moves_usd

    @property
    def lasting(self) -> Shadow:
        """The choice alone, without the numbers that change with time."""
        return Shadow(self.policy, self.tier, self.attempt)
