"""AWS: credentials, quotas of each region, and what each cluster needs. Needs read access only."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import cache, partial
from typing import Any

from spotladder.core.model import CapacityType
from spotladder.errors import EnvironmentFailure
from spotladder_infra.amazon import Connect
from spotladder_infra.doctor.result import CheckResult, Demand, Status, compared
from spotladder_infra.facts.images import NODE_IMAGE, OLDEST, released
from spotladder_infra.names import node_role
from spotladder_infra.node_images import newest
from spotladder_infra.topology.addon_checks import offered_addons
from spotladder_infra.topology.cluster import Cluster, Nat
from spotladder_infra.topology.defaults import system_instance_of, zones_of
from spotladder_infra.topology.fleet import Bucket, Fleet
from spotladder_infra.topology.online import aws_findings

SPOT_QUOTA = {
    "standard": ("L-34B43A08", "spot vCPUs, standard families"),
    "g": ("L-3819A6DF", "spot vCPUs, G and VT"),
    "p": ("L-7212CCBC", "spot vCPUs, P4, P3 and P2"),
    "p5": ("L-C4BD4855", "spot vCPUs, P5"),
    "inf": ("L-B5D1601B", "spot vCPUs, Inf"),
    "trn": ("L-6B0D517C", "spot vCPUs, Trn"),
    "dl": ("L-85EED4F7", "spot vCPUs, DL"),
    "x": ("L-E3A00192", "spot vCPUs, X"),
    "f": ("L-88CF9481", "spot vCPUs, F"),
}
ON_DEMAND_QUOTA = {
    "standard": ("L-1216C47A", "on-demand vCPUs, standard families"),
    "g": ("L-DB2E81BA", "on-demand vCPUs, G and VT"),
    "p": ("L-417A185B", "on-demand vCPUs, P"),
    "inf": ("L-1945791B", "on-demand vCPUs, Inf"),
    "trn": ("L-2C3B7624", "on-demand vCPUs, Trn"),
    "dl": ("L-6E869C2A", "on-demand vCPUs, DL"),
    "x": ("L-7295265B", "on-demand vCPUs, X"),
    "f": ("L-74FC7D96", "on-demand vCPUs, F"),
}
"""Code and name of the EC2 quota for a class of instance families. Several of them are 0 in a new account."""

VPCS, ADDRESSES, NATS = ("vpc", "L-F678F1CE"), ("ec2", "L-0263D0A3"), ("vpc", "L-FE5A380F")
STANDARD = frozenset("acdhimrtz")
_LETTERS = re.compile("[a-z]+")
_MISSING = ("404", "NoSuchBucket", "NotFound", "NoSuchEntity", "ResourceNotFoundException", "ParameterNotFound")


class Account:
    """Checks the AWS account of one fleet. `connect` creates a boto3 client for a service in a region."""

    def __init__(self, connect: Connect) -> None:
        self._connect = cache(connect)

    def examine(self, fleet: Fleet, clusters: Sequence[tuple[int, Cluster]], today: date) -> Iterator[CheckResult]:
        """The checks of these clusters, by their indexes in the file. Without credentials, only the check of the
        credentials."""
        identity = self._identity(clusters[0][1].region or "")
        yield identity
        if identity.status is Status.FAILED:
            yield CheckResult("aws", "all other checks", Status.SKIPPED, "no credentials")
            return
        for region in dict.fromkeys(cluster.region or "" for _, cluster in clusters):
            in_region = [cluster for _, cluster in clusters if cluster.region == region]
            yield from self._checked(f"aws {region}", "vCPU quotas", partial(self._vcpus, region, in_region))
            yield from self._checked(f"aws {region}", "network quotas", partial(self._network, region, in_region))
        for index, cluster in clusters:
            scope = cluster.name
            yield from self._checked(scope, "account", partial(self._account, cluster, identity))
            yield from self._checked(scope, "zones and instances", partial(self._offers, index, cluster))
            yield from self._checked(scope, "Kubernetes version", partial(self._version, cluster))
            yield from self._checked(scope, "add-ons", partial(self._addons, cluster))
            yield from self._checked(scope, "node image", partial(self._image, cluster, today))
            yield from self._checked(scope, "names", partial(self._names, fleet, cluster))

    def state_bucket(self, bucket: str, region: str) -> Iterator[CheckResult]:
        """Whether the bucket for Terraform's state exists."""
        yield from self._checked("state", f"s3://{bucket}", partial(self._state_bucket, bucket, region))

    def _checked(self, scope: str, check: str, look: Callable[[], Iterator[CheckResult]]) -> Iterator[CheckResult]:
        """The results of a check, which is skipped when AWS does not answer it."""
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 – with boto3

        try:
            yield from look()
        except (BotoCoreError, ClientError, EnvironmentFailure) as error:
            fix = "grant this identity the permission" if "AccessDenied" in str(error) else ""
            yield CheckResult(scope, check, Status.SKIPPED, f"AWS does not answer: {' '.join(str(error).split())}", fix)

    def _identity(self, region: str) -> CheckResult:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 – with boto3

        try:
            found = self._connect("sts", region).get_caller_identity()
        except (BotoCoreError, ClientError) as error:
            fix = "log in: aws sso login or aws configure, then aws sts get-caller-identity"
            return CheckResult("aws", "credentials", Status.FAILED, " ".join(str(error).split()), fix)
        return CheckResult("aws", "credentials", Status.OK, str(found["Arn"]))

    def _account(self, cluster: Cluster, identity: CheckResult) -> Iterator[CheckResult]:
        account = identity.found.split(":")[4]
        if cluster.account and cluster.account != account:
            message = f"the credentials are of {account}, the fleet file says {cluster.account}"
            yield CheckResult(cluster.name, "account", Status.FAILED, message, "use credentials of that account")
        else:
            yield CheckResult(cluster.name, "account", Status.OK, account)

    # --- quotas of a region ---

    def _vcpus(self, region: str, clusters: Sequence[Cluster]) -> Iterator[CheckResult]:
        demands: dict[tuple[str, str], Demand] = {}
        ec2 = self._connect("ec2", region)
        for cluster in clusters:
            system = _vcpus_of(ec2, [system_instance_of(cluster)])
            for kind, count in system.items():
                nodes = float(count[0] * cluster.system.count)
                _add(demands, ON_DEMAND_QUOTA.get(kind), Demand(nodes, nodes))
            for pool in cluster.pools:
                if pool.capacity_type is CapacityType.RESERVED:
                    continue
                spot = pool.capacity_type is CapacityType.SPOT
                names = [*pool.instance_types, *(f"{family}.*" for family in pool.families)]
                for kind, (least, most) in _vcpus_of(ec2, names).items():
                    largest = least if pool.families else most
                    limit = pool.limits.nodes * largest if pool.limits.nodes else _cpus(pool.limits.cpu) or least
                    table = SPOT_QUOTA if spot else ON_DEMAND_QUOTA
                    _add(demands, table.get(kind, table.get(kind[:1])), Demand(least, max(limit, least)))
        for (code, name), demand in demands.items():
            how = f"request {demand.most:g} in Service Quotas, ec2/{code}, region {region}"
            yield compared(f"aws {region}", name, self._limit(region, "ec2", code), demand, how=how)

    def _network(self, region: str, clusters: Sequence[Cluster]) -> Iterator[CheckResult]:
        new = [cluster for cluster in clusters if self._tags_of_cluster(cluster) is None]
        if not new:
            return
        ec2 = self._connect("ec2", region)
        gateways = {
            cluster.name: {Nat.NONE: 0, Nat.SINGLE: 1, Nat.PER_ZONE: len(zones_of(cluster))}[cluster.network.nat]
            for cluster in new
        }
        counts = (
            ("VPCs left", VPCS, len(new), len(ec2.describe_vpcs()["Vpcs"])),
            ("Elastic IPs left", ADDRESSES, sum(gateways.values()), len(ec2.describe_addresses()["Addresses"])),
        )
        for name, (service, code), needed, used in counts:
            how = f"request more in Service Quotas, {service}/{code}, region {region}, or remove some"
            left = self._limit(region, service, code) - used
            yield compared(f"aws {region}", name, left, Demand(needed, needed), how=how)
        states = [{"Name": "state", "Values": ["pending", "available"]}]
        subnets = [entry["SubnetId"] for entry in ec2.describe_nat_gateways(Filter=states)["NatGateways"]]
        zones = ec2.describe_subnets(SubnetIds=subnets)["Subnets"] if subnets else []
        used_by_zone = Counter(entry["AvailabilityZone"] for entry in zones)
        wanted = Counter(zone for cluster in new for zone in zones_of(cluster)[: gateways[cluster.name]])
        if wanted:
            limit = self._limit(region, *NATS)
            zone, needed = min(wanted.items(), key=lambda item: limit - used_by_zone[item[0]] - item[1])
            how = f"request more in Service Quotas, {NATS[0]}/{NATS[1]}, region {region}"
            left = limit - used_by_zone[zone]
            yield compared(f"aws {region}", f"NAT gateways left in {zone}", left, Demand(needed, needed), how=how)

    def _limit(self, region: str, service: str, code: str) -> float:
        """The account's quota; AWS's default if the account has no applied quota."""
        from botocore.exceptions import ClientError  # noqa: PLC0415 – with boto3

        quotas = self._connect("service-quotas", region)
        try:
            found = quotas.get_service_quota(ServiceCode=service, QuotaCode=code)
        except ClientError as error:
            if _code(error) != "NoSuchResourceException":
                raise
            found = quotas.get_aws_default_service_quota(ServiceCode=service, QuotaCode=code)
        return float(found["Quota"]["Value"])

    # --- one cluster ---

    def _offers(self, index: int, cluster: Cluster) -> Iterator[CheckResult]:
        findings = list(aws_findings(self._connect("ec2", cluster.region or ""), index, cluster))
        for found in findings:
            yield CheckResult(
                cluster.name, "zones and instances", Status.FAILED, found.message, "change the fleet file"
            )
        if not findings:
            yield CheckResult(cluster.name, "zones and instances", Status.OK, "all are offered")

    def _version(self, cluster: Cluster) -> Iterator[CheckResult]:
        client = self._connect("eks", cluster.region or "")
        found = client.describe_cluster_versions(clusterVersions=[cluster.kubernetes])["clusterVersions"]
        status = found[0].get("versionStatus", "") if found else "UNSUPPORTED"
        if status == "STANDARD_SUPPORT":
            ends = found[0].get("endOfStandardSupportDate")
            until = f", standard support until {ends.date()}" if ends else ""
            yield CheckResult(cluster.name, "Kubernetes version", Status.OK, f"{cluster.kubernetes}{until}")
        elif status == "EXTENDED_SUPPORT":
            message = f"{cluster.kubernetes} has extended support only, which costs extra"
            yield CheckResult(cluster.name, "Kubernetes version", Status.WARNING, message, "choose a newer version")
        else:
            message = f"EKS does not offer {cluster.kubernetes} in {cluster.region}"
            yield CheckResult(cluster.name, "Kubernetes version", Status.FAILED, message, "choose another version")

    def _addons(self, cluster: Cluster) -> Iterator[CheckResult]:
        found = offered_addons(self._connect("eks", cluster.region or ""), cluster)
        for addon in found:
            if addon.problem:
                problem, _, fix = addon.problem.partition(": ")
                yield CheckResult(cluster.name, "add-ons", Status.FAILED, problem, fix)
        if any(addon.problem for addon in found):
            return
        listed = [
            f"{addon.name} {addon.wanted or f'EKS default {addon.default}'}"
            + (f" (EKS default {addon.default})" if addon.wanted and addon.wanted != addon.default else "")
            for addon in found
        ]
        yield CheckResult(cluster.name, "add-ons", Status.OK, ", ".join(listed))

    def _image(self, cluster: Cluster, today: date) -> Iterator[CheckResult]:
        used = sorted({pool.image or NODE_IMAGE for pool in cluster.pools})
        latest = newest(self._connect("ssm", cluster.region or ""), "al2023", cluster.kubernetes)
        dates = [day for day in map(released, used) if day is not None]
        message = f"{', '.join(used)}; the newest is {latest}"
        if any(today - day > OLDEST for day in dates):
            yield CheckResult(cluster.name, "node image", Status.WARNING, message, f"set image: {latest} on the pools")
        else:
            yield CheckResult(cluster.name, "node image", Status.OK, message)

    def _names(self, fleet: Fleet, cluster: Cluster) -> Iterator[CheckResult]:
        ours = fleet.metadata.name
        taken = []
        for what, tags in (
            (f"EKS cluster {cluster.name}", self._tags_of_cluster(cluster)),
            (f"IAM role {node_role(cluster)}", self._tags_of_role(cluster)),
        ):
            if tags is not None and tags.get("spotladder-fleet") != ours:
                taken.append(f"{what} exists and does not belong to fleet {ours}")
        for message in taken:
            yield CheckResult(cluster.name, "names", Status.FAILED, message, "rename the cluster")
        bucket = fleet.bucket_of(cluster)
        owned = bucket is not None and fleet.owner_of(bucket) == cluster
        problem = self._bucket(bucket, ours) if bucket is not None and owned else None
        if problem is not None:
            yield problem
        if not taken and problem is None:
            yield CheckResult(cluster.name, "names", Status.OK, "available, or owned by this fleet")

    def _bucket(self, bucket: Bucket, fleet: str) -> CheckResult | None:
        """The problems of a bucket that the stack will create."""
        from botocore.exceptions import ClientError  # noqa: PLC0415 – with boto3

        client = self._connect("s3", bucket.region)
        try:
            client.head_bucket(Bucket=bucket.name)
        except ClientError as error:
            if _code(error) in _MISSING:
                return None
            message = f"s3://{bucket.name} belongs to another account"
            return CheckResult("aws", "checkpoint bucket", Status.FAILED, message, "rename the bucket")
        try:
            tags = {entry["Key"]: entry["Value"] for entry in client.get_bucket_tagging(Bucket=bucket.name)["TagSet"]}
        except ClientError:
            tags = {}
        if tags.get("spotladder-fleet") == fleet:
            return None
        message = f"s3://{bucket.name} exists and does not belong to fleet {fleet}"
        return CheckResult(
            "aws", "checkpoint bucket", Status.FAILED, message, "rename it, or set create: false to use it"
        )

    def _state_bucket(self, bucket: str, region: str) -> Iterator[CheckResult]:
        from botocore.exceptions import ClientError  # noqa: PLC0415 – with boto3

        try:
            self._connect("s3", region).head_bucket(Bucket=bucket)
        except ClientError as error:
            if _code(error) in _MISSING:
                yield CheckResult("state", f"s3://{bucket}", Status.FAILED, "does not exist", "spotladder infra state")
                return
            message = f"may not be used ({_code(error)})"
            yield CheckResult(
                "state", f"s3://{bucket}", Status.FAILED, message, "use its account, or choose another name"
            )
            return
        yield CheckResult("state", f"s3://{bucket}", Status.OK, "reachable")

    def _tags_of_cluster(self, cluster: Cluster) -> dict[str, str] | None:
        """The tags of the EKS cluster of that name; None when it does not exist."""
        from botocore.exceptions import ClientError  # noqa: PLC0415 – with boto3

        try:
            found = self._connect("eks", cluster.region or "").describe_cluster(name=cluster.name)["cluster"]
        except ClientError as error:
            if _code(error) in _MISSING:
                return None
            raise
        return dict(found.get("tags") or {})

    def _tags_of_role(self, cluster: Cluster) -> dict[str, str] | None:
        from botocore.exceptions import ClientError  # noqa: PLC0415 – with boto3

        try:
            found = self._connect("iam", cluster.region or "").get_role(RoleName=node_role(cluster))["Role"]
        except ClientError as error:
            if _code(error) in _MISSING:
                return None
            raise
        return {entry["Key"]: entry["Value"] for entry in found.get("Tags") or ()}


def _vcpus_of(client: Any, names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """The minimum and the maximum number of vCPUs of these instance types, by class of quota. Names may end with
    `*`."""
    found: dict[str, tuple[float, float]] = {}
    pages = client.get_paginator("describe_instance_types").paginate(
        Filters=[{"Name": "instance-type", "Values": list(names)}]
    )
    for page in pages:
        for entry in page["InstanceTypes"]:
            kind = quota_class(entry["InstanceType"])
            count = float(entry["VCpuInfo"]["DefaultVCpus"])
            least, most = found.get(kind, (count, count))
            found[kind] = min(least, count), max(most, count)
    return found


def quota_class(instance_type: str) -> str:
    """The class of quota of an instance type: `standard` of m7i.large, `g` of g5.xlarge, `p5` of p5.48xlarge."""
    family = instance_type.partition(".")[0]
    letters = (_LETTERS.match(family) or [""])[0]
    if letters == "vt":
        return "g"
    if family.startswith("p5"):
        return "p5"
    return "standard" if letters in STANDARD else letters


def _add(demands: dict[tuple[str, str], Demand], quota: tuple[str, str] | None, demand: Demand) -> None:
    if quota is not None:
        demands[quota] = demands[quota] + demand if quota in demands else demand


def _cpus(quantity: object) -> float:
    """CPUs of a Kubernetes quantity; 0 for none."""
    text = str(quantity) if quantity is not None else "0"
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
