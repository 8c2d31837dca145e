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
    """One entry of a job's ordered tiers. `notice` is how long before a reclaim the cloud announces it, in seconds; 0
    if unknown. `template` is a digest of the part of the spec from which the pods of an attempt on this tier are
    created; "" if pods never change (a local run). `queue_timeout` is how long an attempt may wait for quota in an
    admission queue; None: without limit. `head_per_hour` is the price of the head's node in USD, and `egress_per_gib`
    what a GiB costs that an attempt on it reads from the checkpoint bucket. `wait` is how long jobs usually waited
    until all of their workers there were ready, in seconds; 0 if unknown. `prices` are the newest prices that it has
    had, oldest first. Tiers with the same `queue` may wait in the same admission queue. `auxiliary` are the groups of
    pods that are not on the tier, with the price of a node of each in USD; None: unknown.
    """

    name: str
    max_failures: int = 0
    provision_timeout: Seconds = 600.0
    capacity_type: CapacityType = CapacityType.ON_DEMAND
    price: Price = Price()
    on_insufficient_capacity: OnInsufficientCapacity = OnInsufficientCapacity.WAIT
    notice: Seconds = 0.0
    template: str = ""
    queue_timeout: Seconds | None = None
    head_per_hour: float = 0.0
    egress_per_gib: float = 0.0
    wait: Seconds = 0.0
    prices: tuple[PricePoint, ...] = ()
    queue: str = ""
    auxiliary: tuple[tuple[str, float | None], ...] = ()


@dataclass(frozen=True, slots=True)
class KnownCapacity:
    """What is known about the capacity of a tier before a job starts. `evictions` is the rate per node and hour, None
    if unknown. `observed` is the number of node-hours behind that rate, `unavailable` the reason why the tier is
    unavailable now, and `room` the maximum number of nodes. `availability` is the share of attempts that got nodes in
    time, `ready_after` the time in seconds from the request for a node until it is ready; both are None if unknown. In
    `closed` periods, each from a time to a time in seconds after the start of the job, the tier provides no new nodes.
    """

    evictions: float | None = None
    observed: float = 0.0
    unavailable: str = ""
    room: int | None = None
    availability: float | None = None
    ready_after: Seconds | None = None
    closed: tuple[tuple[Seconds, Seconds], ...] = ()


NOTHING_KNOWN = KnownCapacity()


@dataclass(frozen=True, slots=True)
class Overlap:
    """Bounds of the standby attempts of a job. `max_duration` is how long each may run beside the live attempt;
    `budget` is what all of them may cost together, in USD. None: no bound. `hedge_after` is how long an attempt waits
    for capacity until the next tier is started beside it; None: it is not."""

    max_duration: Seconds | None = None
    budget: float | None = None
    hedge_after: Seconds | None = None


@dataclass(frozen=True, slots=True)
class JobSpec:
    """The user's spec, resolved: tiers with their prices, all defaults filled in.

    `workers` is the number of worker pods of a new attempt, and `min_workers` the number with which it can train; None:
    all of them. `submitted_at` is when the job was created; `max_duration`
    counts from there. `budget` is in USD. `attribution_window` is how long after a program's failure the loss of a pod
    may still explain it. `contact_timeout` is how long pods on silent nodes do not count as lost while a loss of
    contact is more likely than the loss of the nodes. `start_timeout` is how long an attempt may take to be ready once
    every pod has its node and its image. `stall_timeout_given`: the user has set it, so it also ends a program
    without start entries that Ray reports as running. `suspend_reason` is the reason of the transitions that `suspend`
    causes. `overlap`: a planned move starts the next attempt as a standby beside the live one; None: after it.

    `work` is the total training time of the job without interruptions; None if unknown. `overhead` is the time that an
    attempt needs until it makes progress, without the wait for capacity; None: it is measured. `decision_interval` is
    the longest time between two decisions, which a policy keeps in reserve. `capacity_lasts`: capacity that an
    observation shows lasts for `decision_interval`, so that work done in it is never lost; true only in a world of
    ticks. `storage_per_gib_month` is the price of the checkpoint bucket in USD, and `keep` the number of newest
    commits that it keeps.

    `step_time` is training time that costs count for each step in addition to the time that passes; only in a world of
    the local mode, whose small program stands for one with longer steps.
    """

    tiers: tuple[Tier, ...]
    workers: int = 1
    submitted_at: Instant = 0.0
    recovery_timeout: Seconds = 90.0
    stall_timeout: Seconds = 600.0
    stall_timeout_given: bool = False
    grace: Seconds = 90.0
    attribution_window: Seconds = 0.0
    contact_timeout: Seconds = 100.0
    start_timeout: Seconds = 1800.0
    handover: Handover = Handover.FENCED
    update_strategy: UpdateStrategy = UpdateStrategy.NOW
    overlap: Overlap | None = None
    failure_unit: FailureUnit = FailureUnit.POD
    backoff_limit: int | None = None
    application_failures: int = 0
    exhausted: Exhausted = Exhausted.FAIL
    deadline: Instant | None = None
    max_duration: Seconds | None = None
    budget: float | None = None
    suspend: bool = False
    suspend_reason: Reason = Reason.SUSPEND_REQUESTED
    work: Seconds | None = None
    overhead: Seconds | None = None
    decision_interval: Seconds = 60.0
    capacity_lasts: bool = False
    min_workers: int | None = None
    storage_per_gib_month: float = 0.0
    keep: int = 1
    step_time: Seconds = 0.0

    def tier(self, name: str) -> Tier | None:
        """The tier with this name, if the spec still has it."""
        for tier in self.tiers:
            if tier.name == name:
                return tier
        return None
