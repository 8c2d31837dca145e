"""The world file of local mode: the simulated pools of nodes, and when they lose nodes."""

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

MAX_NODES_PER_POOL = 64


class WorldPoolPrice(Record):
    """The simulated price of a pool's node."""

    per_node_hour: Usd = Field(description="USD per node and hour.")
    on_demand_per_node_hour: Usd | None = Field(
        default=None,
        description="USD per hour for the same node on demand, the basis of savings. Default: perNodeHour.",
    )


class Interruptions(Record):
    """When nodes are taken away: at given times or steps, at a random rate, or by a recorded trace."""

    at: list[Duration] | None = Field(
        default=None, description="One node is taken away at each of these times after the start of the run."
    )
    at_steps: list[Annotated[WholeNumber, Field(ge=1)]] | None = Field(
        default=None,
        description="One node is taken away when the job completes each of these steps on this pool. While another "
        "node is being replaced, the next one stays.",
    )
    hazard_per_hour: Rate | None = Field(
        default=None, description="Mean number of times per hour that a node is reclaimed, at random."
    )
    seed: Count | None = Field(default=None, description="Seed of the random interruptions. Default: 0.")
    trace: FilledText | None = Field(
        default=None, description="Path of a recorded availability trace, relative to the world file."
    )
    speedup: Rate | None = Field(
        default=None, gt=0, description="Factor by which the trace is replayed faster. Default: 1."
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Interruptions:
        if sum(given is not None for given in (self.at, self.at_steps, self.hazard_per_hour, self.trace)) != 1:
            raise refused("needs exactly one of at, atSteps, hazardPerHour and trace")
        if self.seed is not None and self.hazard_per_hour is None:
            raise refused("seed is only allowed with hazardPerHour")
        if self.speedup is not None and self.trace is None:
            raise refused("speedup is only allowed with trace")
        return self


class Unavailable(Record):
    """A period in which the pool provides no new node."""

    from_: Duration = Field(
        default=0.0, alias="from", description="Start of the period, relative to the start of the run."
    )
    to: Duration | None = Field(default=None, description="End of the period. Default: the end of the run.")

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> Unavailable:
        if self.to is not None and self.to <= self.from_:
            raise refused("to must be later than from")
        return self


class WorldPool(Record):
    """Nodes of one kind."""

    capacity_type: Annotated[CapacityType, choice(CapacityType)] = Field(
        default=CapacityType.ON_DEMAND, description="Purchase option: spot, on-demand or reserved."
    )
    nodes: WholeNumber = Field(
        default=1,
        ge=0,
        le=MAX_NODES_PER_POOL,
        description="Maximum number of nodes in the pool. Each node is a process.",
    )
    cpus_per_node: WholeNumber = Field(default=1, ge=1, le=1024, description="CPUs that each node offers to Ray.")
    gpus_per_node: WholeNumber | None = Field(
        default=None,
        ge=0,
        le=64,
        description="GPUs of this machine that each node offers to Ray. If there are more nodes than GPUs, nodes "
        "share them. Default: all.",
    )
    price: WorldPoolPrice | None = Field(default=None, description="Price of a node. Default: 0.")
    provision_delay: Duration = Field(default=0.0, description="Time that the pool takes to provide a node.")
    notice: Duration = Field(
        default=30.0,
        description="Time between the eviction notice of a node and its loss. 0s: the node is lost without notice.",
    )
    interruptions: Interruptions | None = Field(default=None, description="When nodes are taken away. Default: never.")
    unavailable: list[Unavailable] = Field(
        default_factory=list, description="Periods in which the pool provides no new node."
    )


class World(Record):
    """The simulated capacity of local mode."""

    pools: dict[Name, WorldPool] = Field(
        min_length=1, description="The pools by name, to which capacityTier of a job's tier refers."
    )
    step_time: Duration = Field(
        default=0.0,
        description="Training time that each step of a small program stands for, in costs and the report; nothing "
        "waits for it.",
    )
