"""The stack of a GKE cluster."""

from __future__ import annotations

from typing import Any

from cdktn_provider_google.provider import GoogleProvider

from spotladder_infra.constructs.gcp.control_plane import control_plane, existing_cluster
from spotladder_infra.constructs.gcp.identity import Pods, controller_access, karpenter, node_account, pods
from spotladder_infra.constructs.gcp.network import network
from spotladder_infra.constructs.gcp.nodes import system_nodes
from spotladder_infra.constructs.gcp.storage import access, checkpoints, images
from spotladder_infra.names import common_tags, ownership_text
from spotladder_infra.outputs import ClusterOutputs, Identity
from spotladder_infra.terraform.providers import required
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.fleet import Bucket, Fleet


def _principals(stack: Any, fleet: Fleet, bucket: Bucket, own: Pods) -> dict[str, Pods]:
    """By project, the principals of the clusters that use the bucket, and of a home cluster on Google Cloud."""
    clusters = [*fleet.users_of(bucket), fleet.cluster(fleet.spec.home)]
    others = {entry.project: None for entry in clusters if entry.project and entry.project != own.project}
    return {own.project: own, **{project: pods(stack, project, f"project-{project}") for project in others}}


def build(stack: Any, fleet: Fleet, cluster: Cluster) -> ClusterOutputs:
    """Adds the cluster to the stack."""
    project = cluster.project or ""
    provider = GoogleProvider(stack, "google", project=project, region=cluster.region)
    provider.add_override(
        "default_labels", common_tags(fleet, cluster)
    )  # as an argument, keys would lose their hyphens
    stack.add_override("terraform.required_providers.google.version", required(cluster))

    owner = ownership_text(fleet, cluster)
    principals = pods(stack, project)
    node = node_account(stack, cluster, owner)
    home = cluster.name == fleet.spec.home
    if cluster.created:
        fixed = home and any(c.cloud is Cloud.AWS for c in fleet.spec.clusters)
        net = network(stack, cluster, owner, fixed_address=fixed)
        plane = control_plane(stack, cluster, net, node, member=not home)
        system_nodes(stack, cluster, plane, node)
    else:
        net, plane = existing_cluster(stack, cluster)
    autoscaler = karpenter(stack, cluster, node, owner, plane.cluster)
    controller_access(stack, cluster, principals, plane.cluster)
    bucket = fleet.bucket_of(cluster)
    if bucket is not None:
        made = checkpoints(stack, bucket, cluster) if fleet.owner_of(bucket) == cluster else None
        if fleet.users_of(bucket)[0] == cluster:
            access(
                stack,
                fleet,
                bucket,
                _principals(stack, fleet, bucket, principals),
                after=[plane.cluster, *([made] if made is not None else [])],
            )
    repository = images(stack, cluster) if cluster.image_repository else None

    training = {team.name: principals.training(team) for team in fleet.teams_of(cluster)} if bucket else {}
    return ClusterOutputs.of_stack(
        fleet,
        cluster,
        endpoint=plane.endpoint,
        nodeIdentity=node.email,
        egress=list(net.egress),
        network={"network": net.network or None, "subnets": [net.subnetwork]},
        oidcIssuer=plane.issuer,
        images=repository,
        identities=Identity(
            karpenter=autoscaler, controller=principals.controller, training=training, nodes=[node.email]
        ),
    )
