"""Finds the resources of a stack that exist in an AWS account."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from spotladder.errors import EnvironmentFailure
from spotladder_infra.amazon import sdk
from spotladder_infra.terraform.existing import Existing
from spotladder_infra.topology.cluster import Cluster

_REFERENCE = re.compile(r"^\$\{([a-z0-9_]+)\.([A-Za-z0-9_-]+)\.[a-z_]+\}$")


def existing(cluster: Cluster, stack: Mapping[str, Any], creates: set[str]) -> list[Existing]:
    """The resources at the addresses `creates` that exist. Raises EnvironmentFailure.

    Args:
        stack: The stack's configuration.
    """
    boto3 = sdk()
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 – only for AWS

    try:
        session = boto3.session.Session(region_name=cluster.region)
        return list(_Lookup(session, cluster.name, stack, creates).all())
    except (BotoCoreError, ClientError) as error:
        raise EnvironmentFailure(
            f"{' '.join(str(error).split())}: check the credentials of this shell (aws sts get-caller-identity)"
        ) from None


class _Lookup:
    """Looks up the resources of a stack in AWS, each in the region of its provider.

    `creates` are the addresses that the plan creates.
    """

    def __init__(self, session: Any, cluster: str, stack: Mapping[str, Any], creates: set[str]) -> None:
        self._session = session
        self._cluster = cluster
        self._stack = stack["resource"]
        self._regions = {
            f"aws.{entry['alias']}" if "alias" in entry else None: entry["region"] for entry in stack["provider"]["aws"]
        }
        self._creates = creates
        self._clients: dict[tuple[str, str | None], Any] = {}

    def all(self) -> Iterator[Existing]:
        for kind, finder in self._finders().items():
            for name, body in self._stack.get(kind, {}).items():
                address = f"{kind}.{name}"
                if address not in self._creates:
                    continue
                found = self._try(partial(finder, body))
                if found is not None:
                    yield Existing(address, *found)
        for provider in self._regions:
            yield from self._keys(provider)
        for kind, (operation, result, key) in _TAGGED.items():
            yield from self._by_name_tag(kind, operation, result, key)
        yield from self._routes()

    def _finders(self) -> dict[str, Callable[[Any], tuple[str, Mapping[str, str] | None] | None]]:
        return {
            "aws_iam_role": self._role,
            "aws_iam_instance_profile": self._profile,
            "aws_cloudwatch_log_group": self._log_group,
            "aws_launch_template": self._template,
            "aws_s3_bucket": self._bucket,
            "aws_sqs_queue": self._queue,
            "aws_eks_cluster": self._eks_cluster,
            "aws_eks_node_group": self._node_group,
            "aws_eks_addon": self._addon,
            "aws_eks_access_entry": self._access_entry,
            "aws_eks_pod_identity_association": self._pod_identity,
        }

    def _try(self, call: Callable[[], Any]) -> Any:
        """The response; None for a resource that does not exist."""
        from botocore.exceptions import ClientError  # noqa: PLC0415

        try:
            return call()
        except ClientError as error:
            if _ABSENT.search(str(error.response.get("Error", {}).get("Code", ""))):
                return None
            raise

    def _client(self, service: str, provider: str | None = None) -> Any:
        """The client of a service in the region of a provider; None is the cluster's own."""
        key = service, provider
        if key not in self._clients:
            self._clients[key] = self._session.client(service, region_name=self._regions[provider])
        return self._clients[key]

    def _role(self, body: Any) -> tuple[str, Mapping[str, str]]:
        role = self._client("iam").get_role(RoleName=body["name"])["Role"]
        return body["name"], _pairs(role.get("Tags"))

    def _profile(self, body: Any) -> tuple[str, Mapping[str, str]]:
        profile = self._client("iam").get_instance_profile(InstanceProfileName=body["name"])["InstanceProfile"]
        return body["name"], _pairs(profile.get("Tags"))

    def _log_group(self, body: Any) -> tuple[str, Mapping[str, str]] | None:
        client = self._client("logs")
        listed = client.describe_log_groups(logGroupNamePrefix=body["name"])["logGroups"]
        arn = next((entry["arn"] for entry in listed if entry["logGroupName"] == body["name"]), None)
        if arn is None:
            return None
        return body["name"], client.list_tags_for_resource(resourceArn=arn.removesuffix(":*")).get("tags", {})

    def _template(self, body: Any) -> tuple[str, Mapping[str, str]] | None:
        listed = self._client("ec2").describe_launch_templates(LaunchTemplateNames=[body["name"]])["LaunchTemplates"]
        if not listed:
            return None
        return listed[0]["LaunchTemplateId"], _pairs(listed[0].get("Tags"))

    def _bucket(self, body: Any) -> tuple[str, Mapping[str, str] | None]:
        from botocore.exceptions import ClientError  # noqa: PLC0415

        client, name = self._client("s3", body.get("provider")), body["bucket"]
        try:
            client.head_bucket(Bucket=name)
            return name, _pairs(client.get_bucket_tagging(Bucket=name)["TagSet"])
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code")
            if code == "NoSuchTagSet":  # Terraform tags a bucket after it has created it
                return name, {} if client.list_objects_v2(Bucket=name, MaxKeys=1).get("KeyCount") else None
            if code in ("403", "AccessDenied"):
                return name, {}
            raise

    def _queue(self, body: Any) -> tuple[str, Mapping[str, str]]:
        client = self._client("sqs")
        url = client.get_queue_url(QueueName=body["name"])["QueueUrl"]
        return url, client.list_queue_tags(QueueUrl=url).get("Tags", {})

    def _eks_cluster(self, body: Any) -> tuple[str, Mapping[str, str]]:
        found = self._client("eks").describe_cluster(name=body["name"])["cluster"]
        return body["name"], found.get("tags", {})

    def _node_group(self, body: Any) -> tuple[str, Mapping[str, str]]:
        name = body["node_group_name"]
        found = self._client("eks").describe_nodegroup(clusterName=self._cluster, nodegroupName=name)["nodegroup"]
        return f"{self._cluster}:{name}", found.get("tags", {})

    def _addon(self, body: Any) -> tuple[str, Mapping[str, str]]:
        name = body["addon_name"]
        found = self._client("eks").describe_addon(clusterName=self._cluster, addonName=name)["addon"]
        return f"{self._cluster}:{name}", found.get("tags", {})

    def _access_entry(self, body: Any) -> tuple[str, Mapping[str, str]] | None:
        arn = body["principal_arn"]
        if match := _REFERENCE.match(arn):
            role = self._stack[match[1]][match[2]]["name"]
            arn = self._client("iam").get_role(RoleName=role)["Role"]["Arn"]
        found = self._client("eks").describe_access_entry(clusterName=self._cluster, principalArn=arn)["accessEntry"]
        return f"{self._cluster}:{arn}", found.get("tags", {})

    def _pod_identity(self, body: Any) -> tuple[str, Mapping[str, str]] | None:
        client = self._client("eks")
        listed = client.list_pod_identity_associations(
            clusterName=self._cluster, namespace=body["namespace"], serviceAccount=body["service_account"]
        )["associations"]
        if not listed:
            return None
        identifier = listed[0]["associationId"]
        found = client.describe_pod_identity_association(clusterName=self._cluster, associationId=identifier)
        return f"{self._cluster},{identifier}", found["association"].get("tags", {})

    def _keys(self, provider: str | None) -> Iterator[Existing]:
        """The keys of a provider's region.

        Keys have no names: a key is identified by its alias or, without one, by its tags and description.
        """
        client = self._client("kms", provider)
        found: dict[str, Existing] = {}
        for name, body in self._of_provider("aws_kms_alias", provider):
            described = self._try(partial(client.describe_key, KeyId=body["name"]))
            if described is None:
                continue
            key = described["KeyMetadata"]["KeyId"]
            tags = {entry["TagKey"]: entry["TagValue"] for entry in client.list_resource_tags(KeyId=key)["Tags"]}
            if f"aws_kms_alias.{name}" in self._creates:
                yield Existing(f"aws_kms_alias.{name}", body["name"], tags)
            if match := _REFERENCE.match(body["target_key_id"]):
                address = f"{match[1]}.{match[2]}"
                found[address] = Existing(address, key, tags)
        wanted = {
            body["description"]: f"aws_kms_key.{name}" for name, body in self._of_provider("aws_kms_key", provider)
        }
        filters = [{"Key": "spotladder-cluster", "Values": [self._cluster]}]
        tagging = self._client("resourcegroupstaggingapi", provider).get_paginator("get_resources")
        for page in tagging.paginate(TagFilters=filters, ResourceTypeFilters=["kms"]):
            for entry in page["ResourceTagMappingList"]:
                key = client.describe_key(KeyId=entry["ResourceARN"])["KeyMetadata"]
                address = wanted.get(key.get("Description", ""), "")
                if address and key["KeyState"] == "Enabled":
                    found.setdefault(address, Existing(address, key["KeyId"], _pairs(entry["Tags"])))
        yield from (entry for address, entry in found.items() if address in self._creates)

    def _of_provider(self, kind: str, provider: str | None) -> list[tuple[str, Any]]:
        """The resources of a type that a provider creates."""
        return [(name, body) for name, body in self._stack.get(kind, {}).items() if body.get("provider") == provider]

    def _by_name_tag(self, kind: str, operation: str, result: str, key: str) -> Iterator[Existing]:
        """Resources without a unique name, found by the cluster's tags and the tag Name."""
        wanted = {
            body["tags"]["Name"]: f"{kind}.{name}"
            for name, body in self._stack.get(kind, {}).items()
            if f"{kind}.{name}" in self._creates and "Name" in (body.get("tags") or {})
        }
        if not wanted:
            return
        client = self._client("ec2")
        filters = [{"Name": "tag:spotladder-cluster", "Values": [self._cluster]}]
        answer = getattr(client, operation)(Filters=filters)
        found: dict[str, list[Existing]] = {}
        for entry in answer[result]:
            if entry.get("State") in ("deleted", "deleting", "failed"):
                continue
            tags = _pairs(entry.get("Tags"))
            if address := wanted.get(tags.get("Name", "")):
                found.setdefault(address, []).append(Existing(address, entry[key], tags))
        for candidates in found.values():
            if len(candidates) == 1:  # several candidates: none is imported, and `destroy` lists them
                yield candidates[0]

    def _routes(self) -> Iterator[Existing]:
        """Routes and associations have no tags: their tables and subnets have."""
        client = self._client("ec2")
        filters = [{"Name": "tag:spotladder-cluster", "Values": [self._cluster]}]
        tables = {
            _pairs(entry.get("Tags")).get("Name"): entry
            for entry in client.describe_route_tables(Filters=filters)["RouteTables"]
        }
        if not tables:
            return
        subnets = {
            _pairs(entry.get("Tags")).get("Name"): entry["SubnetId"]
            for entry in client.describe_subnets(Filters=filters)["Subnets"]
        }
        for name, body in self._stack.get("aws_route", {}).items():
            table = tables.get(self._name_of(body["route_table_id"]))
            target = body["destination_cidr_block"]
            linked = [route.get("DestinationCidrBlock") for route in table["Routes"]] if table else []
            if f"aws_route.{name}" in self._creates and table and target in linked:
                yield Existing(f"aws_route.{name}", f"{table['RouteTableId']}_{target}", None)
        for name, body in self._stack.get("aws_route_table_association", {}).items():
            table = tables.get(self._name_of(body["route_table_id"]))
            subnet = subnets.get(self._name_of(body["subnet_id"]))
            linked = [entry.get("SubnetId") for entry in table["Associations"]] if table else []
            if f"aws_route_table_association.{name}" in self._creates and table and subnet in linked:
                identifier = f"{subnet}/{table['RouteTableId']}"
                yield Existing(f"aws_route_table_association.{name}", identifier, None)

    def _name_of(self, reference: str) -> str:
        """The tag Name of the resource that a value refers to."""
        match = _REFERENCE.match(reference)
        return str(self._stack[match[1]][match[2]]["tags"]["Name"]) if match else ""


_TAGGED = {
    "aws_vpc": ("describe_vpcs", "Vpcs", "VpcId"),
    "aws_subnet": ("describe_subnets", "Subnets", "SubnetId"),
    "aws_internet_gateway": ("describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
    "aws_route_table": ("describe_route_tables", "RouteTables", "RouteTableId"),
    "aws_eip": ("describe_addresses", "Addresses", "AllocationId"),
    "aws_nat_gateway": ("describe_nat_gateways", "NatGateways", "NatGatewayId"),
    "aws_vpc_endpoint": ("describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
    "aws_security_group": ("describe_security_groups", "SecurityGroups", "GroupId"),
    "aws_vpc_security_group_ingress_rule": (
        "describe_security_group_rules",
        "SecurityGroupRules",
        "SecurityGroupRuleId",
    ),
    "aws_vpc_security_group_egress_rule": (
        "describe_security_group_rules",
        "SecurityGroupRules",
        "SecurityGroupRuleId",
    ),
}
"""Types of EC2 with a tag Name: operation, list, id."""

_ABSENT = re.compile(r"NotFound|NoSuch|NonExistentQueue|^404$")


def _pairs(tags: Any) -> dict[str, str]:
    return {entry["Key"]: entry["Value"] for entry in tags or ()}
