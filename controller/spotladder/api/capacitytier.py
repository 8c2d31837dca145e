"""CapacityTier: one kind of capacity in one place, with its price."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from spotladder.api.fields import (
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

HOME = "home"
"""The name of the cluster with the TieredJobs."""


class Provider(StrEnum):
    """The cloud that provides the nodes."""

    AWS = "aws"
    GCP = "gcp"
    AZURE = "azure"
    GENERIC = "generic"


class ApplyTo(StrEnum):
    """The pods that run on the tier's nodes."""

    WORKERS = "Workers"
    WORKERS_AND_HEAD = "WorkersAndHead"


class PriceSource(StrEnum):
    """The source of a price lookup."""

    AWS = "aws"
    GCP = "gcp"


class TolerationOperator(StrEnum):
    """The operator of a toleration."""

    EQUAL = "Equal"
    EXISTS = "Exists"


class TaintEffect(StrEnum):
    """The effect of a taint."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Toleration(Record):
    """A Kubernetes toleration."""

    key: str | None = Field(default=None, description="Key of the taint. Default: all keys (with Exists).")
    operator: Annotated[TolerationOperator, choice(TolerationOperator)] = Field(
        default=TolerationOperator.EQUAL, description="Equal or Exists."
    )
    value: str | None = Field(default=None, description="Value of the taint (with Equal).")
    effect: Annotated[TaintEffect, choice(TaintEffect)] | None = Field(
        default=None, description="NoSchedule, PreferNoSchedule or NoExecute. Default: all effects."
    )
    toleration_seconds: WholeNumber | None = Field(
        default=None, description="Seconds for which the taint is tolerated (with NoExecute)."
    )

    @model_validator(mode="after")
    def _is_one_of_a_pod(self) -> Toleration:
        """The API server refuses every pod of the tier otherwise."""
        if not self.key and self.operator is TolerationOperator.EQUAL:
            raise refused("needs a key; operator: Exists without a key tolerates all taints")
        if self.value and self.operator is TolerationOperator.EXISTS:
            raise refused("has a value, which operator Exists does not compare: remove one of them")
        if self.toleration_seconds is not None and self.effect is not TaintEffect.NO_EXECUTE:
            raise refused("tolerationSeconds needs effect: NoExecute: set it, or remove tolerationSeconds")
        return self


class TierPrice(Record):
    """The price of a node: a fixed value or a lookup."""

    per_node_hour: Usd | None = Field(default=None, description="USD per node and hour.")
    on_demand_per_node_hour: Usd | None = Field(
        default=None, description="USD per hour for the same node on demand, the basis of savings."
    )
    head_per_hour: Usd | None = Field(
        default=None,
        description="USD per hour for the node of an attempt's head. Default: the head is not part of the cost.",
    )
    source: Annotated[PriceSource, choice(PriceSource)] | None = Field(
        default=None, description="Source of the price lookup: aws (spot price history) or gcp (a table)."
    )
    table: FilledText | None = Field(default=None, description="Address of the price table (with source gcp).")

    @model_validator(mode="after")
    def _given_or_looked_up(self) -> TierPrice:
        if (self.per_node_hour is None) == (self.source is None):
            raise refused("needs exactly one of perNodeHour and source")
        if (self.table is not None) != (self.source is PriceSource.GCP):
            raise refused("table is required with source gcp and not allowed otherwise")
        return self


class CapacityTierSpec(Record):
    """Type, location and price of the capacity."""

    capacity_type: Annotated[CapacityType, choice(CapacityType)] = Field(
        default=CapacityType.ON_DEMAND, description="Purchase option: spot, on-demand or reserved."
    )
    provider: Annotated[Provider, choice(Provider)] = Field(
        default=Provider.GENERIC,
        description="Cloud of the nodes, for selectors, tolerations and notice: aws, gcp, azure or generic.",
    )
    cluster: Name = Field(
        default=HOME, description="Cluster of the nodes: home, or a name under clusters in the controller's settings."
    )
    region: FilledText | None = Field(default=None, description="Region of the nodes, for prices and egress.")
    zones: list[FilledText] = Field(default_factory=list, description="Zones of the nodes. Default: all.")
    instance_types: list[FilledText] = Field(
        default_factory=list, description="Instance types of the nodes. Default: all that fit."
    )
    extra_selectors: dict[LabelKey, LabelValue] = Field(
        default_factory=dict,
        description="Node labels to select, in addition to the provider's. With karpenter.sh/… the tier selects "
        "Karpenter's nodes, with eks.amazonaws.com/nodegroup a managed node group.",
    )
    extra_tolerations: list[Toleration] = Field(
        default_factory=list, description="Tolerations, in addition to the provider's."
    )
    apply_to: Annotated[ApplyTo, choice(ApplyTo)] = Field(
        default=ApplyTo.WORKERS,
        description="Pods that run on these nodes: Workers (the head runs on on-demand capacity) or WorkersAndHead.",
    )
    head_selectors: dict[LabelKey, LabelValue] = Field(
        default_factory=dict, description="Node labels for the head if it does not run on this tier."
    )
    notice: Duration | None = Field(
        default=None,
        description="Time between the cloud's notice and the reclaim. Default: aws 120s, gcp and azure 30s, generic "
        "0s.",
    )
    price: TierPrice | None = Field(default=None, description="Price of a node. Default: unknown.")
    egress_per_gi_b: Usd | None = Field(
        default=None,
        alias="egressPerGiB",
        description="USD per GiB read from a checkpoint bucket in another region or cloud, at each start of the "
        "program. Default: nothing.",
    )


class CapacityTier(Record):
    """One kind of capacity in one cluster: its type, its node selection and its price."""

    api_version: Literal["spotladder.io/v1alpha1"] = Field(description=f"Always {API_VERSION}.")
    kind: Literal["CapacityTier"] = Field(description="Always CapacityTier.")
    metadata: Metadata = Field(description="Name of the tier. CapacityTiers are cluster-scoped.")
    spec: CapacityTierSpec = Field(description="Type, location and price of the capacity.")
    status: dict[str, Any] | None = Field(default=None, description="Set by the controller; ignored in files.")
