"""Clusters of a fleet: the cloud, the network, access to the API server, and the pools."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

from pydantic import Field, model_validator

from spotladder.api.capacitytier import Provider
from spotladder.api.fields import FilledText, Finding, Name, Switch, Usd, choice, several
from spotladder.api.problems import quoted
from spotladder.api.record import Record
from spotladder.core.model import CapacityType
from spotladder.versions import KUBERNETES
from spotladder_infra.facts.addons import OPTIONAL
from spotladder_infra.facts.regions import region_of
from spotladder_infra.topology.network import Network, network_findings
from spotladder_infra.topology.pool import Pool
from spotladder_infra.topology.value_types import (
    AccountId,
    BucketName,
    Cidr,
    ClusterName,
    Email,
    IamPolicy,
    IamPrincipal,
    KmsKey,
    Minor,
    ProjectId,
    RolePath,
    RolePrefix,
    is_aws_key,
    key_region,
)
from spotladder_infra.topology.volume import Volume


class Cloud(StrEnum):
    """How a cluster is provided."""

    AWS = "aws"
    GCP = "gcp"
    EXISTING = "existing"
    KIND = "kind"


WITH_STACK = (Cloud.AWS, Cloud.GCP)
"""Clouds whose clusters have a stack."""


class Autoscaler(StrEnum):
    """The controller that creates nodes for pending pods."""

    KARPENTER = "karpenter"
    COMPUTE_CLASS = "compute-class"


class Provided(StrEnum):
    """A component that the user runs in an existing cluster."""

    KUBERAY = "kuberay"


class Roles(Record):
    """The names and limits of the IAM roles that are created (AWS)."""

    path: RolePath | None = Field(default=None, description="Path of the roles, such as /platform/.")
    prefix: RolePrefix | None = Field(default=None, description="Beginning of the roles' names.")
    permissions_boundary: IamPolicy | None = Field(default=None, description="ARN of the permissions boundary.")


class Api(Record):
    """Access to the Kubernetes API server."""

    allowed: list[Cidr] = Field(
        default_factory=list, description="Public IPv4 ranges that may connect. Default: none, the endpoint is private."
    )
    admins: list[IamPrincipal] = Field(
        default_factory=list,
        description="IAM roles or users (AWS) that administer the cluster, by ARN. Default: its creator.",
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
    existing: ClusterName | None = Field(
        default=None,
        description="The name of an EKS or GKE cluster of yours, of a zonal one ZONE/NAME: the stack reads it, and "
        "creates only what it lacks, such as the bucket, identities, Karpenter's roles and queue (aws, gcp).",
    )
    region: FilledText | None = Field(
        default=None, description="The region; of an existing cluster, for the CapacityTiers (aws, gcp, existing)."
    )
    zones: list[FilledText] = Field(default_factory=list, description="Zones. Default: the first three.")
    project: ProjectId | None = Field(default=None, description="The Google Cloud project (gcp).")
    account: AccountId | None = Field(
        default=None, description="The AWS account id; any other account is refused (aws)."
    )
    context: FilledText | None = Field(default=None, description="The kubeconfig context (existing).")
    provider: Annotated[Provider, choice(Provider)] | None = Field(
        default=None,
        description="The cloud of the nodes: aws, gcp, azure or generic. It determines the labels and taints of spot "
        "nodes, and the time between a notice and the reclaim. Default: generic (existing).",
    )
    service_account_annotations: dict[Name, dict[str, FilledText]] = Field(
        default_factory=dict,
        description="Annotations of the service accounts of teams, by team, that give their pods an identity of the "
        "cloud (existing).",
    )
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
        description="Versions of EKS add-ons, by name (AWS). Default: the recorded version for the Kubernetes version. "
        f"Installed only if named: {', '.join(OPTIONAL)}.",
    )
    roles: Roles = Field(default_factory=Roles, description="Names and limits of the IAM roles (AWS).")
    kms_key: KmsKey | None = Field(
        default=None,
        description="Your key for the cluster's secrets, and on AWS for its logs. Default: a key of its own (aws), the "
        "keys of Google (gcp).",
    )
    bucket: BucketName | None = Field(default=None, description="The checkpoint bucket: an entry of spec.buckets.")
    budget_alarm: BudgetAlarm | None = Field(default=None, description="Budget alert by e-mail (AWS).")
    image_repository: Switch = Field(
        default=False,
        description="Create a repository for training images, in ECR or Artifact Registry, from which all nodes of the "
        "account or project may pull. It is deleted with the cluster (aws, gcp).",
    )
    deletion_protection: Switch = Field(default=False, description="Refuse to delete the cluster while this is true.")
    volumes: list[Volume] = Field(default_factory=list, description="File systems that the pods of teams mount.")
    pools: list[Pool] = Field(default_factory=list, description="The cluster's capacity.")

    @property
    def created(self) -> bool:
        """Whether the stack creates the cluster itself."""
        return self.cloud in WITH_STACK and self.existing is None

    @property
    def cloud_name(self) -> str:
        """The name of the cluster in its cloud."""
        return (self.existing or self.name).rpartition("/")[2]

    @property
    def location(self) -> str:
        """Where the cluster is in its cloud: its region, or the zone of a zonal cluster."""
        return (self.existing or "").rpartition("/")[0] or self.region or ""

    @property
    def provisioner(self) -> Autoscaler:
        """The controller that creates the nodes of pools: `autoscaler`, or the default of the cloud."""
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
            if name not in given or (name == "provides" and self.existing is not None):
                continue
            message = ""
            if self.cloud not in clouds:
                message = f"does not belong to cloud {self.cloud}, only to {', '.join(clouds)}: remove it"
            elif self.existing is not None and name in _OF_CREATED:
                message = "belongs to a cluster that spotladder creates: remove it, or remove existing"
            if message:
                found.append(Finding((Cluster.model_fields[name].alias or name,), message, at_key=True))
        zonal = self.location != (self.region or "")
        if zonal and (self.cloud is not Cloud.GCP or region_of(Cloud.GCP, self.location) != self.region):
            message = f"{quoted(self.location)} is not a zone of gcp in region {self.region}"
            found.append(Finding(("existing",), f"{message}: name the cluster alone, or correct the zone"))
        if self.cloud is Cloud.AWS and self.autoscaler is Autoscaler.COMPUTE_CLASS:
            found.append(Finding(("autoscaler",), "compute-class exists on gcp only: use karpenter"))
        if self.cloud in WITH_STACK:
            network = self.network if "network" in given else None
            found += network_findings(network, str(self.cloud), self.region, existing_cluster=not self.created)
            if self.network.existing is not None and not self.zones:
                message = "needs zones of the cluster: name the zones of the subnets in zones"
                found.append(Finding(("network", "existing"), message))
        found += _key_findings(self)
        for index, pool in enumerate(self.pools):
            found += [Finding(("pools", index, *path), message) for path, message, _ in _pool_findings(self, pool)]
        if found:
            raise several(found)
        return self


_ONLY_FOR: dict[str, tuple[Cloud, ...]] = {
    "existing": WITH_STACK,
    "region": (*WITH_STACK, Cloud.EXISTING),
    "zones": WITH_STACK,
    "project": (Cloud.GCP,),
    "account": (Cloud.AWS,),
    "context": (Cloud.EXISTING,),
    "provides": (Cloud.EXISTING,),
    "provider": (Cloud.EXISTING,),
    "service_account_annotations": (Cloud.EXISTING,),
    "network": WITH_STACK,
    "api": WITH_STACK,
    "system": WITH_STACK,
    "autoscaler": WITH_STACK,
    "addons": (Cloud.AWS,),
    "budget_alarm": (Cloud.AWS,),
    "roles": (Cloud.AWS,),
    "kms_key": WITH_STACK,
    "image_repository": WITH_STACK,
    "deletion_protection": WITH_STACK,
}


_OF_CREATED = ("api", "system", "addons", "kms_key", "deletion_protection")
"""Fields that do not belong to an existing cluster, and neither does the network on Google Cloud."""


def _key_findings(cluster: Cluster) -> Iterator[Finding]:
    """What is wrong with the cluster's key."""
    if cluster.kms_key is not None and cluster.cloud in WITH_STACK:
        if is_aws_key(cluster.kms_key) is not (cluster.cloud is Cloud.AWS):
            yield Finding(("kmsKey",), f"is a key of another cloud: name a key of {cluster.cloud}")
        elif cluster.region and key_region(cluster.kms_key) != cluster.region:
            yield Finding(("kmsKey",), f"is in {key_region(cluster.kms_key)}: name a key in {cluster.region}")


def _pool_findings(cluster: Cluster, pool: Pool) -> Iterator[Finding]:
    compute_class = cluster.cloud is Cloud.GCP and cluster.provisioner is Autoscaler.COMPUTE_CLASS
    yield from _of_new_nodes(cluster, pool) if cluster.cloud in WITH_STACK else _of_existing_nodes(cluster, pool)
    if pool.efa and cluster.cloud is not Cloud.AWS:
        yield Finding(("efa",), "exists on aws only: remove it")
    if not compute_class:
        for field, given in (("flexStart", pool.flex_start), ("tpuTopology", pool.tpu_topology)):
            if given:
                yield Finding((field,), "exists on gcp with autoscaler compute-class only: remove it")
    if pool.placement_group is not None and cluster.cloud is not Cloud.AWS and not compute_class:
        yield Finding(("placementGroup",), "exists on aws, and on gcp with autoscaler compute-class only: remove it")
    if pool.secondary_boot_disk is not None and cluster.cloud is not Cloud.GCP:
        yield Finding(("secondaryBootDisk",), "exists on gcp only: remove it")
    if pool.efa and not pool.instance_types:
        yield Finding(("efa",), "needs instanceTypes: the number of interfaces depends on the type")
    for field, given in (("efa", pool.efa), ("placementGroup", pool.placement_group)):
        if given and len(pool.zones) != 1:
            yield Finding((field,), f"needs one zone, got {len(pool.zones) or 'those of the cluster'}: set zones")


def _of_new_nodes(cluster: Cluster, pool: Pool) -> Iterator[Finding]:
    reserved = pool.capacity_type is CapacityType.RESERVED
    if not (pool.instance_types or pool.families):
        yield Finding((), "names no instances: specify instanceTypes or families")
    if pool.selectors:
        yield Finding(("selectors",), "selects existing nodes: use labels for nodes that Karpenter creates")
    if pool.node_class is not None:
        message = "is only for clouds existing and kind: here spotladder creates the node class from the pool"
        yield Finding(("nodeClass",), message)
    if reserved and pool.reservation is None:
        yield Finding((), "is reserved but names no capacity: specify reservation")
    if pool.reservation is not None and cluster.cloud is Cloud.GCP:
        for field, given in (("capacityBlocks", pool.reservation.capacity_blocks), ("tags", pool.reservation.tags)):
            if given:
                yield Finding(("reservation", field), "exists on aws only: name the reservations in ids")
    if reserved and cluster.cloud is Cloud.GCP and cluster.provisioner is Autoscaler.KARPENTER:
        message = "reserved needs autoscaler compute-class: Karpenter on gcp has none"
        yield Finding(("capacityType",), message)


def _of_existing_nodes(cluster: Cluster, pool: Pool) -> Iterator[Finding]:
    if not pool.selectors and pool.node_class is None:
        nodes = "selectors (labels of existing nodes) or nodeClass (Karpenter creates nodes)"
        yield Finding((), f"selects no nodes: set {nodes} for cloud {cluster.cloud}")
    if pool.selectors and pool.node_class is not None:
        yield Finding(("selectors",), "selects existing nodes, and nodeClass creates nodes: remove one of them")
    if pool.families:
        yield Finding(("families",), f"does not belong to cloud {cluster.cloud}: use instanceTypes")
