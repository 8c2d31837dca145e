"""The system nodes, the role of Karpenter's nodes, and the add-ons.

The network add-on and both node roles depend only on resources that Terraform removes after the nodes. Nodes that are
being drained still need them, and a remaining network interface prevents the deletion of the VPC.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cdktn_aws import ec2, eks, iam

from spotladder_infra.constructs.aws.control_plane import ControlPlane
from spotladder_infra.constructs.aws.network import CreatedNetwork
from spotladder_infra.constructs.aws.roles import PODS, CreatedRole, pod_identity, role
from spotladder_infra.facts.addons import BEFORE_NODES, EBS, OBSERVABILITY
from spotladder_infra.facts.regions import principal_of
from spotladder_infra.iam import PolicyScope
from spotladder_infra.names import SYSTEM_NAMESPACE, common_tags, node_role
from spotladder_infra.topology.addon_checks import installed, version_of
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.defaults import SYSTEM_DISK_GIB, system_instance_of
from spotladder_infra.topology.fleet import Fleet


@dataclass(frozen=True, slots=True)
class _Identity:
    """The service account of an add-on's pods, and AWS' policies for it."""

    name: str
    namespace: str
    service_account: str
    policies: tuple[str, ...]


_IDENTITIES = {
    EBS: _Identity("ebs", SYSTEM_NAMESPACE, "ebs-csi-controller-sa", ("service-role/AmazonEBSCSIDriverPolicy",)),
    OBSERVABILITY: _Identity(
        "cloudwatch",
        "amazon-cloudwatch",
        "cloudwatch-agent",
        ("CloudWatchAgentServerPolicy", "AWSXrayWriteOnlyAccess"),
    ),
}
"""The drivers of EFS and FSx need none to mount file systems that exist, because NodePublishVolume calls no API of AWS;
only the mount option `iam` of EFS does (pkg/driver/node.go of kubernetes-sigs/aws-efs-csi-driver at 00fa07a and of
aws-fsx-csi-driver at 01a8927, read on 2026-11-30)."""

_CONFIGURATION = {EBS: {"configuration_values": json.dumps({"defaultStorageClass": {"enabled": True}})}}
"""Without a default class, claims that name none stay pending: EKS marks no class since Kubernetes 1.30."""

NODE_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly")


@dataclass(frozen=True, slots=True)
class Nodes:
    """The role of Karpenter's nodes and its instance profile, and all roles of nodes that the stack creates."""

    role_arn: str
    profile: str
    roles: tuple[str, ...]


def nodes(
    scope: Any, fleet: Fleet, cluster: Cluster, place: PolicyScope, network: CreatedNetwork, *, plane: ControlPlane
) -> Nodes:
    """The role of Karpenter's nodes; in a created cluster also system nodes and add-ons."""
    system = (_system(scope, fleet, cluster, place, network, plane=plane).arn,) if cluster.created else ()
    own = role(scope, "node", node_role(cluster), _ec2(place), managed=NODE_POLICIES, place=place)
    profile = iam.AwsInstanceProfile(scope, "node-profile", name=node_role(cluster), role=own.name)
    eks.AwsAccessEntry(scope, "node-access", cluster_name=plane.name, principal_arn=own.arn, type="EC2_LINUX")
    return Nodes(own.arn, profile.name, (own.arn, *system))


def _system(
    scope: Any, fleet: Fleet, cluster: Cluster, place: PolicyScope, network: CreatedNetwork, *, plane: ControlPlane
) -> CreatedRole:
    """The system nodes between the add-ons that they need and those that run on them. Returns their role."""
    first = [_addon(scope, cluster, plane, name, ()) for name in BEFORE_NODES]
    system, group = _system_nodes(
        scope, cluster, place, network, plane=plane, first=first, tags=common_tags(fleet, cluster)
    )
    for name in installed(cluster):
        if name not in BEFORE_NODES:
            _addon(scope, cluster, plane, name, (group, *_identity(scope, cluster, place, plane, name)))
    return system


def _system_nodes(
    scope: Any,
    cluster: Cluster,
    place: PolicyScope,
    network: CreatedNetwork,
    *,
    plane: ControlPlane,
    first: list[Any],
    tags: Mapping[str, str],
) -> tuple[CreatedRole, Any]:
    """The system nodes. What EC2 launches has the tags of the template only, not those of the provider. The type is in
    the template as well: another one replaces node after node, and not the whole group at once."""
    name = f"{cluster.name}-system"
    own = role(scope, "system", name, _ec2(place), managed=NODE_POLICIES, place=place)
    template = ec2.AwsLaunchTemplate(
        scope,
        "system-template",
        name=name,
        update_default_version=True,
        instance_type=system_instance_of(cluster),
        metadata_options={"http_endpoint": "enabled", "http_tokens": "required", "http_put_response_hop_limit": 1},
        block_device_mappings=[
            ec2.AwsLaunchTemplate.BlockDeviceMappingsProperty(
                device_name="/dev/xvda",
                ebs={
                    "volume_size": SYSTEM_DISK_GIB,
                    "volume_type": "gp3",
                    "encrypted": "true",
                    "delete_on_termination": "true",
                },
            )
        ],
        tag_specifications=[
            ec2.AwsLaunchTemplate.TagSpecificationsProperty(resource_type=kind, tags={"Name": name, **tags})
            for kind in ("instance", "volume")
        ],
    )
    return own, eks.AwsNodeGroup(
        scope,
        "system",
        cluster_name=plane.name,
        node_group_name="system",
        version=cluster.kubernetes,  # without it, an upgrade of the control plane does not upgrade the nodes
        node_role_arn=own.arn,
        subnet_ids=list(network.subnets),
        ami_type="AL2023_x86_64_STANDARD",
        capacity_type="ON_DEMAND",
        launch_template={"id": template.id, "version": "${" + template.fqn + ".latest_version}"},
        scaling_config={
            "desired_size": cluster.system.count,
            "min_size": cluster.system.count,
            "max_size": cluster.system.count + 2,
        },
        update_config={"max_unavailable": 1},
        labels={"spotladder.io/pool": "system"},
        taint=[eks.AwsNodeGroup.TaintProperty(key="CriticalAddonsOnly", value="true", effect="NO_SCHEDULE")],
        # Other subnets would replace the group, and with it Karpenter, the controller and CoreDNS.
        lifecycle={"ignore_changes": ["subnet_ids"]},
        depends_on=[*first, *own.policies],  # draining nodes need the policies as well
    )


def _ec2(place: PolicyScope) -> str:
    return principal_of("ec2", place.region)


def _identity(scope: Any, cluster: Cluster, place: PolicyScope, plane: ControlPlane, addon: str) -> tuple[Any, ...]:
    """The role of an add-on, which its pods get only if it exists before them; nothing for one without a role."""
    if addon not in _IDENTITIES:
        return ()
    needed = _IDENTITIES[addon]
    own = role(scope, needed.name, f"{cluster.name}-{needed.name}", PODS, managed=needed.policies, place=place)
    bound = pod_identity(
        scope, needed.name, own, plane.name, namespace=needed.namespace, service_account=needed.service_account
    )
    return (*own.policies, bound)


def _addon(scope: Any, cluster: Cluster, plane: ControlPlane, name: str, after: tuple[Any, ...]) -> Any:
    """An add-on at its pinned version, or at the default of EKS for a Kubernetes version without a record."""
    version = version_of(cluster, name)
    if version is None:
        default = eks.DataAwsAddonVersion(
            scope, f"{name}-version", addon_name=name, kubernetes_version=cluster.kubernetes, most_recent=False
        )
        version = default.version
    return eks.AwsAddon(
        scope,
        name,
        cluster_name=plane.name,
        addon_name=name,
        addon_version=version,
        resolve_conflicts_on_create="OVERWRITE",
        resolve_conflicts_on_update="PRESERVE",
        depends_on=list(after) or None,
        **_CONFIGURATION.get(name, {}),
    )
