"""The VPC: private subnets for nodes in every zone, NAT gateways, and private endpoints of AWS services."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any

from cdktn_aws import ec2, vpc

from spotladder_infra.names import discovery_tag
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.defaults import zones_of
from spotladder_infra.topology.network import ExistingNetwork, Nat

ENDPOINTS = ("ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "sqs", "ssm", "sts")
"""The services that nodes, Karpenter and pods call; S3 has a gateway endpoint."""

_FEW_ZONES = 3


@dataclass(frozen=True, slots=True)
class CreatedNetwork:
    """`subnets` are the ids of the private subnets; `egress` the public addresses of NAT; `security_groups` those that
    the user adds."""

    vpc_id: str
    subnets: tuple[str, ...]
    egress: tuple[str, ...]
    security_groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranges:
    """The address ranges of the subnets, in the order of the zones."""

    private: tuple[str, ...]
    public: tuple[str, ...]


def ranges(cidr: str, zones: int) -> Ranges:
    """Divides the VPC's range. Each zone gets a quarter of it or, with more than three zones, an eighth; the last part
    is for the public subnets.
    """
    blocks = list(ipaddress.IPv4Network(cidr).subnets(prefixlen_diff=2 if zones <= _FEW_ZONES else 3))
    public = list(blocks[-1].subnets(prefixlen_diff=3))
    return Ranges(tuple(map(str, blocks[:zones])), tuple(map(str, public[:zones])))


def network(scope: Any, cluster: Cluster) -> CreatedNetwork:
    """The VPC of a cluster, or the existing one that the file names."""
    if cluster.network.existing is not None:
        return existing_network(scope, cluster.network.existing)
    zones, name = zones_of(cluster), cluster.name
    plan = ranges(cluster.network.cidr, len(zones))
    made = vpc.AwsVpc(
        scope,
        "vpc",
        cidr_block=cluster.network.cidr,
        enable_dns_support=True,
        enable_dns_hostnames=True,
        tags={"Name": name},
    )
    vpc.AwsDefaultSecurityGroup(scope, "default", vpc_id=made.id, tags={"Name": f"{name}-unused"})
    private = [
        vpc.AwsSubnet(
            scope,
            f"private-{zone}",
            vpc_id=made.id,
            cidr_block=cidr,
            availability_zone=zone,
            tags={"Name": f"{name}-private-{zone}", "kubernetes.io/role/internal-elb": "1", **discovery_tag(cluster)},
        )
        for zone, cidr in zip(zones, plan.private, strict=True)
    ]
    gateways, egress = _gateways(scope, cluster, made.id, plan) if cluster.network.nat is not Nat.NONE else ([], [])
    tables = []
    for index, (zone, subnet) in enumerate(zip(zones, private, strict=True)):
        table = vpc.AwsRouteTable(
            scope, f"private-routes-{zone}", vpc_id=made.id, tags={"Name": f"{name}-private-{zone}"}
        )
        vpc.AwsRouteTableAssociation(scope, f"private-table-{zone}", subnet_id=subnet.id, route_table_id=table.id)
        if gateways:
            vpc.AwsRoute(
                scope,
                f"private-out-{zone}",
                route_table_id=table.id,
                destination_cidr_block="0.0.0.0/0",
                nat_gateway_id=gateways[index % len(gateways)].id,
            )
        tables.append(table)
    _endpoints(scope, cluster, made.id, [subnet.id for subnet in private], [table.id for table in tables])
    return CreatedNetwork(made.id, tuple(subnet.id for subnet in private), tuple(egress))


def existing_network(scope: Any, given: ExistingNetwork, vpc_id: str = "") -> CreatedNetwork:
    """The network that the file names. Args: vpc_id: The VPC of an existing cluster, which the file does not name."""
    vpc_id, groups = given.vpc or vpc_id, tuple(given.security_groups)
    if given.subnets:
        return CreatedNetwork(vpc_id, tuple(given.subnets), (), groups)
    of_vpc = vpc.DataAwsSubnets.FilterProperty(name="vpc-id", values=[vpc_id])
    found = vpc.DataAwsSubnets(scope, "subnets", filter=[of_vpc], tags=dict(given.subnet_tags))
    return CreatedNetwork(vpc_id, tuple(found.ids), (), groups)


def _gateways(scope: Any, cluster: Cluster, vpc_id: str, plan: Ranges) -> tuple[list[Any], list[str]]:
    """The NAT gateways, one or one in every zone, and their addresses."""
    zones, name = zones_of(cluster), cluster.name
    internet = vpc.AwsInternetGateway(scope, "internet", vpc_id=vpc_id, tags={"Name": name})
    table = vpc.AwsRouteTable(scope, "public-routes", vpc_id=vpc_id, tags={"Name": f"{name}-public"})
    vpc.AwsRoute(
        scope, "public-out", route_table_id=table.id, destination_cidr_block="0.0.0.0/0", gateway_id=internet.id
    )
    wanted = 1 if cluster.network.nat is Nat.SINGLE else len(zones)
    gateways, egress = [], []
    for zone, cidr in list(zip(zones, plan.public, strict=True))[:wanted]:
        tags = {"Name": f"{name}-public-{zone}"}
        subnet = vpc.AwsSubnet(
            scope, f"public-{zone}", vpc_id=vpc_id, cidr_block=cidr, availability_zone=zone, tags=tags
        )
        vpc.AwsRouteTableAssociation(scope, f"public-table-{zone}", subnet_id=subnet.id, route_table_id=table.id)
        address = ec2.AwsEip(scope, f"nat-address-{zone}", domain="vpc", tags={"Name": f"{name}-nat-{zone}"})
        egress.append(address.public_ip)
        gateways.append(
            vpc.AwsNatGateway(
                scope,
                f"nat-{zone}",
                allocation_id=address.id,
                subnet_id=subnet.id,
                tags={"Name": f"{name}-{zone}"},
                depends_on=[internet],
            )
        )
    return gateways, egress


def _endpoints(scope: Any, cluster: Cluster, vpc_id: str, subnets: list[str], tables: list[str]) -> None:
    prefix = f"com.amazonaws.{cluster.region}"
    vpc.AwsEndpoint(
        scope,
        "s3",
        vpc_id=vpc_id,
        service_name=f"{prefix}.s3",
        vpc_endpoint_type="Gateway",
        route_table_ids=tables,
        tags={"Name": f"{cluster.name}-s3"},
    )
    if not cluster.network.interface_endpoints:
        return
    group = vpc.AwsSecurityGroup(
        scope,
        "endpoints",
        name=f"{cluster.name}-endpoints",
        description="Services of AWS, from inside the VPC",
        vpc_id=vpc_id,
        tags={"Name": f"{cluster.name}-endpoints"},
    )
    vpc.AwsSecurityGroupIngressRule(
        scope,
        "endpoints-https",
        security_group_id=group.id,
        description="HTTPS from the VPC",
        cidr_ipv4=cluster.network.cidr,
        from_port=443,
        to_port=443,
        ip_protocol="tcp",
        tags={"Name": f"{cluster.name}-endpoints-https"},
    )
    for service in ENDPOINTS:
        vpc.AwsEndpoint(
            scope,
            f"endpoint-{service.replace('.', '-')}",
            vpc_id=vpc_id,
            service_name=f"{prefix}.{service}",
            vpc_endpoint_type="Interface",
            private_dns_enabled=True,
            subnet_ids=subnets,
            security_group_ids=[group.id],
            tags={"Name": f"{cluster.name}-{service}"},
        )
