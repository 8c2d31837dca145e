"""Google Cloud: credentials, quotas of each region, and what each cluster needs. Needs read access only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from spotladder.core.model import CapacityType
from spotladder.errors import EnvironmentFailure
from spotladder_infra.doctor.result import CheckResult, Demand, Status, compared
from spotladder_infra.google import COMPUTE, STORAGE, Google, RequestRefused
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.defaults import system_instance_of, zones_of
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.online import gcp, machine_types
from spotladder_infra.topology.pool import Pool

ALL_GPUS = "GPUS_ALL_REGIONS"
GPU_METRIC = {
    "nvidia-tesla-a100": "NVIDIA_A100_GPUS",
    "nvidia-tesla-t4": "NVIDIA_T4_GPUS",
    "nvidia-tesla-v100": "NVIDIA_V100_GPUS",
    "nvidia-h100-80gb": "NVIDIA_H100_GPUS",
    "nvidia-h200-141gb": "NVIDIA_H200_GPUS",
}
"""Quota metrics of accelerators whose name does not show it; otherwise nvidia-l4 is NVIDIA_L4_GPUS."""

HOW = "request more in IAM & Admin, Quotas: {metric}, {place}"


class Project:
    """Checks the Google Cloud projects of one fleet."""

    def __init__(self, connect: Callable[[], Google] = Google) -> None:
        self._connect = connect

    def examine(self, fleet: Fleet, clusters: Sequence[tuple[int, Cluster]]) -> Iterator[CheckResult]:
        """The checks of these clusters, by their indexes in the file. Without credentials, only the check of the
        credentials."""
        try:
            cloud = self._connect()
        except EnvironmentFailure as error:
            fix = "log in: gcloud auth application-default login"
            yield CheckResult("gcp", "credentials", Status.FAILED, str(error).partition(". ")[0], fix)
            yield CheckResult("gcp", "all other checks", Status.SKIPPED, "no credentials")
            return
        for name in dict.fromkeys(cluster.project or "" for _, cluster in clusters):
            in_project = [entry for entry in clusters if entry[1].project == name]
            yield from self._of_project(cloud, name, in_project, fleet)

    def state_bucket(self, bucket: str) -> Iterator[CheckResult]:
        """Whether the bucket for Terraform's state exists."""
        name = f"gs://{bucket}"
        try:
            found = self._connect().find(STORAGE, f"b/{bucket}")
        except RequestRefused as refusal:
            fix = "use its project, or choose another name"
            yield CheckResult("state", name, Status.FAILED, f"may not be used ({refusal.status})", fix)
        except EnvironmentFailure as error:
            yield CheckResult("state", name, Status.SKIPPED, str(error))
        else:
            if found is None:
                yield CheckResult("state", name, Status.FAILED, "does not exist", "spotladder infra state")
            else:
                yield CheckResult("state", name, Status.OK, "reachable")

    def _of_project(
        self, cloud: Google, name: str, clusters: Sequence[tuple[int, Cluster]], fleet: Fleet
    ) -> Iterator[CheckResult]:
        scope = f"gcp {name}"
        try:
            project = cloud.find(COMPUTE, f"projects/{name}")
        except EnvironmentFailure as error:
            fix = f"gcloud services enable compute.googleapis.com container.googleapis.com --project {name}"
            fix = f"{fix}; roles/compute.viewer and roles/container.viewer for this identity"
            yield CheckResult(scope, "credentials", Status.FAILED, str(error), fix)
            yield CheckResult(scope, "all other checks", Status.SKIPPED, "the project may not be read")
            return
        if project is None:
            yield CheckResult(
                scope, "credentials", Status.FAILED, "there is no such project", "correct project in the file"
            )
            return
        yield CheckResult(scope, "credentials", Status.OK, "the project may be read")
        of_project = _limits(project)
        yield from _checked(scope, "quotas", partial(_project_quotas, cloud, scope, of_project, clusters))
        for region in dict.fromkeys(cluster.region or "" for _, cluster in clusters):
            in_region = [cluster for _, cluster in clusters if cluster.region == region]
            yield from _checked(f"{scope} {region}", "quotas", partial(_region_quotas, cloud, name, region, in_region))
        for index, cluster in clusters:
            yield from _checked(cluster.name, "zones, versions and machines", partial(_offers, cloud, index, cluster))
            yield from _checked(cluster.name, "names", partial(_names, cloud, fleet, cluster))


def _project_quotas(
    cloud: Google, scope: str, limits: dict[str, tuple[float, float]], clusters: Sequence[tuple[int, Cluster]]
) -> Iterator[CheckResult]:
    gpus = [
        demand
        for _, cluster in clusters
        for metric, demand in _demands(cloud, cluster).items()
        if metric.endswith("_GPUS")
    ]
    wanted = {"NETWORKS": Demand(1, len(clusters))}
    if gpus:
        wanted[ALL_GPUS] = Demand(max(entry.least for entry in gpus), sum(entry.most for entry in gpus))
    for metric, demand in wanted.items():
        if metric in limits:
            limit, used = limits[metric]
            how = HOW.format(metric=metric, place="all regions")
            yield compared(scope, metric, limit, demand, how=how, used=used)


def _region_quotas(cloud: Google, project: str, region: str, clusters: Sequence[Cluster]) -> Iterator[CheckResult]:
    found = cloud.find(COMPUTE, f"projects/{project}/regions/{region}") or {}
    limits = _limits(found)
    demands: dict[str, Demand] = {}
    for cluster in clusters:
        for metric, demand in _demands(cloud, cluster).items():
            name = _counted_as(metric, limits)
            demands[name] = demands[name] + demand if name in demands else demand
    for metric, demand in demands.items():
        if metric not in limits:
            yield CheckResult(f"gcp {region}", metric, Status.SKIPPED, f"{region} does not report this quota")
            continue
        limit, used = limits[metric]
        how = HOW.format(metric=metric, place=region)
        yield compared(f"gcp {region}", metric, limit, demand, how=how, used=used)


def _offers(cloud: Google, index: int, cluster: Cluster) -> Iterator[CheckResult]:
    check = "zones, versions and machines"
    findings = list(gcp(cloud, index, cluster))
    for found in findings:
        yield CheckResult(cluster.name, check, Status.FAILED, found.message, "change the fleet file")
    if not findings:
        yield CheckResult(cluster.name, check, Status.OK, "all are offered")


def _names(cloud: Google, fleet: Fleet, cluster: Cluster) -> Iterator[CheckResult]:
    ours = fleet.metadata.name
    taken = []
    labels = cloud.cluster_labels(cluster.project or "", cluster.region or "", cluster.name)
    if labels is not None and labels.get("spotladder-fleet") != ours:
        taken.append((f"GKE cluster {cluster.name} exists and does not belong to fleet {ours}", "rename the cluster"))
    bucket = fleet.bucket_of(cluster)
    if bucket is not None and fleet.owner_of(bucket) == cluster:
        try:
            found = cloud.find(STORAGE, f"b/{bucket.name}")
        except RequestRefused as refusal:
            if refusal.status != 403:
                raise
            taken.append((f"gs://{bucket.name} belongs to another project", "rename the bucket"))
        else:
            if found is not None and found.get("labels", {}).get("spotladder-fleet") != ours:
                fix = "rename it, or set create: false to use it"
                taken.append((f"gs://{bucket.name} exists and does not belong to fleet {ours}", fix))
    for message, fix in taken:
        yield CheckResult(cluster.name, "names", Status.FAILED, message, fix)
    if not taken:
        yield CheckResult(cluster.name, "names", Status.OK, "available, or owned by this fleet")


def _demands(cloud: Google, cluster: Cluster) -> dict[str, Demand]:
    """The demand of a cluster's system nodes and pools, by quota metric. A pool without instance types has none."""
    found: dict[str, Demand] = {}
    zones = zones_of(cluster)
    if machine := _machine(cloud, cluster, system_instance_of(cluster), zones):
        count = float(machine["guestCpus"] * cluster.system.count * len(zones))
        found[_cpu_metric(system_instance_of(cluster))] = Demand(count, count)
    for pool in cluster.pools:
        if pool.capacity_type is CapacityType.RESERVED:
            continue
        for name in pool.instance_types[:1]:
            machine = _machine(cloud, cluster, name, pool.zones or zones)
            for metric, demand in (_of_pool(pool, name, machine) if machine else {}).items():
                found[metric] = found[metric] + demand if metric in found else demand
    return found


def _of_pool(pool: Pool, name: str, machine: dict[str, Any]) -> dict[str, Demand]:
    prefix = "PREEMPTIBLE_" if pool.capacity_type is CapacityType.SPOT else ""
    nodes = pool.limits.nodes or 1
    cpus = float(machine["guestCpus"])
    found = {prefix + _cpu_metric(name): Demand(cpus, cpus * nodes)}
    for entry in machine.get("accelerators", []):
        kind, count = entry["guestAcceleratorType"], float(entry["guestAcceleratorCount"])
        metric = GPU_METRIC.get(kind) or f"{kind.upper().replace('-', '_')}_GPUS"
        found[prefix + metric] = Demand(count, count * nodes)
    return found


def _machine(cloud: Google, cluster: Cluster, name: str, zones: Sequence[str]) -> dict[str, Any] | None:
    return next((entry for entry in machine_types(cloud, cluster, name, zones).values() if entry is not None), None)


def _cpu_metric(machine_type: str) -> str:
    return f"{machine_type.partition('-')[0].upper()}_CPUS"


def _counted_as(metric: str, limits: dict[str, tuple[float, float]]) -> str:
    """The metric that the region has: families without one of their own count as CPUS. A preemptible quota of 0 was
    never requested, so that Spot VMs count against the ordinary one."""
    name = metric if metric in limits else metric.removeprefix("PREEMPTIBLE_")
    if metric.startswith("PREEMPTIBLE_") and metric in limits and limits[metric][0] == 0:
        name = metric.removeprefix("PREEMPTIBLE_")
    if name not in limits and name.endswith("_CPUS"):
        preemptible = limits.get("PREEMPTIBLE_CPUS", (0.0, 0.0))[0]
        name = "PREEMPTIBLE_CPUS" if metric.startswith("PREEMPTIBLE_") and preemptible else "CPUS"
    return name


def _limits(resource: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Limit and use of each quota of a project or region."""
    return {
        entry["metric"]: (float(entry["limit"]), float(entry.get("usage", 0))) for entry in resource.get("quotas", [])
    }


def _checked(scope: str, check: str, look: Callable[[], Iterator[CheckResult]]) -> Iterator[CheckResult]:
    """The results of a check, which is skipped when Google Cloud does not answer it."""
    try:
        yield from look()
    except EnvironmentFailure as error:
        yield CheckResult(scope, check, Status.SKIPPED, str(error))
