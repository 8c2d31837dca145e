"""Clusters of a fleet: the cloud, the network, access to the API server, and the pools."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, model_validator

from spotladder.api.fields import FilledText, Finding, Name, Switch, Usd, choice, several
from spotladder.api.record import Record
from spotladder.core.model import CapacityType
from spotladder.versions import KUBERNETES
from spotladder_infra.topology.pool import Pool
from spotladder_infra.topology.value_types import BucketName, Cidr, Email, Minor


class Cloud(StrEnum):
    """How a cluster is provided."""

    AWS = "aws"
    GCP = "gcp"
    EXISTING = "existing"
    KIND = "kind"


CREATED = (Cloud.AWS, Cloud.GCP)
"""Clouds in which the cluster itself is created."""


class Autoscaler(StrEnum):
    """The controller that creates nodes for pending pods."""

    KARPENTER = "karpenter"
    COMPUTE_CLASS = "compute-class"


class Nat(StrEnum):
    """The internet access of private nodes."""

    SINGLE = "single"
    PER_ZONE = "per-zone"
    NONE = "none"


class Provided(StrEnum):
    """A component that the user runs in an existing cluster."""

    KUBERAY = "kuberay"


class Network(Record):
    """The cluster's network."""

    cidr: Cidr = Field(default="10.0.0.0/16", description="Addresses of the nodes (and of the pods, on AWS).")
    pods: Cidr | None = Field(default=None, description="Addresses of the pods (GKE). Default: 10.128.0.0/14.")
    services: Cidr | None = Field(
        default=None, description="Addresses of the services. Default: 172.20.0.0/16 (EKS), 10.96.0.0/20 (GKE)."
    )
    nat: Annotated[Nat, choice(Nat)] = Field(
        default=Nat.SINGLE, description="How nodes reach the internet: single, per-zone or none."
    )
    interface_endpoints: Switch = Field(
        default=False, description="Private endpoints of the AWS services that nodes call; needed with nat none."
    )


class Api(Record):
    """Access to the Kubernetes API server."""

    allowed: list[Cidr] = Field(
        default_factory=list, description="Public IPv4 ranges that may connect. Default: none, the endpoint is private."
    )
    admins: list[FilledText] = Field(
        default_factory=list,
        description="IAM roles or users (AWS) that administer the cluster. Default: its creator.",
    )


class SystemNodes(Record):
    """The on-demand nodes of Karpenter, CoreDNS, KubeRay and the controller."""

    instance_type: FilledText | None = Field(
        default=None, description="Instance type. Default: m7i.large (EKS), e2-standard-4 (GKE)."
    )
    count: Annotated[int, Field(ge=1, le=20)] = Field(default=2, description="Nodes (in each zone on GKE).")


class BudgetAlarm(Record):
    """An e-mail alert for the monthly cost of the cluster (AWS)."""

    monthly: Usd = Field(description="USD per month.")
    email: Email = Field(description="Address of the recipient.")


class Cluster(Record):
    """One Kubernetes cluster with its pools."""

    name: Name = Field(description="The cluster's name, also in the controller's registry.")
    cloud: Annotated[Cloud, choice(Cloud)] = Field(description="aws, gcp, existing or kind.")
    region: FilledText | None = Field(default=None, description="The region (aws, gcp).")
    zones: list[FilledText] = Field(default_factory=list, description="Zones. Default: the first three.")
    project: FilledText | None = Field(default=None, description="The Google Cloud project (gcp).")
    account: FilledText | None = Field(
        default=None, description="The AWS account id; any other account is refused (aws)."
    )
    context: FilledText | None = Field(default=None, description="The kubeconfig context (existing).")
    provides: list[Annotated[Provided, choice(Provided)]] = Field(
        default_factory=list,
        description="Components that you run there yourself: kuberay. No command installs, upgrades or removes them "
        "(existing).",
    )
    kubernetes: Minor = Field(default=KUBERNETES, description='The Kubernetes minor version, in quotes: "1.35".')
    autoscaler: Annotated[Autoscaler, choice(Autoscaler)] | None = Field(
        default=None,
        description="karpenter, which is alpha on gcp, or compute-class (gcp only). Default: karpenter on aws, "
        "compute-class on gcp.",
    )
    network: Network = Field(default_factory=Network, description="The cluster's network.")
    api: Api = Field(default_factory=Api, description="Access to the API server.")
    system: SystemNodes = Field(default_factory=SystemNodes, description="The nodes of the controllers.")
    addons: dict[str, FilledText] = Field(
        default_factory=dict,
        description="Versions of EKS add-ons, by name (AWS). Default: the recorded version for the Kubernetes version.",
    )
    bucket: BucketName | None = Field(default=None, description="The checkpoint bucket: an entry of spec.buckets.")
    budget_alarm: BudgetAlarm | None = Field(default=None, description="Budget alert by e-mail (AWS).")
    artifact_registry: Switch = Field(default=False, description="A repository for training images (gcp).")
    deletion_protection: Switch = Field(default=False, description="Refuse to delete the cluster while this is true.")
    pools: list[Pool] = Field(default_factory=list, description="The cluster's capacity.")

    @property
    def provisioner(self) -> Autoscaler:
        """The controller that creates the nodes of a created cluster: `autoscaler`, or the default of the cloud."""
        return self.autoscaler or (Autoscaler.COMPUTE_CLASS if self.cloud is Cloud.GCP else Autoscaler.KARPENTER)

    @model_validator(mode="after")
    def _fits_its_cloud(self) -> Cluster:
        needed = {
            Cloud.AWS: ("region",),
            Cloud.GCP: ("region", "project"),
            Cloud.EXISTING: ("context",),
            Cloud.KIND: (),
        }[self.cloud]
        given = self.model_fields_set
        found = [Finding((name,), f"is required for cloud {self.cloud}") for name in needed if not getattr(self, name)]
        for name, clouds in _ONLY_FOR.items():
            if name in given and self.cloud not in clouds:
                message = f"does not belong to cloud {self.cloud}, only to {', '.join(clouds)}: remove it"
                found.append(Finding((Cluster.model_fields[name].alias or name,), message, at_key=True))
        if self.cloud is Cloud.AWS and self.autoscaler is Autoscaler.COMPUTE_CLASS:
            found.append(Finding(("autoscaler",), "compute-class exists on gcp only: use karpenter"))
        for index, pool in enumerate(self.pools):
            found += [Finding(("pools", index, *path), message) for path, message in _pool_findings(self, pool)]
        if found:
            raise several(found)
        return self


_ONLY_FOR: dict[str, tuple[Cloud, ...]] = {
    "region": CREATED,
    "zones": CREATED,
    "project": (Cloud.GCP,),
    "account": (Cloud.AWS,),
    "context": (Cloud.EXISTING,),
    "provides": (Cloud.EXISTING,),
    "network": CREATED,
    "api": CREATED,
    "system": CREATED,
    "autoscaler": CREATED,
    "addons": (Cloud.AWS,),
    "budget_alarm": (Cloud.AWS,),
    "artifact_registry": (Cloud.GCP,),
    "deletion_protection": CREATED,
}


def _pool_findings(cluster: Cluster, pool: Pool) -> list[tuple[tuple[str | int, ...], str]]:
    found = _of_new_nodes(cluster, pool) if cluster.cloud in CREATED else _of_existing_nodes(cluster, pool)
    if pool.efa and cluster.cloud is not Cloud.AWS:
        found.append((("efa",), "exists on aws only: remove it"))
    if pool.secondary_boot_disk is not None and cluster.cloud is not Cloud.GCP:
        found.append((("secondaryBootDisk",), "exists on gcp only: remove it"))
    if pool.efa and not pool.instance_types:
        found.append((("efa",), "needs instanceTypes: the number of interfaces depends on the type"))
    for field, given in (("efa", pool.efa), ("placementGroup", pool.placement_group)):
        if given and len(pool.zones) != 1:
            found.append(((field,), f"needs one zone, got {len(pool.zones) or 'those of the cluster'}: set zones"))
    return found


def _of_new_nodes(cluster: Cluster, pool: Pool) -> list[tuple[tuple[str | int, ...], str]]:
    found: list[tuple[tuple[str | int, ...], str]] = []
    if not (pool.instance_types or pool.families):
        found.append(((), "names no instances: specify instanceTypes or families"))
    if pool.selectors:
        found.append((("selectors",), "selects existing nodes: use labels for nodes that Karpenter creates"))
    if pool.node_class is not None:
        found.append((("nodeClass",), "belongs to existing and kind: here the node class is made from the pool"))
    if pool.capacity_type is CapacityType.RESERVED and pool.reservation is None:
        found.append(((), "is reserved but names no capacity: specify reservation"))
    gcp_karpenter = cluster.cloud is Cloud.GCP and cluster.provisioner is Autoscaler.KARPENTER
    if gcp_karpenter and pool.capacity_type is CapacityType.RESERVED:
        found.append((("capacityType",), "reserved needs autoscaler compute-class: Karpenter on gcp has none"))
    return found


def _of_existing_nodes(cluster: Cluster, pool: Pool) -> list[tuple[tuple[str | int, ...], str]]:
    found: list[tuple[tuple[str | int, ...], str]] = []
    if not pool.selectors and pool.node_class is None:
        message = (
            f"selects no nodes: set selectors (labels of existing nodes) or nodeClass (Karpenter creates nodes) "
            f"for cloud {cluster.cloud}"
        )
        found.append(((), message))
    if pool.selectors and pool.node_class is not None:
        found.append((("selectors",), "selects existing nodes, and nodeClass creates nodes: remove one of them"))
    if pool.families:
        found.append((("families",), f"does not belong to cloud {cluster.cloud}: use instanceTypes"))
    return found
