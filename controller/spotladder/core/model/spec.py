"""What the user asks for: the job's spec, resolved, with its tiers and their prices."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from spotladder.core.model.units import Instant, Seconds

FOR_EVER = -1
"""`max_failures` of a tier that is never left because of lost pods."""


class CapacityType(StrEnum):
    """How capacity is bought; Karpenter's label values."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"
    RESERVED = "reserved"


class Handover(StrEnum):
    """When the next attempt may start while the last one is not confirmed gone."""

    FENCED = "Fenced"  # at once: the commit log fences the old one
    WHEN_GONE = "WhenGone"  # never: the program does not use the commit log


class FailureUnit(StrEnum):
    """What counts as one failure."""

    POD = "Pod"  # each lost pod
    INTERRUPTION = "Interruption"  # all losses until the job is whole again


class Exhausted(StrEnum):
    """What happens after the last tier."""

    FAIL = "Fail"
    RESTART = "Restart"  # begin again at the first tier, with fresh counts
    WAIT = "Wait"  # hold nothing for the longest provisionTimeout, then as Restart


class UpdateStrategy(StrEnum):
    """When a change of the spec that changes pods (image, workers, resources, …) takes effect on a running attempt."""

    NOW = "Now"  # commit, stop, and start the next attempt on the same tier
    AT_NEXT_ATTEMPT = "AtNextAttempt"  # whenever the next attempt starts for another reason


class OnInsufficientCapacity(StrEnum):
    """What a provisioner's explicit refusal means."""

    WAIT = "wait"  # nothing: provisionTimeout decides
    FALLBACK = "fallback"  # the tier is exhausted at once


@dataclass(frozen=True, slots=True)
class Price:
    """USD per node and hour. `on_demand` is what the same node costs on demand, the yardstick for savings. One that is
    not `known` is no price of 0: what is held meanwhile is counted, and what it costs is not claimed to be known."""

    per_node_hour: float = 0.0
    on_demand: float = 0.0
    known: bool = True


@dataclass(frozen=True, slots=True)
class Tier:
    """One entry of a job's ordered tiers. `notice` is how long before a reclaim its cloud says so; 0: not known.
    `template` is a digest of the part of the spec that the pods of an attempt on this tier are made from; "" where
    pods never change (a local run). `queue_timeout` is how long an attempt may wait for quota in an admission queue;
    None: without limit."""

    name: str
    max_failures: int = 0
    provision_timeout: Seconds = 600.0
    capacity_type: CapacityType = CapacityType.ON_DEMAND
    price: Price = Price()
    on_insufficient_capacity: OnInsufficientCapacity = OnInsufficientCapacity.WAIT
    notice: Seconds = 0.0
    template: str = ""
    queue_timeout: Seconds | None = None


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What the user asked for, resolved: tiers with their prices, all defaults filled in.

    `workers` is the number of worker pods of an attempt that is planned now. `submitted_at` is when the job was
    created; `max_duration` counts from there. `budget` is in USD. `settle` is how long after a program's failure the
    loss of a pod may still come to light: until then the failure is not called the program's own.
    `contact_timeout` is how long pods on silent nodes are not counted as lost while the loss of contact is more likely
    than the loss of the nodes. `start_timeout` is how long an attempt may take to be ready once every pod has its node
    and its image.

    `work` is how long the job trains in all when nothing interrupts it, None where that is not known. `overhead` is how
    long an attempt takes until it makes progress, not counting the wait for capacity. `decision_interval` is the
    longest time between two decisions: a policy keeps so much time in reserve.
    """

    tiers: tuple[Tier, ...]
    workers: int = 1
    submitted_at: Instant = 0.0
    recovery_timeout: Seconds = 90.0
    stall_timeout: Seconds = 600.0
    grace: Seconds = 90.0
    settle: Seconds = 0.0
    contact_timeout: Seconds = 100.0
    start_timeout: Seconds = 1800.0
    handover: Handover = Handover.FENCED
    update_strategy: UpdateStrategy = UpdateStrategy.NOW
    failure_unit: FailureUnit = FailureUnit.POD
    backoff_limit: int | None = None
    application_failures: int = 0
    exhausted: Exhausted = Exhausted.FAIL
    deadline: Instant | None = None
    max_duration: Seconds | None = None
    budget: float | None = None
    suspend: bool = False
    work: Seconds | None = None
    overhead: Seconds = 0.0
    decision_interval: Seconds = 60.0

    def tier(self, name: str) -> Tier | None:
        """The tier of that name, if the spec still has it."""
        return next((tier for tier in self.tiers if tier.name == name), None)
