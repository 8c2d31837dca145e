"""The stack of an EKS cluster."""

from __future__ import annotations

from typing import Any

from cdktn_aws.provider import AwsProvider

from spotladder_infra.constructs.aws.account import place_of
from spotladder_infra.constructs.aws.budget import budget
from spotladder_infra.constructs.aws.control_plane import control_plane, existing_cluster
from spotladder_infra.constructs.aws.identity import identities
from spotladder_infra.constructs.aws.images import images
from spotladder_infra.constructs.aws.interruption import interruption
from spotladder_infra.constructs.aws.network import network
from spotladder_infra.constructs.aws.nodes import nodes
from spotladder_infra.constructs.aws.roles import restrict
from spotladder_infra.constructs.aws.storage import checkpoints
from spotladder_infra.names import common_tags
from spotladder_infra.outputs import ClusterOutputs
from spotladder_infra.terraform.providers import required
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.fleet import Fleet


def build(stack: Any, fleet: Fleet, cluster: Cluster) -> ClusterOutputs:
    """Adds the cluster to the stack."""
    region = cluster.region or ""
    shared: dict[str, Any] = {"default_tags": [AwsProvider.DefaultTagsProperty(tags=common_tags(fleet, cluster))]}
    if cluster.account is not None:
        shared["allowed_account_ids"] = [cluster.account]
    AwsProvider(stack, "aws", region=region, **shared)
    stack.add_override("terraform.required_providers.aws.version", required(cluster))

    place = place_of(stack, region)
    if cluster.created:
        net = network(stack, cluster)
        plane = control_plane(stack, fleet, cluster, place, net)
    else:
        net, plane = existing_cluster(stack, fleet, cluster, place)
    workers = nodes(stack, fleet, cluster, place, net, plane=plane)
    queue = interruption(stack, cluster, place)
    pods = identities(stack, fleet, cluster, place, plane=plane.name, nodes=workers, queue=queue)
    bucket = fleet.created_bucket(cluster)
    if bucket is not None:
        bucket_provider = replica = None
        if bucket.region != region:
            bucket_provider = AwsProvider(stack, "aws-checkpoints", alias="checkpoints", region=bucket.region, **shared)
        if bucket.replicate_to is not None:
            replica = AwsProvider(stack, "aws-replica", alias="replica", region=bucket.replicate_to, **shared)
        checkpoints(stack, bucket, bucket_provider, replica)
    repository = images(stack, cluster) if cluster.image_repository else None
    if cluster.budget_alarm is not None:
        budget(stack, cluster, cluster.budget_alarm)
    restrict(stack, cluster.roles)

    return ClusterOutputs.of_stack(
        fleet,
        cluster,
        endpoint=plane.endpoint,
        nodeIdentity=workers.profile,
        interruptionQueue=queue.name,
        egress=list(net.egress),
        network={
            "network": net.vpc_id or None,
            "subnets": list(net.subnets),
            "securityGroups": list(plane.security_groups),
        },
        oidcIssuer=plane.issuer,
        images=repository,
        identities=pods,
    )
