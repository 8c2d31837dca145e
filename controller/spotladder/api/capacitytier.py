"""CapacityTier: one kind of capacity in one place, with its price."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from spotladder.api.fields import (
    Count,
    Duration,
    FilledText,
    LabelKey,
    LabelValue,
    Name,
    Usd,
    WholeNumber,
    choice,
    refused,
)
from spotladder.api.record import API_VERSION, Metadata, Record
from spotladder.core.model import CapacityType


class Provider(StrEnum):
    """Whose nodes they are."""

    AWS = "aws"
    GCP = "gcp"
    AZURE = "azure"
    GENERIC = "generic"


class ApplyTo(StrEnum):
    """Which pods go onto the tier's nodes."""

    WORKERS = "Workers"
    WORKERS_AND_HEAD = "WorkersAndHead"


class PriceSource(StrEnum):
    """Who knows the price."""

    AWS = "aws"
    GCP = "gcp"


class TolerationOperator(StrEnum):
    """How a toleration compares."""

    EQUAL = "Equal"
    EXISTS = "Exists"


class TaintEffect(StrEnum):
    """What a taint does."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Toleration(Record):
    """A Kubernetes toleration."""

    key: str | None = Field(default=None, description="The taint's key; all keys when absent (with Exists).")
    operator: Annotated[TolerationOperator, choice(TolerationOperator)] = Field(
        default=TolerationOperator.EQUAL, description="Equal or Exists."
    )
    value: str | None = Field(default=None, description="The taint's value, with Equal.")
    effect: Annotated[TaintEffect, choice(TaintEffect)] | None = Field(
        default=None, description="NoSchedule, PreferNoSchedule or NoExecute; all when absent."
    )
    toleration_seconds: WholeNumber | None = Field(default=None, description="For how long, with NoExecute.")


class TierPrice(Record):
    """What a node costs: given here, or looked up."""

    per_node_hour: Usd | None = Field(default=None, description="USD per node and hour.")
    on_demand_per_node_hour: Usd | None = Field(
        default=None, description="USD per hour for the same node on demand: the yardstick for savings."
    )
    source: Annotated[PriceSource, choice(PriceSource)] | None = Field(
        default=None, description="Look the price up: aws (spot price history) or gcp (a table)."
    )
    table: FilledText | None = Field(default=None, description="The price table, with source gcp.")

    @model_validator(mode="after")
    def _given_or_looked_up(self) -> TierPrice:
        if (self.per_node_hour is None) == (self.source is None):
            raise refused("needs exactly one of perNodeHour and source")
        if (self.table is not None) != (self.source is PriceSource.GCP):
            raise refused("table goes with source gcp, and only with it")
        return self


class TierLimits(Record):
    """How much of the tier may be used."""

    nodes: Count | None = Field(default=None, description="Nodes in use at once, over all jobs.")


class CapacityTierSpec(Record):
    """What the capacity is, where it is and what it costs."""

    capacity_type: Annotated[CapacityType, choice(CapacityType)] = Field(
        default=CapacityType.ON_DEMAND, description="How it is bought: spot, on-demand or reserved."
    )
    provider: Annotated[Provider, choice(Provider)] = Field(
        default=Provider.GENERIC,
        description="Whose nodes: aws, gcp, azure or generic. It gives the default selectors, tolerations and notice.",
    )
    cluster: Name = Field(default="home", description="The cluster: an entry of the controller's cluster registry.")
    region: FilledText | None = Field(default=None, description="The region, for price and egress.")
    zones: list[FilledText] = Field(default_factory=list, description="Zones that may be used; all when empty.")
    instance_types: list[FilledText] = Field(
        default_factory=list, description="Instance types that may be used; all that fit when empty."
    )
    extra_selectors: dict[LabelKey, LabelValue] = Field(
        default_factory=dict,
        description="Node labels asked for beside the provider's own. With one of karpenter.sh/… the nodes are "
        "Karpenter's on any provider; with eks.amazonaws.com/nodegroup they are a managed node group's.",
    )
    extra_tolerations: list[Toleration] = Field(
        default_factory=list, description="Tolerations given beside the provider's own."
    )
    apply_to: Annotated[ApplyTo, choice(ApplyTo)] = Field(
        default=ApplyTo.WORKERS,
        description="Which pods run on these nodes: Workers (the head stays on on-demand capacity) or WorkersAndHead.",
    )
    head_selectors: dict[LabelKey, LabelValue] = Field(
        default_factory=dict, description="Node labels asked for by the head when it is not on this tier."
    )
    notice: Duration | None = Field(
        default=None,
        description="How long before a reclaim the cloud says so. Default: aws 120s, gcp and azure 30s, generic 0s.",
    )
    price: TierPrice | None = Field(default=None, description="What a node costs; nothing is known when absent.")
    egress_per_gi_b: Usd | None = Field(
        default=None, alias="egressPerGiB", description="USD per GiB read from a checkpoint bucket elsewhere."
    )
    limits: TierLimits = Field(default_factory=TierLimits, description="How much of the tier may be used.")


class CapacityTier(Record):
    """One kind of capacity in one place: what it is, how pods get there, what it costs."""

    api_version: Literal["spotladder.io/v1alpha1"] = Field(description=f"Always {API_VERSION}.")
    kind: Literal["CapacityTier"] = Field(description="Always CapacityTier.")
    metadata: Metadata = Field(description="The tier's name; tiers have no namespace.")
    spec: CapacityTierSpec = Field(description="What the capacity is, where it is and what it costs.")
    status: dict[str, Any] | None = Field(default=None, description="Set by the controller; ignored in files.")
