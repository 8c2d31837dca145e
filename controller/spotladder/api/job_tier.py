"""One entry of a job's list of tiers, and what it changes of the workload."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from spotladder.api.fields import (
    EnvironmentName,
    FilledText,
    Name,
    PositiveDuration,
    PrivateText,
    Quantity,
    WholeNumber,
    choice,
)
from spotladder.api.record import Record
from spotladder.core.model import FOR_EVER, OnInsufficientCapacity


class Resources(Record):
    """Resources of a worker container."""

    requests: dict[str, Quantity] = Field(
        default_factory=dict, description="Resources that the scheduler reserves for the container."
    )
    limits: dict[str, Quantity] = Field(default_factory=dict, description="Maximum resources of the container.")


class TierOverrides(Record):
    """Changes to the workload on one tier."""

    image: FilledText | None = Field(default=None, description="Image of the program containers on this tier.")
    resources: Resources | None = Field(
        default=None, description="Resources of the program containers of workers on this tier."
    )
    env: dict[EnvironmentName, PrivateText] = Field(
        default_factory=dict, description="Environment variables on this tier; they override the template's."
    )


class GroupTier(Record):
    """What a group of pods that is not on the tier takes instead."""

    capacity_tier: Name = Field(
        description="The CapacityTier on whose nodes the pods of the group run, in the same cluster as the tier's. "
        "They are paid at its price."
    )


class JobTier(Record):
    """One capacity tier of a job."""

    name: Name = Field(description="Name of the tier, unique in the job; shown in status, logs and metrics.")
    capacity_tier: Name = Field(
        description="The CapacityTier to use. In local mode: a pool of the world file.",
    )
    max_failures: WholeNumber = Field(
        default=0,
        ge=FOR_EVER,
        description=(
            "Number of worker pods that may be lost on this tier, for any reason. The next loss moves the "
            "job to the next tier. -1: unlimited."
        ),
    )
    provision_timeout: PositiveDuration = Field(
        default=600.0,
        description="How long workers may be missing for lack of capacity before the job moves to the next tier.",
    )
    on_insufficient_capacity: Annotated[OnInsufficientCapacity, choice(OnInsufficientCapacity)] = Field(
        default=OnInsufficientCapacity.WAIT,
        description="When the provisioner reports that it has no capacity: wait (until provisionTimeout) or fallback"
        " (to the next tier, at once).",
    )
    queue: Name | None = Field(
        default=None,
        description="LocalQueue of Kueue in the job's namespace, in which the attempt waits for quota. Overrides the"
        " label kueue.x-k8s.io/queue-name of the template.",
    )
    queue_timeout: PositiveDuration | None = Field(
        default=None,
        description="How long an attempt may wait for quota before the job moves to the next tier. Default: without "
        "limit.",
    )
    overrides: TierOverrides = Field(default_factory=TierOverrides, description="Changes to the workload on this tier.")
    groups: dict[FilledText, GroupTier] = Field(
        default_factory=dict,
        description="Capacity of worker groups or replicated jobs beside the tier, by the name of the group, in the "
        "cluster of the tier. Default: the groups without accelerators, if others have them, with the node "
        "selectors of the template.",
    )
