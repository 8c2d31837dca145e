"""The slack that a policy needs in each tick of a trace, to wait for its capacity or to leave on-demand for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from spotladder.core.policies import Policy
from spotladder.core.policies.adaptive import Adaptive
from spotladder.core.policies.uniform_progress import UniformProgress
from tests.bench.ticks.adaptive_rule import adaptive_rule
from tests.bench.ticks.capacity import Capacity, capacity_of
from tests.bench.ticks.job import TickJob, TickTier


class SlackRule(Protocol):
    """`capacity` is that of the spot tier. All times are in seconds."""

    @property
    def capacity(self) -> Capacity:
        """The capacity of the spot tier."""

    def waits(self, tick: int, remaining: int) -> float:
        """The least slack with which a job with this remaining work waits in this tick, which has no capacity."""

    def leaves(self, tick: int, remaining: int) -> float:
        """The least slack with which a job with this remaining work leaves on-demand in this tick, which has
        capacity."""


@dataclass(frozen=True, slots=True)
class UniformProgressRule:
    """The job waits while its lead over uniform progress is not negative, and leaves with a lead of two overheads.
    `share` is the lead that each second of work must have as slack."""

    capacity: Capacity
    share: float
    overhead: int

    def waits(self, tick: int, remaining: int) -> float:
        """The slack without which the job is behind uniform progress."""
        return remaining * self.share

    def leaves(self, tick: int, remaining: int) -> float:
        """The slack with a lead of two overheads."""
        return remaining * self.share + 2 * self.overhead


def slack_rule(policy: Policy, job: TickJob, spot: TickTier, on_demand: TickTier) -> SlackRule | None:
    """The rule of this policy for a job on these two tiers; None if it has none."""
    if type(policy) not in {Adaptive, UniformProgress} or spot.available is None:
        return None
    capacity = capacity_of(tuple(spot.available), job.tick)
    if isinstance(policy, Adaptive):
        return adaptive_rule(policy.model, capacity, job, on_demand.tier.price, spot.tier.price)
    return UniformProgressRule(capacity, job.deadline / job.work - 1.0, job.overhead)
