"""Pools of a cluster: their instances, disruption settings and prices."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, model_validator

from spotladder.api.capacitytier import TaintEffect
from spotladder.api.fields import (
    Duration,
    FilledText,
    Finding,
    LabelKey,
    LabelValue,
    Name,
    PositiveDuration,
    Quantity,
    Switch,
    Usd,
    choice,
    refused,
    several,
)
from spotladder.api.record import Record
from spotladder.core.model import CapacityType
from spotladder_infra.topology.value_types import Family, SecondaryBootDisk, TpuTopology


class PoolRole(StrEnum):
    """Which Ray pods a pool is for."""

    WORKERS = "workers"
    HEADS = "heads"


class Accelerator(Record):
    """The accelerators of one node."""

    type: FilledText = Field(
        description="The accelerator, as in nvidia-a10g or nvidia-h100-80gb; on gcp by its name in Compute Engine."
    )
    count: Annotated[int, Field(ge=1, le=16)] | None = Field(
        default=None, description="Accelerators of one node. Default: those of the instance type."
    )


class Taint(Record):
    """A Kubernetes taint."""

    key: LabelKey = Field(description="The taint's key.")
    value: LabelValue = Field(default="", description="The taint's value.")
    effect: Annotated[TaintEffect, choice(TaintEffect)] = Field(
        default=TaintEffect.NO_SCHEDULE, description="NoSchedule, PreferNoSchedule or NoExecute."
    )


class PoolLimits(Record):
    """The limits of a pool."""

    nodes: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Maximum number of nodes at the same time."
    )
    cpu: Quantity | None = Field(default=None, description="CPUs of all nodes.")
    memory: Quantity | None = Field(default=None, description="Memory of all nodes.")


class Disruption(Record):
    """The conditions under which Karpenter may remove a node."""

    consolidate_after: PositiveDuration = Field(
        default=1800.0,
        description="Time that a node stays empty before Karpenter removes it. Longer than a restart of a job: "
        "otherwise a scarce spot node is lost between two attempts.",
    )
    expire_after: PositiveDuration | None = Field(
        default=None, description="Age at which a node is replaced. Default: never."
    )
    termination_grace_period: PositiveDuration | None = Field(
        default=None,
        description="Time after which a node that is being deleted is terminated even if pods still drain. Pods with a "
        "longer grace period are deleted at once. Not set by default: the cloud's notice is the limit.",
    )


class Reservation(Record):
    """Capacity that is paid for in advance."""

    ids: list[FilledText] = Field(
        default_factory=list, description="Capacity reservations: ids (AWS, cr-…) or names (Google Cloud)."
    )
    capacity_blocks: list[FilledText] = Field(
        default_factory=list, description="Capacity Blocks for ML (AWS), by the id of their reservation: cr-…"
    )
    tags: dict[str, str] = Field(
        default_factory=dict, description="Tags of the reservations (AWS), instead of their ids."
    )

    @model_validator(mode="after")
    def _names_one(self) -> Reservation:
        if not (self.ids or self.capacity_blocks or self.tags):
            raise refused("names no reservation: specify ids, capacityBlocks or tags")
        return self


class NodeClassRef(Record):
    """A node class of Karpenter."""

    group: FilledText = Field(description="API group of the node class, such as karpenter.k8s.aws.")
    kind: FilledText = Field(description="Kind of the node class, such as EC2NodeClass.")
    name: Name = Field(description="Its name.")


class PoolPrice(Record):
    """The price of a node."""

    per_node_hour: Usd = Field(description="USD per node and hour.")
    on_demand_per_node_hour: Usd | None = Field(
        default=None, description="USD per hour for the same node on demand: the basis of savings."
    )


DISK_IOPS = 3000
"""IOPS of every gp3 volume without a surcharge."""

DISK_IOPS_PER_MIB = 4
"""IOPS that a gp3 volume needs for each MiB/s of throughput."""


class Pool(Record):
    """One kind of capacity in one cluster: a NodePool or ComputeClass, and the CapacityTier of the same name."""

    name: Name = Field(description="The name of the NodePool or ComputeClass, and of the CapacityTier.")
    role: Annotated[PoolRole, choice(PoolRole)] = Field(
        default=PoolRole.WORKERS, description="workers (tainted, one CapacityTier) or heads (Ray heads, not tainted)."
    )
    capacity_type: Annotated[CapacityType, choice(CapacityType)] = Field(
        default=CapacityType.ON_DEMAND, description="spot, on-demand or reserved."
    )
    instance_types: list[FilledText] = Field(default_factory=list, description="Instance types that may be used.")
    families: list[Family] = Field(
        default_factory=list, description="Instance families that may be used, instead of types."
    )
    zones: list[FilledText] = Field(default_factory=list, description="Zones. Default: those of the cluster.")
    accelerator: Accelerator | None = Field(default=None, description="The accelerators of one node.")
    limits: PoolLimits = Field(default_factory=PoolLimits, description="Maximum size of the pool.")
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict, description="Labels of the nodes.")
    taints: list[Taint] = Field(
        default_factory=list, description="Taints in addition to the pool's own; tiers tolerate them."
    )
    startup_taints: list[Taint] = Field(
        default_factory=list, description="Taints that a DaemonSet removes when the node is ready for work."
    )
    disruption: Disruption = Field(
        default_factory=Disruption, description="The conditions under which Karpenter may remove a node."
    )
    reservation: Reservation | None = Field(default=None, description="The reservations of a reserved pool.")
    flex_start: Switch = Field(
        default=False,
        description="Flex-start of Google Cloud: GKE waits for capacity, and ends the nodes after seven days at most "
        "(compute-class).",
    )
    tpu_topology: TpuTopology | None = Field(
        default=None,
        description="The topology of a slice of TPUs, as in 2x4 or 2x2x4, for instance types with TPUs; a slice of "
        "several nodes is created and lost as a whole (compute-class).",
    )
    efa: Switch = Field(
        default=False, description="Elastic Fabric Adapter interfaces on all network cards (AWS). Needs one zone."
    )
    placement_group: FilledText | None = Field(
        default=None, description="A cluster placement group (AWS) or compact placement policy (GKE). Needs one zone."
    )
    image: FilledText | None = Field(
        default=None, description="The node image, as in al2023@v20260903 (AWS). Default: a pinned release of al2023."
    )
    disk_gi_b: Annotated[int, Field(ge=30, le=16384)] = Field(
        default=200, alias="diskGiB", description="Size of the root volume in GiB."
    )
    disk_throughput: Annotated[int, Field(ge=125, le=1000)] = Field(
        default=600,
        description="Throughput of the root volume in MiB/s (AWS). From 600 on, nodes pull and unpack images in "
        "parallel; with a slower volume that would take longer.",
    )
    secondary_boot_disk: SecondaryBootDisk | None = Field(
        default=None,
        description="A disk image with container images, as a second boot disk (GKE): "
        "projects/PROJECT/global/images/NAME.",
    )
    pre_pull: list[FilledText] = Field(
        default_factory=list, description="Images that a DaemonSet pulls onto every node of the pool."
    )
    node_class: NodeClassRef | None = Field(
        default=None,
        description="A node class of the Karpenter that runs in the cluster: the pool gets a NodePool (existing "
        "and kind only).",
    )
    notice: Duration | None = Field(
        default=None, description="Time between notice and reclaim; the cloud's by default."
    )
    price: PoolPrice | None = Field(
        default=None,
        description="Price of a node. Default: the current price for spot nodes of AWS, else the price table.",
    )
    selectors: dict[LabelKey, LabelValue] = Field(
        default_factory=dict, description="Labels of the existing nodes (existing and kind only)."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Pool:
        reserved = self.capacity_type is CapacityType.RESERVED
        found = []
        if self.reservation is not None and not reserved:
            found.append(Finding(("reservation",), "needs capacityType reserved", at_key=True))
        if self.flex_start and (self.role is PoolRole.HEADS or self.capacity_type is not CapacityType.ON_DEMAND):
            found.append(Finding(("flexStart",), "is for on-demand workers only: remove it", at_key=True))
        if self.role is PoolRole.HEADS and self.capacity_type is CapacityType.SPOT:
            message = "must not be spot for role heads: the loss of a head ends the attempt; use on-demand"
            found.append(Finding(("capacityType",), message))
        if found:
            raise several(found)
        return self

    @property
    def disk_iops(self) -> int:
        """IOPS of the root volume (AWS)."""
        return max(DISK_IOPS, DISK_IOPS_PER_MIB * self.disk_throughput)
