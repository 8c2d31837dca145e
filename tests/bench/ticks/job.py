"""The job, the tiers and the result of a run in the tick world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.model import Instant, JobSpec, Seconds, Tier

START: Instant = 1_600_000_000.0
"""Epoch seconds of the first tick: any fixed value, so that runs can be repeated."""


@dataclass(frozen=True, slots=True)
class TickTier:
    """A tier and its trace. `available[i]` says whether the whole gang has capacity in tick i; None: always.
    `prices[i]` is the price in tick i in USD per node-hour; None: the price of `tier` throughout."""

    tier: Tier
    available: Sequence[bool] | None = None
    prices: Sequence[float] | None = None

    def has(self, tick: int) -> bool:
        """Whether the gang has capacity in this tick."""
        return self.available is None or self.available[tick]

    def price(self, tick: int) -> float:
        """USD per node-hour in this tick."""
        return self.tier.price.per_node_hour if self.prices is None else self.prices[tick]


@dataclass(frozen=True, slots=True)
class TickJob:
    """A job of `work` seconds on one node that is to end `deadline` seconds after its start.

    Each start takes `overhead` seconds without progress. All times are whole seconds: one step of the job is one second
    of work.
    """

    tiers: tuple[TickTier, ...]
    work: int
    overhead: int
    deadline: int
    tick: int = 600

    def spec(self, tick: int = 0) -> JobSpec:
        """The job as the core sees it in this tick: with the current prices."""
        tiers = tuple(
            entry.tier
            if entry.prices is None
            else replace(entry.tier, price=replace(entry.tier.price, per_node_hour=entry.prices[tick]))
            for entry in self.tiers
        )
        limit = float(2 * self.deadline)
        return JobSpec(
            tiers=tiers,
            workers=1,
            submitted_at=START,
            deadline=START + self.deadline,
            stall_timeout=limit,
            recovery_timeout=limit,
            grace=0.0,
            work=float(self.work),
            overhead=float(self.overhead),
            decision_interval=float(self.tick),
            capacity_lasts=True,
        )

    @property
    def varying(self) -> bool:
        """Whether a price changes over time."""
        return any(entry.prices is not None for entry in self.tiers)


@dataclass(frozen=True, slots=True)
class TickResult:
    """Result of one run. `cost` is in USD, `finished` in seconds after the start (the deadline when it was missed)."""

    cost: float
    finished: Seconds
    met: bool
    evictions: int
    attempts: int


def cost_of(billed: Mapping[float, int]) -> float:
    """USD for these node-seconds, by their price in USD per node-hour."""
    return sum(price * seconds / HOUR for price, seconds in sorted(billed.items()))


NEVER: Seconds = 1e9
"""A provisionTimeout that never expires."""
