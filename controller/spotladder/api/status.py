"""The status of our objects: what the controller writes and what `kubectl get` shows. Nobody else writes it.

Everything is optional, since an object has no status at first. Times are RFC 3339, money is in US dollars as decimal
text (Kubernetes objects have no exact fractions), and `state` is the controller's memory in `core.codec`'s form.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from spotladder.api.fields import LONGEST_LABEL, Timestamp
from spotladder.api.record import Record
from spotladder.core.model import Phase

MOST_TIERS = 256
"""Tiers that a job may have had in its life, edits included. A bound, so that rules about them may be long."""


class StatusRecord(Record):
    """Written by us in Python, read from the cluster: both spellings of a field's name are right."""

    model_config = ConfigDict(validate_by_name=True)


class Condition(StatusRecord):
    """One aspect of an object's state, as Kubernetes writes them."""

    type: str = Field(description="Which aspect; one entry for each.", max_length=316)
    status: Literal["True", "False", "Unknown"] = Field(description="True, False or Unknown.")
    reason: str = Field(description="Why, in one word.", max_length=1024)
    message: str = Field(default="", description="Why, in a sentence.", max_length=32768)
    last_transition_time: Timestamp = Field(description="When the status last changed.")
    observed_generation: int | None = Field(default=None, description="Which generation of the spec this is about.")


class TierStatus(StatusRecord):
    """What happened on one tier so far."""

    name: str = Field(max_length=LONGEST_LABEL, description="The tier's name.")
    failures: int = Field(default=0, description="Worker pods lost there, counted towards maxFailures.")
    attempts: int = Field(default=0, description="Attempts made there.")
    node_seconds: float = Field(default=0, description="Seconds of nodes held there.")
    cost: str = Field(default="0", description="USD spent there; as in cost.spent.")
    last_reason: str = Field(default="", description="Why the last attempt there ended.")
    spent: str = Field(default="", description="Why the tier is not used again; empty while it may be.")
    removed: bool = Field(
        default=False, description="True: the spec has no such tier any more. Its cost stays part of cost.spent."
    )


class AttemptStatus(StatusRecord):
    """One attempt that is over."""

    number: int = Field(description="The attempt's number; it only grows.")
    tier: str = Field(default="", description="The tier it ran on.")
    cluster: str = Field(default="", description="The cluster it ran in.")
    started_at: Timestamp | None = Field(default=None, description="When it was planned.")
    running_at: Timestamp | None = Field(default=None, description="When it first had all its workers.")
    ended_at: Timestamp | None = Field(default=None, description="When it was over.")
    reason: str = Field(default="", description="Why it ended.")
    failures: int = Field(default=0, description="Worker pods lost in it.")
    start_step: int = Field(default=0, description="The step it resumed from.")
    end_step: int = Field(default=0, description="The newest step that was committed when it ended.")


class ProgressStatus(StatusRecord):
    """The newest commit."""

    step: int = Field(default=0, description="Steps that are done and committed.")
    total: int = Field(default=0, description="Steps in all; 0 when the program does not say.")
    committed_at: Timestamp | None = Field(default=None, description="When the newest commit was made.")
    uri: str = Field(default="", description="Where the newest commit lies.")
    text: str = Field(default="", description="The same for people: 120/500.")


class WaitingStatus(StatusRecord):
    """Why the job waits. Nothing, while it does not."""

    reason: str = Field(description="Why, in one word, as in the condition Provisioned.")
    message: str = Field(default="", description="Why, in the words of the scheduler, the autoscaler or Kueue.")
    since: Timestamp = Field(description="Since when this is the reason.")
    timer: str = Field(default="", description="The limit that runs meanwhile; empty when none does.")
    until: Timestamp | None = Field(default=None, description="When that limit is reached.")
    then: str = Field(default="", description="What follows when it is.")


class CostStatus(StatusRecord):
    """What the job has cost so far."""

    spent: str = Field(
        default="", description='USD; ">12.30" when a part of it has no known price, "unknown" when nothing has.'
    )
    on_demand_equivalent: str = Field(default="", description="USD that the same nodes would have cost on demand.")
    savings_percent: str = Field(
        default="", description="How much less that is, in percent; empty when not all prices are known."
    )
    unpriced: list[str] = Field(
        default_factory=list, description="Tiers that were used while their price was not known."
    )


class TieredJobStatus(StatusRecord):
    """How far the job is."""

    phase: Phase | None = Field(default=None, description="Pending, Running, Draining, Suspended, Succeeded or Failed.")
    message: str = Field(default="", description="What happened last, in a sentence.")
    attempt: int = Field(default=0, description="The number of the live or last attempt.")
    tier: str = Field(default="", max_length=LONGEST_LABEL, description="The tier of the live or last attempt.")
    cluster: str = Field(default="", description="The cluster that this tier is in.")
    failures: int = Field(default=0, description="Worker pods lost so far, over all tiers.")
    observed_generation: int = Field(default=0, description="Which generation of the spec this is about.")
    conditions: list[Condition] = Field(
        default_factory=list,
        description="Valid, Provisioned, Running, Evicted, FellBack, Checkpointing, Completed and Degraded.",
    )
    tiers: list[TierStatus] = Field(
        default_factory=list, max_length=MOST_TIERS, description="What happened on each tier so far."
    )
    attempts: list[AttemptStatus] = Field(default_factory=list, description="The newest finished attempts.")
    progress: ProgressStatus = Field(default_factory=ProgressStatus, description="The newest commit.")
    cost: CostStatus = Field(default_factory=CostStatus, description="What the job has cost so far.")
    waiting: WaitingStatus | None = Field(default=None, description="Why the job waits, and what follows when.")
    state: str = Field(default="", description="The controller's memory. Not for reading, never to be edited.")


class CapacityTierStatus(StatusRecord):
    """What is known of the capacity."""

    conditions: list[Condition] = Field(default_factory=list, description="Valid, Available and Priced.")
    last_unavailable_at: Timestamp | None = Field(default=None, description="When it last could not be had.")
    jobs_in_use: int = Field(default=0, description="TieredJobs that hold or wait for nodes of it now.")
    nodes_in_use: int = Field(default=0, description="Nodes of it that hold pods of our jobs now.")
    price: str = Field(default="", description="USD per node and hour that is counted with; empty when not known.")
    on_demand_price: str = Field(default="", description="The same node's price on demand; empty when not known.")
    attempts: int = Field(default=0, description="Attempts that asked for it.")
    refusals: int = Field(default=0, description="Attempts that did not get it in time.")
    evictions: int = Field(default=0, description="Failures counted on it.")
    evictions_per_node_hour: str = Field(default="", description="How often a node of it was lost, per hour.")
    availability: str = Field(default="", description="The share of attempts that got it in time, 0 to 1.")
    observed_hours: str = Field(default="", description="For how many node hours it has been observed.")
