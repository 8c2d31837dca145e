"""The job's spec, resolved, with its tiers and their prices."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from spotladder.core.model.units import Instant, Seconds
from spotladder.core.reasons import Reason

FOR_EVER = -1
"""`max_failures` of a tier that is never left because of lost pods."""


class CapacityType(StrEnum):
    """How capacity is bought; the values of Karpenter's label."""

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
    INTERRUPTION = "Interruption"  # all losses until all workers are ready again


class Exhausted(StrEnum):
    """What happens after the last tier."""

    FAIL = "Fail"
    RESTART = "Restart"  # restart at the first tier, with the counts reset
    WAIT = "Wait"  # hold no nodes for the longest provisionTimeout, then like Restart


class UpdateStrategy(StrEnum):
    """When a change of the spec that changes pods (image, workers, resources, …) takes effect on a running attempt."""

    NOW = "Now"  # commit, stop, and start the next attempt on the same tier
    AT_NEXT_ATTEMPT = "AtNextAttempt"  # whenever the next attempt starts for another reason


class OnInsufficientCapacity(StrEnum):
    """What a provisioner's explicit refusal means."""

    WAIT = "wait"  # no effect: provisionTimeout decides
    FALLBACK = "fallback"  # the tier is exhausted at once


@dataclass(frozen=True, slots=True)
class Price:
    """USD per node and hour. `on_demand` is the on-demand price of the same node, the reference for savings. If the
    price is not `known`, node-seconds are counted but their cost is reported as unknown, not as 0."""

    per_node_hour: float = 0.0
    on_demand: float = 0.0
    known: bool = True

    @classmethod
    def listed(cls, per_node_hour: float, on_demand: float | None) -> Price:
        """A known price. Without an on-demand price, the node is compared with itself: nothing is saved."""
        return cls(per_node_hour, per_node_hour if on_demand is None else on_demand)


@dataclass(frozen=True, slots=True)
class PricePoint:
    """A price of a tier in USD per node and hour, and when it began."""

    since: Instant
    usd: float


@dataclass(frozen=True, slots=True)
class Tier:
    """One entry of a job's ordered tiers."""

    name: str
    max_failures: int = 0
    provision_timeout: Seconds = 600.0
    capacity_type: CapacityType = CapacityType.ON_DEMAND
    price: Price = Price()
    prices: tuple[PricePoint, ...] = ()
    """The newest prices that it has had, oldest first."""
    head_per_hour: float = 0.0
    """The price of the head's node in USD."""
    egress_per_gib: float = 0.0
    """What a GiB costs, in USD, that an attempt on it reads from the checkpoint bucket."""
    auxiliary: tuple[tuple[str, float | None], ...] = ()
    """The groups of pods that are not on the tier, with the price of a node of each in USD; None: unknown."""
    on_insufficient_capacity: OnInsufficientCapacity = OnInsufficientCapacity.WAIT
    notice: Seconds = 0.0
    """How long before a reclaim the cloud announces it; 0 if unknown."""
    wait: Seconds = 0.0
    """How long jobs usually waited until all of their workers there were ready; 0 if unknown."""
    queue: str = ""
    """Tiers with the same queue may wait in the same admission queue."""
    queue_timeout: Seconds | None = None
    """How long an attempt may wait for quota in an admission queue; None: without limit."""
    template: str = ""
    """A digest of the part of the spec from which the pods of an attempt on this tier are created; "" if pods never
    change (a local run)."""


@dataclass(frozen=True, slots=True)
class KnownCapacity:
    """What is known about the capacity of a tier before a job starts."""

    evictions: float | None = None
    """The rate of evictions per node and hour; None if unknown."""
    observed: float = 0.0
    """The number of node-hours behind that rate."""
    unavailable: str = ""
    """Why the tier is unavailable now."""
    room: int | None = None
    """The maximum number of nodes."""
    availability: float | None = None
    """The share of requests that got nodes in time; None if unknown."""
    ready_after: Seconds | None = None
    """The time from the request for a node until it is ready; None if unknown."""
    closed: tuple[tuple[Seconds, Seconds], ...] = ()
    """The periods, each from a time to a time after the start of the job, in which the tier provides no new nodes."""


NOTHING_KNOWN = KnownCapacity()


@dataclass(frozen=True, slots=True)
class Overlap:
    """Bounds of the standby attempts of a job; None: no bound."""

    max_duration: Seconds | None = None
    """How long each may run beside the live attempt."""
    budget: float | None = None
    """What all of them may cost together, in USD."""
    hedge_after: Seconds | None = None
    """How long an attempt waits for capacity until the next tier is started beside it; None: it is not."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """The user's spec, resolved: tiers with their prices, all defaults filled in."""

    tiers: tuple[Tier, ...]
    workers: int = 1
    """The number of worker pods of a new attempt."""
    min_workers: int | None = None
    """The number of workers with which it can train; None: all of them."""
    submitted_at: Instant = 0.0
    """When the job was created."""

    recovery_timeout: Seconds = 90.0
    stall_timeout: Seconds = 600.0
    stall_timeout_given: bool = False
    """The user has set it, so it also ends a program without start entries that Ray reports as running."""
    grace: Seconds = 90.0
    attribution_window: Seconds = 0.0
    """How long after a program's failure the loss of a pod may still explain it."""
    contact_timeout: Seconds = 100.0
    """How long pods on silent nodes do not count as lost while a loss of contact is more likely than the loss of the
    nodes."""
    start_timeout: Seconds = 1800.0
    """How long an attempt may take to be ready once every pod has its node and its image."""
    handover: Handover = Handover.FENCED
    update_strategy: UpdateStrategy = UpdateStrategy.NOW
    overlap: Overlap | None = None
    """A planned move starts the next attempt as a standby beside the live one; None: after it."""

    failure_unit: FailureUnit = FailureUnit.POD
    backoff_limit: int | None = None
    application_failures: int = 0
    exhausted: Exhausted = Exhausted.FAIL
    deadline: Instant | None = None
    max_duration: Seconds | None = None
    """Counts from `submitted_at`."""
    budget: float | None = None
    """In USD."""
    suspend: bool = False
    suspend_reason: Reason = Reason.SUSPEND_REQUESTED
    """The reason of the transitions that `suspend` causes."""

    work: Seconds | None = None
    """The total training time of the job without interruptions; None if unknown."""
    overhead: Seconds | None = None
    """The time that an attempt needs until it makes progress, without the wait for capacity; None: it is measured."""
    storage_per_gib_month: float = 0.0
    """The price of the checkpoint bucket in USD."""
    keep: int = 1
    """The number of newest commits that the bucket keeps."""
    decision_interval: Seconds = 60.0
    """The longest time between two decisions, which a policy keeps in reserve."""
    capacity_lasts: bool = False
    """Capacity that an observation shows lasts for `decision_interval`, so that work done in it is never lost; true
    only in a world of ticks."""
    step_time: Seconds = 0.0
    """Training time that costs count for each step in addition to the time that passes; only in a world of the local
    mode, whose small program stands for one with longer steps."""

    def tier(self, name: str) -> Tier | None:
        """The tier with this name, if the spec still has it."""
        for tier in self.tiers:
            if tier.name == name:
                return tier
        return None
