"""The nodes of all zones: which attempts hold them, and which of them are reclaimed. Shared by all jobs of a world.

When the trace of a zone drops below the nodes that are held there, nodes at random get a notice; they are lost when it
ends.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from random import Random

from spotladder.core.model import Instant, Seconds
from spotladder.errors import InvalidSpec
from spotladder.sim.world.grants import Grants
from spotladder.sim.world.zone import Zone, ZonePlan

START: Instant = 1_600_000_000.0
"""Epoch seconds of the start of a run: any fixed value, so that runs can be repeated."""


@dataclass(eq=False)
class MarketNode:
    """One node. It joins at `up_at` and a pod on it is ready at `ready_at`. `gone_at` is when it is reclaimed, once
    that is announced."""

    zone: Zone
    up_at: Seconds
    ready_at: Seconds
    noticed_at: Seconds | None = None
    gone_at: Seconds | None = None


@dataclass
class Market:
    """Provides nodes, announces their end and reclaims them. `now` is in seconds since the start of the run. `grants`
    are those of all jobs."""

    zones: dict[str, Zone]
    random: Random
    now: Seconds = 0.0
    grants: Grants = field(default_factory=Grants)
    _held: list[MarketNode] = field(default_factory=list)

    @classmethod
    def of(cls, plans: Iterable[ZonePlan], *, duration: Seconds = math.inf, seed: int = 0) -> Market:
        """The zones of these plans, for `duration` seconds."""
        # Seeded on purpose: these numbers simulate a market and are no secret.
        return cls({plan.name: Zone(plan, duration) for plan in plans}, Random(seed))  # noqa: S311

    def zone(self, name: str) -> Zone:
        """The zone of that name. Raises InvalidSpec for an unknown one."""
        if name not in self.zones:
            raise InvalidSpec(f"zone {name!r} is not in the world (expected one of {', '.join(self.zones)})")
        return self.zones[name]

    def free(self, name: str) -> int:
        """The number of further nodes that the zone can provide now. Nodes with a notice no longer count as capacity of
        the zone."""
        zone = self.zones[name]
        if zone.closed(self.now):
            return 0
        staying = sum(1 for node in self._held if node.zone is zone and node.gone_at is None)
        return max(0, zone.nodes(self.now) - staying)

    def give(self, name: str) -> MarketNode | None:
        """One more node of the zone; None when it has none to give. It joins after the zone's delay."""
        if not self.free(name):
            return None
        zone = self.zones[name]
        up_at = self.now + zone.plan.provision_delay
        node = MarketNode(zone, up_at, up_at + zone.plan.boot)
        self._held.append(node)
        return node

    def take_back(self, node: MarketNode) -> None:
        """The node is gone or no longer needed."""
        if node in self._held:
            self._held.remove(node)

    def next_event(self, watched: Collection[str]) -> Seconds:
        """The next time at which nodes are lost or one of these zones changes; infinity: never."""
        ends = (node.gone_at for node in self._held if node.gone_at is not None)
        changes = (self.zones[name].next_change(self.now) for name in watched)
        return min((*ends, *changes), default=math.inf)

    def advance(self, now: Seconds) -> None:
        """Set the time to `now`: nodes beyond the capacity of a zone get their notice."""
        self.now = now
        for zone in self.zones.values():
            staying = [node for node in self._held if node.zone is zone and node.gone_at is None]
            excess = len(staying) - zone.nodes(now)
            for node in self.random.sample(staying, excess) if excess > 0 else ():
                node.noticed_at, node.gone_at = now, now + zone.plan.notice
