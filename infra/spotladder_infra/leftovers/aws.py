"""The remaining resources of a cluster in an AWS account, found by tags and names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from spotladder_infra.amazon import CREDENTIALS, answering, existing, pairs, sdk
from spotladder_infra.leftovers.resource import Leftover
from spotladder_infra.names import bucket_key_alias, interruption_queue, replication_role
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.fleet import Fleet

NODEPOOL = "karpenter.sh/nodepool"
NODECLAIM = "karpenter.sh/nodeclaim"

_GONE = ("terminated", "shutting-down", "deleted", "deleting")
"""States of resources that AWS still describes and no longer bills."""


def tags_of(cluster: Cluster) -> tuple[tuple[str, str], ...]:
    """The tags that spotladder, Karpenter, the VPC CNI, EKS and the load balancer controller set; of an existing
    cluster only the first, because the others are also on resources of yours."""
    name = cluster.name
    own = (("spotladder-cluster", name),)
    if cluster.existing is not None:
        return own
    return (
        *own,
        (f"kubernetes.io/cluster/{name}", "owned"),
        ("eks:eks-cluster-name", name),
        ("karpenter.k8s.aws/cluster", name),
        ("cluster.k8s.amazonaws.com/name", name),
        ("elbv2.k8s.aws/cluster", name),
    )


def _is_of(cluster: Cluster, tags: Any) -> bool:
    """Whether the tags of a response name the cluster."""
    return bool(set(tags_of(cluster)) & pairs(tags).items())


def find(fleet: Fleet, cluster: Cluster, keep_checkpoints: bool) -> list[Leftover]:
    """All resources of the cluster in its account: in its region, and in those of its bucket and of the bucket's
    replica.

    Raises EnvironmentFailure.
    """
    return _asked(cluster, lambda session: _all(session, fleet, cluster, keep_checkpoints))


def nodes(cluster: Cluster) -> list[Leftover]:
    """Instances that Karpenter launched and that still run. Raises EnvironmentFailure."""
    return _asked(cluster, lambda session: [entry for entry in _ec2(session, cluster) if entry.kind == "node"])


def _asked(cluster: Cluster, question: Callable[[Any], list[Leftover]]) -> list[Leftover]:
    with answering(remedy=CREDENTIALS):
        return question(sdk().session.Session(region_name=cluster.region))


def _all(session: Any, fleet: Fleet, cluster: Cluster, keep_checkpoints: bool) -> list[Leftover]:
    found = [*_ec2(session, cluster), *_balancers(session, cluster), *_named(session, cluster)]
    found += _iam(session, cluster)
    kept = set[str]()
    for region in fleet.regions_of(cluster):
        found += _keys(session, region, cluster)
        found += _buckets(session, region, cluster)
        kept |= _kept(session, region, fleet, cluster) if keep_checkpoints else set()
    return [entry for entry in found if entry.identifier not in kept]


def _ec2(session: Any, cluster: Cluster) -> Iterator[Leftover]:
    client = session.client("ec2")
    for tag, value in tags_of(cluster):
        filters = [{"Name": f"tag:{tag}", "Values": [value]}]
        for kind, operation, result, key in _DESCRIBED:
            for page in client.get_paginator(operation).paginate(Filters=filters):
                holders = page[result]
                entries = [one for holder in holders for one in holder["Instances"]] if kind == "instance" else holders
                for entry in entries:
                    state = entry.get("State") or ""
                    if (state["Name"] if isinstance(state, dict) else state) in _GONE:
                        continue
                    tags = pairs(entry.get("Tags", entry.get("TagSet")))
                    claimed = kind == "instance" and (NODEPOOL in tags or NODECLAIM in tags)
                    detail = tags.get(NODECLAIM) or tags.get("Name") or entry.get("Description") or ""
                    yield Leftover("node" if claimed else kind, entry[key], detail)
        for entry in client.describe_addresses(Filters=filters)["Addresses"]:
            yield Leftover("address", entry["AllocationId"], entry.get("PublicIp", ""))


_DESCRIBED = (
    ("instance", "describe_instances", "Reservations", "InstanceId"),
    ("volume", "describe_volumes", "Volumes", "VolumeId"),
    ("network interface", "describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId"),
    ("NAT gateway", "describe_nat_gateways", "NatGateways", "NatGatewayId"),
    ("VPC endpoint", "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
    ("launch template", "describe_launch_templates", "LaunchTemplates", "LaunchTemplateId"),
    ("security group", "describe_security_groups", "SecurityGroups", "GroupId"),
    ("subnet", "describe_subnets", "Subnets", "SubnetId"),
    ("route table", "describe_route_tables", "RouteTables", "RouteTableId"),
    ("internet gateway", "describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
    ("VPC", "describe_vpcs", "Vpcs", "VpcId"),
)
"""Operations of EC2 that filter by tags: kind, operation, list and id."""


def _balancers(session: Any, cluster: Cluster) -> Iterator[Leftover]:
    """Load balancers of all kinds; their APIs have no filter for tags."""
    for service, result, key, argument, tagged in _BALANCERS:
        client = session.client(service)
        pages = client.get_paginator("describe_load_balancers").paginate()
        names = {entry[key]: entry["LoadBalancerName"] for page in pages for entry in page.get(result, ())}
        for start in range(0, len(names), _TAGS_PER_CALL):
            some = list(names)[start : start + _TAGS_PER_CALL]
            for entry in client.describe_tags(**{argument: some})["TagDescriptions"]:
                if _is_of(cluster, entry["Tags"]):
                    yield Leftover("load balancer", entry[tagged], names[entry[tagged]])


_BALANCERS = (
    ("elbv2", "LoadBalancers", "LoadBalancerArn", "ResourceArns", "ResourceArn"),
    ("elb", "LoadBalancerDescriptions", "LoadBalancerName", "LoadBalancerNames", "LoadBalancerName"),
)
"""Services with load balancers: the list and the id in it, then the argument for tags and the id in their list."""

_TAGS_PER_CALL = 20
"""Largest number of resources in one call for tags."""


def _named(session: Any, cluster: Cluster) -> Iterator[Leftover]:
    """Resources that are named after the cluster."""
    if cluster.created:
        yield from _control_plane(session, cluster)
    queue = interruption_queue(cluster)
    for url in session.client("sqs").list_queues(QueueNamePrefix=queue).get("QueueUrls", []):
        if url.rpartition("/")[2] == queue:
            yield Leftover("queue", url)
    events = session.client("events")
    pages = events.get_paginator("list_rules").paginate(NamePrefix=f"{cluster.name}-")
    for rule in (rule for page in pages for rule in page["Rules"]):
        if _is_of(cluster, events.list_tags_for_resource(ResourceARN=rule["Arn"])["Tags"]):
            yield Leftover("event rule", rule["Name"])
    images = session.client("ecr")
    found = existing(lambda: images.describe_repositories(repositoryNames=[cluster.name])) or {"repositories": ()}
    for entry in found["repositories"]:
        if _is_of(cluster, images.list_tags_for_resource(resourceArn=entry["repositoryArn"])["tags"]):
            yield Leftover("image repository", cluster.name)


def _control_plane(session: Any, cluster: Cluster) -> Iterator[Leftover]:
    """The cluster and its logs. EKS may write a last log after its log group was deleted."""
    eks = session.client("eks")
    if existing(lambda: eks.describe_cluster(name=cluster.name)) is not None:
        yield Leftover("EKS cluster", cluster.name)
    logs = session.client("logs")
    for prefix in (f"/aws/eks/{cluster.name}/", f"/aws/containerinsights/{cluster.name}/"):
        for page in logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix):
            for entry in page["logGroups"]:
                yield Leftover("log group", entry["logGroupName"])


def _iam(session: Any, cluster: Cluster) -> Iterator[Leftover]:
    """Roles and instance profiles. IAM has no filter for tags: the names are narrowed down first."""
    client = session.client("iam")
    prefix = f"{cluster.roles.prefix or ''}{cluster.name}-"
    for page in client.get_paginator("list_roles").paginate():
        for name in (role["RoleName"] for role in page["Roles"]):
            if name.startswith(prefix) and _is_of(cluster, client.list_role_tags(RoleName=name)["Tags"]):
                yield Leftover("IAM role", name)
    for page in client.get_paginator("list_instance_profiles").paginate():
        for name in (profile["InstanceProfileName"] for profile in page["InstanceProfiles"]):
            if name.startswith((f"{cluster.name}-", f"{cluster.name}_")):
                tags = client.list_instance_profile_tags(InstanceProfileName=name)["Tags"]
                if _is_of(cluster, tags):
                    yield Leftover("instance profile", name)


def _keys(session: Any, region: str, cluster: Cluster) -> Iterator[Leftover]:
    """KMS keys that are not about to be deleted."""
    client = session.client("kms", region_name=region)
    for arn in _tagged(session, region, cluster, "kms"):
        key = client.describe_key(KeyId=arn)["KeyMetadata"]
        if key["KeyState"] not in ("PendingDeletion", "PendingReplicaDeletion"):
            yield Leftover("KMS key", key["KeyId"], key.get("Description", ""))


def _buckets(session: Any, region: str, cluster: Cluster) -> Iterator[Leftover]:
    existing = {entry["Name"] for entry in session.client("s3").list_buckets()["Buckets"]}
    names = {arn.rpartition(":")[2] for arn in _tagged(session, region, cluster, "s3")}
    yield from (Leftover("bucket", name) for name in names & existing)


def _tagged(session: Any, region: str, cluster: Cluster, kind: str) -> Iterator[str]:
    """The ARNs of the resources of this kind that spotladder has tagged. The API also lists some that are deleted."""
    client = session.client("resourcegroupstaggingapi", region_name=region)
    filters = [{"Key": "spotladder-cluster", "Values": [cluster.name]}]
    for page in client.get_paginator("get_resources").paginate(TagFilters=filters, ResourceTypeFilters=[kind]):
        yield from (entry["ResourceARN"] for entry in page["ResourceTagMappingList"])


def _kept(session: Any, region: str, fleet: Fleet, cluster: Cluster) -> set[str]:
    """The checkpoint bucket that the cluster's stack created, its replica, and their keys: `destroy` keeps them."""
    bucket = fleet.created_bucket(cluster)
    if bucket is None:
        return set()
    kept = {bucket.name, f"{bucket.name}-replica", replication_role(cluster.roles, bucket.name)}
    client = session.client("kms", region_name=region)
    for name in (bucket.name, f"{bucket.name}-replica"):
        alias = bucket_key_alias(name)
        for page in client.get_paginator("list_aliases").paginate():
            kept |= {entry["TargetKeyId"] for entry in page["Aliases"] if entry["AliasName"] == alias}
    return kept
