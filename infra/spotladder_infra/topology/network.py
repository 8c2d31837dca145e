"""The network of a created cluster: one of its own, or one of yours."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from spotladder.api.fields import FilledText, Finding, Switch, choice
from spotladder.api.record import Record
from spotladder_infra.topology.value_types import Cidr, GcpNetwork, GcpSubnetwork, SecurityGroupId, SubnetId, VpcId


class Nat(StrEnum):
    """The internet access of private nodes."""

    SINGLE = "single"
    PER_ZONE = "per-zone"
    NONE = "none"


class ExistingNetwork(Record):
    """A network of yours in which the cluster is created. Its routes, gateways and endpoints are not changed."""

    vpc: VpcId | None = Field(default=None, description="The VPC (aws).")
    subnets: list[SubnetId] = Field(
        default_factory=list, description="Private subnets of the nodes in at least two zones (aws)."
    )
    subnet_tags: dict[str, FilledText] = Field(
        default_factory=dict,
        description="Tags of the subnets, instead of their ids. Subnets of other VPCs in the region must not have all "
        "of them (aws).",
    )
    security_groups: list[SecurityGroupId] = Field(
        default_factory=list, description="More security groups of the API server and of the nodes (aws)."
    )
    network: GcpNetwork | None = Field(
        default=None, description="The network, of this project or of the host project of a Shared VPC (gcp)."
    )
    subnetwork: GcpSubnetwork | None = Field(default=None, description="The subnetwork of the nodes (gcp).")
    pods_range: FilledText = Field(
        default="pods", description="Name of the subnetwork's secondary range for pods (gcp)."
    )
    services_range: FilledText = Field(
        default="services", description="Name of the secondary range for services (gcp)."
    )

    @property
    def subnet_terms(self) -> list[dict[str, Any]]:
        """The subnets as terms of Karpenter's EC2NodeClass."""
        return [{"id": name} for name in self.subnets] or [{"tags": dict(self.subnet_tags)}]


class Network(Record):
    """The cluster's network."""

    existing: ExistingNetwork | None = Field(
        default=None, description="A network of yours; only `services` (aws) can be set beside it."
    )
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


_OF_CLOUD = {
    "aws": ("vpc", "subnets", "subnet_tags", "security_groups"),
    "gcp": ("network", "subnetwork", "pods_range", "services_range"),
}
"""The fields of an existing network, by cloud."""

_REQUIRED = {"aws": ("vpc",), "gcp": ("network", "subnetwork")}


def network_findings(
    network: Network | None, cloud: str, region: str | None, *, existing_cluster: bool
) -> Iterator[Finding]:
    """What is wrong with the network of a cluster, with the path of the field in the cluster.

    Args:
        network: The network of the file; None if it names none.
        cloud: aws or gcp.
        existing_cluster: Whether the cluster exists. Of its network, the file names only the subnets of nodes on AWS.
    """
    place = ("network", "existing")
    existing = network.existing if network is not None else None
    if existing_cluster and cloud == "gcp":
        if network is not None:
            yield Finding(("network",), "is that of the existing cluster: remove it")
        return
    if existing_cluster and existing is None:
        message = "needs the subnets of its nodes: specify network.existing.subnets or subnetTags"
        yield Finding(("existing",), message)
    if network is None or existing is None:
        return
    kept = {"existing", "services"} if cloud == "aws" and not existing_cluster else {"existing"}
    for name in sorted(network.model_fields_set - kept):
        field = Network.model_fields[name].alias or name
        message = "belongs to a network that spotladder creates: remove it, or remove existing"
        yield Finding(("network", field), message)
    for name in sorted(existing.model_fields_set - set(_OF_CLOUD[cloud])):
        field = ExistingNetwork.model_fields[name].alias or name
        yield Finding((*place, field), f"does not belong to cloud {cloud}: remove it")
    for name in _REQUIRED[cloud]:
        if existing_cluster and getattr(existing, name) is not None:
            yield Finding((*place, name), "is that of the existing cluster: remove it")
        elif not existing_cluster and getattr(existing, name) is None:
            yield Finding(place, f"names no {name}: specify {name}")
    if cloud == "aws" and bool(existing.subnets) == bool(existing.subnet_tags):
        yield Finding(place, "needs either subnets or subnetTags: specify one of them")
    if len(existing.subnets) == 1 and not existing_cluster:
        message = "has one subnet: EKS needs subnets in at least two zones; add one"
        yield Finding((*place, "subnets"), message)
    if existing.subnetwork is not None and f"/regions/{region}/" not in existing.subnetwork:
        message = f"is not in {region}: name a subnetwork of the cluster's region"
        yield Finding((*place, "subnetwork"), message)
