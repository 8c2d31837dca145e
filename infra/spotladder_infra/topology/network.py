"""The network of a created cluster: one of its own, or one of yours."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from spotladder.api.fields import FilledText, Switch, choice
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
