"""AWS: credentials, vCPU quotas of each region, and what each cluster needs. Needs read access only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from spotladder.core.model import CapacityType
from spotladder.errors import EnvironmentFailure
from spotladder_infra import account
from spotladder_infra.amazon import Connect, answering, bucket_tags, code_of, connect, existing
from spotladder_infra.doctor import owners
from spotladder_infra.doctor.result import Check, CheckResult, Demand, Status, compared, divided, failed, ok
from spotladder_infra.facts.addons import BEFORE_NODES
from spotladder_infra.facts.quotas import ON_DEMAND_QUOTA, SPOT_QUOTA, quota_class
from spotladder_infra.topology import online
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.defaults import system_instance_of
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import Pool


def checks(fleet: Fleet, places: Sequence[tuple[int, Cluster]], connect: Connect = connect) -> Iterator[Check]:
    """The checks of these clusters, which come with their indexes in the file."""
    yield Check("aws", "credentials", _credentials(connect, places[0][1].region or ""), gate=True)
    for check in _checks(fleet, places, connect):
        yield replace(check, found=_answered(check.found))


def _checks(fleet: Fleet, places: Sequence[tuple[int, Cluster]], connect: Connect) -> Iterator[Check]:
    """Those that raise errors of botocore."""
    clusters = [cluster for _, cluster in places]
    if account.uses_spot(clusters):
        yield Check("aws", "spot role", _spot_role(connect, clusters[0].region or ""))
    for region in dict.fromkeys(cluster.region or "" for cluster in clusters):
        in_region = [cluster for cluster in clusters if cluster.region == region]
        yield Check(f"aws {region}", "vCPU quotas", _vcpus(connect, region, in_region))
    for index, cluster in places:
        offered, describe = online.aws(connect, index, cluster), partial(_described, connect, cluster)
        yield from owners.of_cluster(fleet, cluster, offered, describe, partial(bucket_tags, connect))


def _answered(found: Iterable[CheckResult]) -> Iterator[CheckResult]:
    with answering():
        yield from found


def _credentials(connect: Connect, region: str) -> Iterator[CheckResult]:
    try:
        yield ok(account.caller(connect, region))
    except EnvironmentFailure as error:
        yield failed(*divided(error))


def _spot_role(connect: Connect, region: str) -> Iterator[CheckResult]:
    if account.has_spot_role(connect, region):
        yield ok(account.SPOT_ROLE)
    else:
        found = f"the account has no {account.SPOT_ROLE}: bootstrap creates it"
        yield CheckResult(Status.WARNING, found, f"if your identity may not: {account.CREATE_SPOT_ROLE}")


def _vcpus(connect: Connect, region: str, clusters: Sequence[Cluster]) -> Iterator[CheckResult]:
    """The vCPUs of system nodes and pools, by class of quota."""
    demands: dict[tuple[str, str], Demand] = defaultdict(Demand)
    ec2 = connect("ec2", region)
    for cluster in clusters:
        system = [system_instance_of(cluster)] if cluster.created else []
        for kind, (count, _) in _vcpus_of(ec2, system).items():
            if quota := ON_DEMAND_QUOTA.get(kind):
                demands[quota] += Demand(count * cluster.system.count, count * cluster.system.count)
        for pool in cluster.pools:
            if pool.capacity_type is CapacityType.RESERVED:
                continue
            table = SPOT_QUOTA if pool.capacity_type is CapacityType.SPOT else ON_DEMAND_QUOTA
            names = [*pool.instance_types, *(f"{family}.*" for family in pool.families)]
            for kind, (least, most) in _vcpus_of(ec2, names).items():
                if quota := table.get(kind, table.get(kind[:1])):
                    demands[quota] += Demand(least, _limit_of(pool, least, most))
    for (code, name), demand in demands.items():
        how = f"request {demand.most:g} in Service Quotas, ec2/{code}, region {region}"
        yield compared(name, _quota(connect, region, code), demand, how=how)


def _limit_of(pool: Pool, least: float, most: float) -> float:
    """The vCPUs that a pool may have, of instances with `least` to `most` vCPUs."""
    if pool.limits.nodes:
        return pool.limits.nodes * (least if pool.families else most)
    text = pool.limits.cpu or "0"
    number = text.rstrip("".join(_SUFFIXES))
    return max(least, float(number) * _SUFFIXES[text.removeprefix(number)])


_SUFFIXES: dict[str, float] = {"": 1, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15} | {
    f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGTP", 1)
}
"""The factors of the suffixes of Kubernetes' quantities."""


def _vcpus_of(client: Any, names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """The minimum and the maximum number of vCPUs of these instance types, by class of quota. Names may end with
    `*`."""
    found: dict[str, tuple[float, float]] = {}
    for entry in online.paged(client, "describe_instance_types", names):
        kind, count = quota_class(entry["InstanceType"]), float(entry["VCpuInfo"]["DefaultVCpus"])
        least, most = found.get(kind, (count, count))
        found[kind] = min(least, count), max(most, count)
    return found


def _quota(connect: Connect, region: str, code: str) -> float:
    """The account's quota of EC2; AWS's default if the account has no applied quota."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 – with boto3

    quotas = connect("service-quotas", region)
    try:
        found = quotas.get_service_quota(ServiceCode="ec2", QuotaCode=code)
    except ClientError as error:
        if code_of(error) != "NoSuchResourceException":
            raise
        found = quotas.get_aws_default_service_quota(ServiceCode="ec2", QuotaCode=code)
    return float(found["Quota"]["Value"])


POD_IDENTITY = "eks-pod-identity-agent"


def _described(connect: Connect, cluster: Cluster) -> owners.Described | None:
    client = connect("eks", cluster.region or "")
    found = existing(lambda: client.describe_cluster(name=cluster.cloud_name)["cluster"])
    if found is None:
        return None
    return owners.Described(str(found["version"]), found.get("tags", {}), _lacks(client, cluster, found))


def _lacks(client: Any, cluster: Cluster, found: dict[str, Any]) -> Iterator[CheckResult]:
    """What an existing cluster lacks for the identities of nodes and pods."""
    if found.get("computeConfig", {}).get("enabled"):
        message = (
            f"is in Auto Mode: nodes of Karpenter become ready only with {' and '.join(BEFORE_NODES[:2])} of yours"
        )
        fix = "describe it with cloud: existing, and pools with nodeClass (group: eks.amazonaws.com, kind: NodeClass)"
        yield CheckResult(Status.WARNING, message, fix)
    named = f"--region {cluster.region} --name {cluster.existing}"
    if found.get("accessConfig", {}).get("authenticationMode") == "CONFIG_MAP":
        fix = f"aws eks update-cluster-config {named} --access-config authenticationMode=API_AND_CONFIG_MAP"
        yield failed("has no access entries, with which nodes join", fix)
    if existing(lambda: client.describe_addon(clusterName=cluster.existing, addonName=POD_IDENTITY)) is None:
        fix = f"aws eks create-addon {named.replace('--name', '--cluster-name')} --addon-name {POD_IDENTITY}"
        yield failed(f"has no add-on {POD_IDENTITY}, which gives pods their roles", fix)
