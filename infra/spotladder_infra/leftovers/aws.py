"""The remaining resources of a cluster in an AWS account, found by tags and names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from spotladder_infra.amazon import CREDENTIALS, answering, pairs, sdk
from spotladder_infra.checkpoints import owned
from spotladder_infra.leftovers.resource import Leftover
from spotladder_infra.names import bucket_key_alias, interruption_queue
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.fleet import Fleet

NODEPOOL = "karpenter.sh/nodepool"
NODECLAIM = "karpenter.sh/nodeclaim"

_GONE = {
    "instance": ("terminated", "shutting-down"),
    "NAT gateway": ("deleted", "deleting"),
    "VPC endpoint": ("deleted", "deleting"),
    "volume": ("deleted", "deleting"),
}
"""States of resources that AWS still describes and no longer bills."""


def tags_of(cluster: Cluster) -> tuple[tuple[str, str], ...]:
    """The tags that spotladder, Karpenter, the VPC CNI, EKS and the load balancer controller set."""
    name = cluster.name
    return (
        ("spotladder-cluster", name),
        (f"kubernetes.io/cluster/{name}", "owned"),
        ("eks:eks-cluster-name", name),
        ("karpenter.k8s.aws/cluster", name),
        ("cluster.k8s.amazonaws.com/name", name),
        ("elbv2.k8s.aws/cluster", name),
    )


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
    for region in _regions(fleet, cluster):
        found += _keys(session, region, cluster)
        found += _buckets(session, region, cluster)
        kept |= _kept(session, region, fleet, cluster) if keep_checkpoints else set()
    return [entry for entry in found if entry.identifier not in kept]


def _regions(fleet: Fleet, cluster: Cluster) -> list[str]:
    """The regions of the stack's resources: only a bucket and its replica may be outside the cluster's."""
    bucket = owned(fleet, cluster)
    names = [cluster.region, bucket.region, bucket.replicate_to] if bucket is not None else [cluster.region]
    return list(dict.fromkeys(name for name in names if name))


def _ec2(session: Any, cluster: Cluster) -> Iterator[Leftover]:
    client = session.client("ec2")
    for kind, operation, result, key, state in _DESCRIBED:
        for tag, value in tags_of(cluster):
            pages = client.get_paginator(operation).paginate(Filters=[{"Name": f"tag:{tag}", "Values": [value]}])
            for page in pages:
                holders = page[result]
                entries = [one for holder in holders for one in holder["Instances"]] if kind == "instance" else holders
                for entry in entries:
                    if _state(entry, state) in _GONE.get(kind, ()):
                        continue
                    tags = pairs(entry.get("Tags", entry.get("TagSet")))
                    claimed = kind == "instance" and (NODEPOOL in tags or NODECLAIM in tags)
                    detail = tags.get(NODECLAIM) or tags.get("Name") or entry.get("Description") or ""
                    yield Leftover("node" if claimed else kind, entry[key], detail)
    for tag, value in tags_of(cluster):
        for entry in client.describe_addresses(Filters=[{"Name": f"tag:{tag}", "Values": [value]}])["Addresses"]:
            yield Leftover("address", entry["AllocationId"], entry.get("PublicIp", ""))


_DESCRIBED = (
    ("instance", "describe_instances", "Reservations", "InstanceId", "State.Name"),
    ("volume", "describe_volumes", "Volumes", "VolumeId", "State"),
    ("network interface", "describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId", ""),
    ("NAT gateway", "describe_nat_gateways", "NatGateways", "NatGatewayId", "State"),
    ("VPC endpoint", "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId", "State"),
    ("launch template", "describe_launch_templates", "LaunchTemplates", "LaunchTemplateId", ""),
    ("security group", "describe_security_groups", "SecurityGroups", "GroupId", ""),
    ("subnet", "describe_subnets", "Subnets", "SubnetId", ""),
    ("route table", "describe_route_tables", "RouteTables", "RouteTableId", ""),
    ("internet gateway", "describe_internet_gateways", "InternetGateways", "InternetGatewayId", ""),
    ("VPC", "describe_vpcs", "Vpcs", "VpcId", ""),
)
"""Operations of EC2 that filter by tags: kind, operation, list, id, and where the state is."""


def _state(entry: dict[str, Any], path: str) -> str:
    found: Any = entry
    for part in path.split(".") if path else ():
        found = (found or {}).get(part)
    return str(found or "") if path else ""


def _balancers(session: Any, cluster: Cluster) -> Iterator[Leftover]:
    """Load balancers of all kinds; their APIs have no filter for tags."""
    wanted = set(tags_of(cluster))
    modern = session.client("elbv2")
    pages = modern.get_paginator("describe_load_balancers").paginate()
    names = {entry["LoadBalancerArn"]: entry["LoadBalancerName"] for page in pages for entry in page["LoadBalancers"]}
    for some in _batches(list(names)):
        for entry in modern.describe_tags(ResourceArns=some)["TagDescriptions"]:
            if wanted & pairs(entry["Tags"]).items():
                yield Leftover("load balancer", entry["ResourceArn"], names[entry["ResourceArn"]])
    classic = session.client("elb")
    listed = classic.get_paginator("describe_load_balancers").paginate()
    for some in _batches(
        [entry["LoadBalancerName"] for page in listed for entry in page.get("LoadBalancerDescriptions", ())]
    ):
        for entry in classic.describe_tags(LoadBalancerNames=some)["TagDescriptions"]:
            if wanted & pairs(entry["Tags"]).items():
                yield Leftover("load balancer", entry["LoadBalancerName"])


def _batches(names: list[str]) -> Iterator[list[str]]:
    """The names in groups for one call each."""
    for start in range(0, len(names), _TAGS_PER_CALL):
        yield names[start : start + _TAGS_PER_CALL]


_TAGS_PER_CALL = 20
"""Largest number of resources in one call for tags."""


def _named(session: Any, cluster: Cluster) -> Iterator[Leftover]:
    """Resources that are named after the cluster. EKS may write a last log after its log group was deleted."""
    eks = session.client("eks")
    if cluster.name in eks.list_clusters()["clusters"]:
        yield Leftover("EKS cluster", cluster.name)
    logs = session.client("logs")
    for prefix in (f"/aws/eks/{cluster.name}/", f"/aws/containerinsights/{cluster.name}/"):
        for page in logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix):
            for entry in page["logGroups"]:
                yield Leftover("log group", entry["logGroupName"])
    queue = interruption_queue(cluster)
    for url in session.client("sqs").list_queues(QueueNamePrefix=queue).get("QueueUrls", []):
        if url.rpartition("/")[2] == queue:
            yield Leftover("queue", url)
    events = session.client("events")
    for rule in events.list_rules(NamePrefix=f"{cluster.name}-")["Rules"]:
        if set(tags_of(cluster)) & pairs(events.list_tags_for_resource(ResourceARN=rule["Arn"])["Tags"]).items():
            yield Leftover("event rule", rule["Name"])


def _iam(session: Any, cluster: Cluster) -> Iterator[Leftover]:
    """Roles and instance profiles. IAM has no filter for tags: the names are narrowed down first."""
    client = session.client("iam")
    wanted = set(tags_of(cluster))
    for page in client.get_paginator("list_roles").paginate():
        for role in page["Roles"]:
            name = role["RoleName"]
            if (
                name.startswith(f"{cluster.name}-")
                and wanted & pairs(client.list_role_tags(RoleName=name)["Tags"]).items()
            ):
                yield Leftover("IAM role", name)
    for page in client.get_paginator("list_instance_profiles").paginate():
        for profile in page["InstanceProfiles"]:
            name = profile["InstanceProfileName"]
            if name.startswith((f"{cluster.name}-", f"{cluster.name}_")):
                tags = client.list_instance_profile_tags(InstanceProfileName=name)["Tags"]
                if wanted & pairs(tags).items():
                    yield Leftover("instance profile", name)


def _keys(session: Any, region: str, cluster: Cluster) -> Iterator[Leftover]:
    """KMS keys that are not about to be deleted."""
    client = session.client("kms", region_name=region)
    tagging = session.client("resourcegroupstaggingapi", region_name=region)
    filters = [{"Key": "spotladder-cluster", "Values": [cluster.name]}]
    pages = tagging.get_paginator("get_resources").paginate(TagFilters=filters, ResourceTypeFilters=["kms"])
    for page in pages:
        for entry in page["ResourceTagMappingList"]:
            key = client.describe_key(KeyId=entry["ResourceARN"])["KeyMetadata"]
            if key["KeyState"] not in ("PendingDeletion", "PendingReplicaDeletion"):
                yield Leftover("KMS key", key["KeyId"], key.get("Description", ""))


def _buckets(session: Any, region: str, cluster: Cluster) -> Iterator[Leftover]:
    tagging = session.client("resourcegroupstaggingapi", region_name=region)
    filters = [{"Key": "spotladder-cluster", "Values": [cluster.name]}]
    existing = {entry["Name"] for entry in session.client("s3").list_buckets()["Buckets"]}
    for page in tagging.get_paginator("get_resources").paginate(TagFilters=filters, ResourceTypeFilters=["s3"]):
        for entry in page["ResourceTagMappingList"]:
            name = entry["ResourceARN"].rpartition(":")[2]
            if name in existing:
                yield Leftover("bucket", name)


def _kept(session: Any, region: str, fleet: Fleet, cluster: Cluster) -> set[str]:
    """The checkpoint bucket that the cluster's stack created, its replica, and their keys: `destroy` keeps them."""
    bucket = owned(fleet, cluster)
    if bucket is None:
        return set()
    kept = {bucket.name, f"{bucket.name}-replica", f"{bucket.name}-replication"[:64]}
    client = session.client("kms", region_name=region)
    for name in (bucket.name, f"{bucket.name}-replica"):
        alias = bucket_key_alias(name)
        for page in client.get_paginator("list_aliases").paginate():
            kept |= {entry["TargetKeyId"] for entry in page["Aliases"] if entry["AliasName"] == alias}
    return kept
