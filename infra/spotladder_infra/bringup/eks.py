"""The bring-up of an EKS cluster."""

from __future__ import annotations

from collections.abc import Iterator

from spotladder_infra.bringup.hop import Hop, PlannedCluster, both, hop
from spotladder_infra.facts.addons import BEFORE_NODES, DRIVERS
from spotladder_infra.iam_simulation import allowed
from spotladder_infra.names import (
    CONTROLLER_ACCOUNT,
    CONTROLLER_NAMESPACE,
    KARPENTER_ACCOUNT,
    SYSTEM_NAMESPACE,
    bucket_key_alias,
)
from spotladder_infra.rendering.device_plugins import gpu
from spotladder_infra.topology.fleet import Bucket, Team
from spotladder_infra.topology.network import Nat

NODE_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly")
SPOT_EVENT = "EC2 Spot Instance Interruption Warning"
_NODE = "${aws_iam_role.node-role."
_PARTITION = "${data.aws_partition.partition.partition}"
_ACCOUNT = "${data.aws_caller_identity.account.account_id}"
_QUEUE = "${aws_sqs_queue.interruptions."


def hops(sight: PlannedCluster) -> Iterator[Hop]:
    """The hops in the order in which they happen."""
    cluster, network = sight.cluster, sight.cluster.network
    attached, yours = "aws_iam_role_policy_attachment", sight.existing_cluster
    plane, existing = yours or sight.having("aws_eks_cluster"), sight.existing_network
    subnets = existing or sight.having("aws_subnet", '"kubernetes.io/role/internal-elb"')
    routes = existing or sight.having("aws_route", "nat_gateway_id", "0.0.0.0/0")
    if network.nat is Nat.NONE and not existing:
        routes = both(
            sight.having("aws_vpc_endpoint", "Interface"),
            sight.mirror,
        )
    yield hop("the account has the APIs", apis=["nothing to enable on AWS"])
    yield hop(
        "EKS acts in the account",
        role=yours or sight.having("aws_iam_role", '\\"eks.amazonaws.com\\"'),
        policy=yours or sight.having(attached, "policy/AmazonEKSClusterPolicy", "${aws_iam_role.cluster-role."),
    )
    yield hop("the network has two zones", subnets=subnets if existing or len(subnets) > 1 else [])
    yield hop("nodes reach AWS and the registries", route=routes)
    yield hop("the API server starts", cluster=plane)
    yield hop(
        "add-ons are installed before nodes",
        **{name.replace("-", "_"): yours or sight.having("aws_eks_addon", f'"{name}"') for name in BEFORE_NODES},
    )
    yield hop(
        "system nodes join",
        nodes=yours or sight.having("aws_eks_node_group", "${aws_iam_role.system-role."),
        **{name: yours or sight.having(attached, name, "${aws_iam_role.system-role.") for name in NODE_POLICIES},
    )
    yield hop(
        "Karpenter has its identity",
        association=_bound(sight, "karpenter", SYSTEM_NAMESPACE, KARPENTER_ACCOUNT),
        release=sight.release("karpenter", f'"name": "{KARPENTER_ACCOUNT}"', f'"clusterName": "{cluster.cloud_name}"'),
    )
    policy, may = sight.policy("karpenter-policy"), sight.having("aws_iam_role_policy", '"karpenter"')
    launched = {f"aws:RequestTag/kubernetes.io/cluster/{cluster.cloud_name}": "owned"}
    launched |= {
        "aws:RequestTag/eks:eks-cluster-name": cluster.cloud_name,
        "aws:RequestTag/karpenter.sh/nodepool": "any",
    }
    instance = f"arn:{_PARTITION}:ec2:{cluster.region}:{_ACCOUNT}:instance/any"
    passed = {"iam:PassedToService": "ec2.amazonaws.com"}
    yield hop(
        "Karpenter launches nodes",
        RunInstances=may if allowed(policy, "ec2:RunInstances", instance, launched) else [],
        PassRole=may if allowed(policy, "iam:PassRole", "${aws_iam_role.node-role.arn}", passed) else [],
        profile=sight.having("aws_iam_instance_profile", _NODE),
        security_groups=existing or sight.having("aws_ec2_tag", "karpenter.sh/discovery"),
        **{f"pool_{pool.name}": sight.pools("nodeClasses", pool, "subnetSelectorTerms") for pool in cluster.pools},
    )
    yield hop(
        "nodes join",
        access_entry=sight.having("aws_eks_access_entry", _NODE, "EC2_LINUX"),
        **{name: sight.having(attached, name, _NODE) for name in NODE_POLICIES[:2]},
    )
    if gpu(sight.fleet, cluster) is not None:
        yield hop(
            "nodes report their GPUs",
            **{
                f"pool_{pool.name}": sight.release("gpu-device-plugin", f'"{pool.name}"')
                for pool in sight.with_accelerators("nvidia")
            },
        )
    images = {"repository": sight.having("aws_ecr_repository")} if cluster.image_repository else {}
    yield hop("nodes pull images", policy=sight.having(attached, NODE_POLICIES[2], _NODE), route=routes, **images)
    for volume in cluster.volumes:
        if (driver := DRIVERS.get(volume.driver)) is not None:
            yield hop(
                f"pods mount {volume.name}",
                driver=yours or sight.having("aws_eks_addon", f'"{driver}"'),
                claim=sight.release("pools", f'"{volume.name}"'),
            )
    yield hop(
        "the controller has its identity",
        association=_bound(sight, "controller", CONTROLLER_NAMESPACE, CONTROLLER_ACCOUNT),
        release=sight.release("controller"),
    )
    bucket = sight.fleet.bucket_of(cluster)
    if bucket is not None:
        for team in sight.fleet.teams_of(cluster):
            yield hop(
                f"pods of {team.name} have their identity",
                association=_bound(sight, f"train-{team.name}", team.name, team.service_account),
                service_account=sight.release("pools", f'"{team.name}"', f'"{team.service_account}"'),
            )
            yield hop(f"pods of {team.name} write checkpoints", **_bucket_access(sight, bucket, team))
    rules = sight.having("aws_cloudwatch_event_rule", SPOT_EVENT)
    targets = [
        target for rule in rules for target in sight.having("aws_cloudwatch_event_target", f"${{{rule}.", _QUEUE)
    ]
    queue = "${aws_sqs_queue.interruptions.arn}"
    yield hop(
        "an interruption reaches the queue",
        rule=rules,
        target=targets,
        queue=sight.having("aws_sqs_queue"),
        policy=sight.having("aws_sqs_queue_policy", "events.amazonaws.com", "sqs:SendMessage", _QUEUE),
    )
    yield hop(
        "Karpenter reads the queue",
        ReceiveMessage=may if allowed(policy, "sqs:ReceiveMessage", queue, {}) else [],
        release=sight.release("karpenter", f'"interruptionQueue": "{cluster.name}-interruptions"'),
    )


def _bound(sight: PlannedCluster, role: str, namespace: str, account: str) -> list[str]:
    """The association that gives the pods of a service account the role."""
    parts = (f'"{namespace}"', f'"{account}"', f"${{aws_iam_role.{role}-role.")
    return sight.having("aws_eks_pod_identity_association", *parts)


def _bucket_access(sight: PlannedCluster, bucket: Bucket, team: Team) -> dict[str, list[str]]:
    """The policy of a team's pods, simulated for a checkpoint below the team's prefix."""
    name = f"train-{team.name}-policy"
    policy = sight.policy(name)
    base = f"arn:{_PARTITION}:s3:::{bucket.name}"
    own_key = f"arn:{_PARTITION}:kms:{bucket.region}:{_ACCOUNT}:key/any"
    alias = {"kms:ResourceAliases": bucket_key_alias(bucket.name)}
    requests = {
        "PutObject": ("s3:PutObject", f"{base}/{team.name}/job/1", {}),
        "GetObject": ("s3:GetObject", f"{base}/{team.name}/job/1", {}),
        "ListBucket": ("s3:ListBucket", base, {"s3:prefix": f"{team.name}/"}),
        "key": ("kms:GenerateDataKey", bucket.kms_key or own_key, alias),
    }
    return {
        need: [f"aws_iam_role_policy.{name}"] if allowed(policy, *request) else [] for need, request in requests.items()
    }
