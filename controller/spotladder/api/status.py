"""The status of TieredJobs and CapacityTiers. Only the controller writes it.

All fields are optional, because a new object has no status. Times are RFC 3339. Money is in US dollars as decimal
text (Kubernetes objects have no exact fractions). `state` is the controller's stored state in the format of
`core.codec`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from spotladder.api.fields import LONGEST_LABEL, Timestamp
from spotladder.api.record import Record
from spotladder.core.model import Phase

MAX_TIERS = 256
"""Maximum number of tiers in a job's history, including removed ones. The bound limits the estimated cost of CEL
rules."""


MAX_COUNTS = 32
"""Maximum number of prices, and of durations by which the waits on a tier are counted."""


class StatusRecord(Record):
    """A status record. Accepts the Python names and the camelCase names of its fields. Unknown fields, which a newer
    controller has written, are ignored."""

    model_config = ConfigDict(extra="ignore", validate_by_name=True)


class Condition(StatusRecord):
    """A Kubernetes condition."""

    type: str = Field(description="Type of the condition, unique in the list.", max_length=316)
    status: Literal["True", "False", "Unknown"] = Field(description="True, False or Unknown.")
    reason: str = Field(description="Reason of the status, in CamelCase.", max_length=1024)
    message: str = Field(default="", description="Reason of the status, for people.", max_length=32768)
    last_transition_time: Timestamp = Field(description="Time of the last change of the status.")
    observed_generation: int | None = Field(default=None, description="Generation of the spec that this refers to.")


class TierStatus(StatusRecord):
    """History of one tier."""

    name: str = Field(max_length=LONGEST_LABEL, description="Name of the tier.")
    failures: int = Field(default=0, description="Worker pods lost on the tier that count towards maxFailures.")
    attempts: int = Field(default=0, description="Number of attempts on the tier.")
    node_seconds: float = Field(default=0, description="Node-seconds used on the tier.")
    cost: str = Field(default="0", description="Cost of the tier in USD, in the format of cost.spent.")
    last_reason: str = Field(default="", description="Reason why the last attempt on the tier ended.")
    spent: str = Field(default="", description="Reason why the tier is exhausted; empty while it can be used.")
    removed: bool = Field(
        default=False, description="True: the tier was removed from the spec. Its cost remains part of cost.spent."
    )


class AttemptStatus(StatusRecord):
    """One ended attempt."""

    number: int = Field(description="Number of the attempt, increasing.")
    tier: str = Field(default="", description="Tier of the attempt.")
    cluster: str = Field(default="", description="Cluster of the attempt.")
    started_at: Timestamp | None = Field(default=None, description="Time at which the attempt was planned.")
    running_at: Timestamp | None = Field(default=None, description="Time at which all workers were first ready.")
    ended_at: Timestamp | None = Field(default=None, description="Time at which the attempt ended.")
    reason: str = Field(default="", description="Reason why the attempt ended.")
    failures: int = Field(default=0, description="Worker pods lost during the attempt.")
    start_step: int = Field(default=0, description="Step from which the attempt resumed.")
    end_step: int = Field(
        default=0, description="Newest step that the attempt committed, or startStep without a commit."
    )


class ProgressStatus(StatusRecord):
    """The newest commit."""

    step: int = Field(default=0, description="Number of committed steps.")
    total: int = Field(default=0, description="Total number of steps; 0 if unknown.")
    committed_at: Timestamp | None = Field(default=None, description="Time of the newest commit.")
    uri: str = Field(default="", description="Address of the newest commit.")
    text: str = Field(default="", description="Progress as text: 120/500.")


class ElasticStatus(StatusRecord):
    """The size of an elastic job; unset until its program has started, and for other jobs."""

    workers: int = Field(description="Number of workers with which the program last started.")
    wanted: int = Field(description="Number of workers of the workload.")


class WaitingStatus(StatusRecord):
    """Why the job waits; unset while it does not wait."""

    reason: str = Field(description="Reason of the wait, as in the condition Provisioned.")
    message: str = Field(default="", description="Message of the scheduler, the autoscaler or Kueue.")
    since: Timestamp = Field(description="Time since which the job waits for this reason.")
    timer: str = Field(default="", description="Timeout that limits the wait; empty if none.")
    until: Timestamp | None = Field(default=None, description="Time at which the timeout expires.")
    then: str = Field(default="", description="Action after the timeout.")


class OtherAttemptStatus(StatusRecord):
    """An attempt beside the current one."""

    number: int = Field(description="Number of the attempt.")
    tier: str = Field(max_length=LONGEST_LABEL, description="Tier of the attempt.")
    cluster: str = Field(default="", description="Cluster of this tier.")


class StandbyStatus(OtherAttemptStatus):
    """The attempt that starts beside the current one and takes over from it; unset without one."""

    since: Timestamp = Field(description="Time at which the attempt was planned.")
    reason: str = Field(default="", description="Reason of the move, for example Policy or Hedged.")


class RemovedAttemptStatus(OtherAttemptStatus):
    """An attempt that has ended, or was given up, and whose objects still exist."""

    since: Timestamp = Field(description="Time at which the attempt ended.")
    nodes: int = Field(default=0, description="Number of nodes that it still holds, which are paid for.")


class CostStatus(StatusRecord):
    """Cost of the job so far."""

    spent: str = Field(
        default="", description='Cost in USD; ">12.30" if some prices are unknown, "unknown" if all are.'
    )
    on_demand_equivalent: str = Field(default="", description="Cost of the same nodes on demand, in USD.")
    savings_percent: str = Field(
        default="",
        description="Savings compared with an uninterrupted run on on-demand nodes, in percent; negative if the job "
        "costs more. Empty until the duration of a step is known, and unless all prices are known.",
    )
    uninterrupted: str = Field(
        default="",
        description="Estimated cost of the committed steps in an uninterrupted run on on-demand nodes, in USD.",
    )
    heads: str = Field(default="", description="Part of spent for the heads' nodes, in USD; empty if it is 0.")
    storage: str = Field(default="", description="Part of spent for stored commits, in USD; empty if it is 0.")
    egress: str = Field(
        default="",
        description="Part of spent for commits that attempts have read from another region, in USD; empty if it is 0.",
    )
    overlap: str = Field(
        default="",
        description="Part of spent for standby attempts, and for replacements while the workers that they replace "
        "still have their nodes, in USD; empty if it is 0.",
    )
    unpriced: list[str] = Field(default_factory=list, description="Tiers that were used while their price was unknown.")


class TieredJobStatus(StatusRecord):
    """Observed state of a TieredJob."""

    phase: Phase | None = Field(default=None, description="Pending, Running, Draining, Suspended, Succeeded or Failed.")
    message: str = Field(default="", description="Last event of the job, for people.")
    attempt: int = Field(default=0, description="Number of the current or last attempt.")
    tier: str = Field(default="", max_length=LONGEST_LABEL, description="Tier of the current or last attempt.")
    cluster: str = Field(default="", description="Cluster of this tier.")
    failures: int = Field(default=0, description="Worker pods lost so far, over all tiers.")
    observed_generation: int = Field(default=0, description="Generation of the spec that this refers to.")
    conditions: list[Condition] = Field(
        default_factory=list,
        description="Ready, Stalled, Valid, Provisioned, Running, Evicted, FellBack, Checkpointing, Completed, "
        "Degraded and DeadlineAtRisk.",
    )
    tiers: list[TierStatus] = Field(default_factory=list, max_length=MAX_TIERS, description="History of each tier.")
    attempts: list[AttemptStatus] = Field(default_factory=list, description="Newest ended attempts.")
    progress: ProgressStatus = Field(default_factory=ProgressStatus, description="The newest commit.")
    elastic: ElasticStatus | None = Field(
        default=None, description="With how many workers the program of an elastic job trains."
    )
    cost: CostStatus = Field(default_factory=CostStatus, description="Cost of the job so far.")
    standby: StandbyStatus | None = Field(
        default=None, description="The attempt that starts beside the current one and takes over from it."
    )
    removing: list[RemovedAttemptStatus] = Field(
        default_factory=list, description="Attempts that have ended, or were given up, and are being removed."
    )
    waiting: WaitingStatus | None = Field(default=None, description="Why the job waits, and until when.")
    state: str = Field(default="", description="Stored state of the controller. Do not read or edit it.")


class WaitCount(StatusRecord):
    """Waits of jobs for the nodes of a tier, over all jobs."""

    up_to: str = Field(description="The longest wait that is counted here, such as 5m, or longer.")
    count: int = Field(default=0, ge=0, description="Number of waits that took at most this long.")


class SeenPrice(StatusRecord):
    """A price that a tier has had."""

    since: Timestamp = Field(description="Time of the change to this price.")
    price: str = Field(pattern=r"^\d+(\.\d+)?$", description="Effective price in USD per node and hour.")


class CapacityTierStatus(StatusRecord):
    """Observed state of a CapacityTier."""

    conditions: list[Condition] = Field(default_factory=list, description="Valid, Available and Priced.")
    last_unavailable_at: Timestamp | None = Field(
        default=None, description="Last time at which the tier could not provide nodes."
    )
    last_available_at: Timestamp | None = Field(
        default=None, description="Last time at which all workers of a job on the tier became ready."
    )
    jobs_in_use: int = Field(default=0, description="TieredJobs that hold or wait for nodes of the tier.")
    nodes_in_use: int = Field(default=0, description="Nodes of the tier with pods of TieredJobs.")
    price: str = Field(default="", description="Effective price in USD per node and hour; empty if unknown.")
    on_demand_price: str = Field(default="", description="Price of the same node on demand; empty if unknown.")
    attempts: int = Field(default=0, description="Number of requests for nodes: of attempts, and for lost nodes.")
    refusals: int = Field(default=0, description="Number of requests that did not get nodes in time.")
    evictions: int = Field(default=0, description="Number of failures on the tier.")
    evictions_per_node_hour: str = Field(default="", description="Node losses per node and hour.")
    availability: str = Field(default="", description="Share of requests that got nodes in time, 0 to 1.")
    observed_hours: str = Field(default="", description="Node-hours of observation.")
    waits: list[WaitCount] = Field(
        default_factory=list,
        max_length=MAX_COUNTS,
        description="Time from an attempt's request until all of its workers were ready. Old waits are discounted.",
    )
    prices: list[SeenPrice] = Field(
        default_factory=list, max_length=MAX_COUNTS, description="Newest prices of the tier, oldest first."
    )
