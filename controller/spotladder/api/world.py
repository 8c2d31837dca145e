"""The world file of local mode: which pools of nodes this machine pretends to have, and how they fail."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from spotladder.api.fields import (
    Count,
    Duration,
    FilledText,
    Name,
    Rate,
    Usd,
    WholeNumber,
    choice,
    refused,
)
from spotladder.api.record import Record
from spotladder.core.model import CapacityType

MOST_NODES_PER_POOL = 64


class PoolPrice(Record):
    """What a pool's node is taken to cost."""

    per_node_hour: Usd = Field(description="USD per node and hour.")
    on_demand_per_node_hour: Usd | None = Field(
        default=None,
        description="USD per hour for the same node on demand, the yardstick for savings. Default: perNodeHour.",
    )


class Interruptions(Record):
    """When nodes are taken away: given times or steps, a random rate, or a recorded trace."""

    at: list[Duration] | None = Field(
        default=None, description="One node is taken at each of these times after the start of the run."
    )
    at_steps: list[Annotated[WholeNumber, Field(ge=1)]] | None = Field(
        default=None,
        description="One node is taken when the job has done each of these steps on this pool: the same story on a "
        "machine of any speed.",
    )
    hazard_per_hour: Rate | None = Field(
        default=None, description="Each node is taken at random, on average this many times an hour."
    )
    seed: Count | None = Field(
        default=None, description="Repeats the same random interruptions (with hazardPerHour). Default: 0."
    )
    trace: FilledText | None = Field(
        default=None, description="A recorded trace of the pool's availability (path, relative to the world file)."
    )
    speedup: Rate | None = Field(
        default=None, gt=0, description="How many times faster the trace is played (with trace). Default: 1."
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Interruptions:
        if sum(given is not None for given in (self.at, self.at_steps, self.hazard_per_hour, self.trace)) != 1:
            raise refused("needs exactly one of at, atSteps, hazardPerHour and trace")
        if self.seed is not None and self.hazard_per_hour is None:
            raise refused("seed goes with hazardPerHour")
        if self.speedup is not None and self.trace is None:
            raise refused("speedup goes with trace")
        return self


class Unavailable(Record):
    """A time in which the pool gives no new node."""

    from_: Duration = Field(default=0.0, alias="from", description="When it begins, after the start of the run.")
    to: Duration | None = Field(default=None, description="When it ends; never when absent.")

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> Unavailable:
        if self.to is not None and self.to <= self.from_:
            raise refused("to must be later than from")
        return self


class Pool(Record):
    """Nodes of one kind."""

    capacity_type: Annotated[CapacityType, choice(CapacityType)] = Field(
        default=CapacityType.ON_DEMAND, description="How it is bought: spot, on-demand or reserved."
    )
    nodes: WholeNumber = Field(
        default=1, ge=0, le=MOST_NODES_PER_POOL, description="How many nodes the pool has at most; each is a process."
    )
    cpus_per_node: WholeNumber = Field(default=1, ge=1, le=1024, description="CPUs that each node offers to Ray.")
    price: PoolPrice | None = Field(default=None, description="What a node is taken to cost; nothing when absent.")
    provision_delay: Duration = Field(default=0.0, description="How long the pool takes to give a node.")
    notice: Duration = Field(
        default=30.0,
        description="How long before it is killed a node is told. 0s: it is killed without a word.",
    )
    interruptions: Interruptions | None = Field(default=None, description="When nodes are taken away; never if absent.")
    unavailable: list[Unavailable] = Field(
        default_factory=list, description="Times in which the pool gives no new node."
    )


class World(Record):
    """What this machine pretends to be in local mode."""

    pools: dict[Name, Pool] = Field(min_length=1, description="The pools by name; a job's capacityTier names one.")
