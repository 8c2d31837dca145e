"""Google Cloud: credentials, quotas of each region, and what each cluster needs. Needs read access only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

from spotladder.core.model import CapacityType
from spotladder.errors import EnvironmentFailure
from spotladder_infra.doctor import owners
from spotladder_infra.doctor.result import Check, CheckResult, Demand, Status, compared, divided, failed, ok
from spotladder_infra.facts import instances
from spotladder_infra.facts.quotas import GPU_METRIC, TPU_METRIC
from spotladder_infra.google import COMPUTE, SERVICES, Google
from spotladder_infra.topology import online
from spotladder_infra.topology.cluster import Autoscaler, Cluster
from spotladder_infra.topology.defaults import accelerators_of, system_instance_of, zones_of
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import Pool

ALL_GPUS = "GPUS_ALL_REGIONS"

Limits = dict[str, tuple[float, float]]
"""Limit and use of each quota, by metric."""


Connect = Callable[[], Google]
"""Connects to Google Cloud. Raises EnvironmentFailure."""


def checks(fleet: Fleet, places: Sequence[tuple[int, Cluster]], connect: Connect = Google) -> Iterator[Check]:
    """The checks of these clusters, which come with their indexes in the file."""
    cloud = cache(connect)
    clusters = [cluster for _, cluster in places]
    projects = list(dict.fromkeys(cluster.project or "" for cluster in clusters))
    yield Check("gcp", "credentials", _credentials(cloud, projects), gate=True)
    google = cloud()
    for project in projects:
        yield Check(f"gcp {project}", "APIs", _apis(google, project, apis(fleet, project)))
    for project, region in dict.fromkeys((cluster.project or "", cluster.region or "") for cluster in clusters):
        in_region = [cluster for cluster in clusters if (cluster.project, cluster.region) == (project, region)]
        yield Check(f"gcp {region}", "quotas", _quotas(google, project, region, in_region))
    for index, cluster in places:
        offered, describe = online.gcp(google, index, cluster), partial(_described, fleet, google, cluster)
        yield from owners.of_cluster(fleet, cluster, offered, describe, lambda name, _: google.bucket_labels(name))


def _credentials(connect: Connect, names: Sequence[str]) -> Iterator[CheckResult]:
    try:
        cloud = connect()
    except EnvironmentFailure as error:
        yield failed(*divided(error))
        return
    for name in names:
        try:
            found = cloud.find(COMPUTE, f"projects/{name}")
        except EnvironmentFailure as error:
            fix = _enable(APIS, name)
            yield failed(str(error), f"{fix}; roles/compute.viewer and roles/container.viewer for this identity")
        else:
            missing = failed(f"there is no project {name}", "correct project in the file")
            yield missing if found is None else ok(f"project {name} may be read")


APIS = ("cloudresourcemanager", "compute", "container", "iam", "storage")
"""The APIs that Terraform calls for every stack. Source: the API that each resource of Google's provider calls."""


def apis(fleet: Fleet, project: str) -> tuple[str, ...]:
    """The APIs that the stacks of a project need."""
    clusters = [cluster for cluster in fleet.spec.clusters if cluster.project == project]
    found = {"artifactregistry": any(cluster.image_repository for cluster in clusters)}
    buckets = (fleet.bucket_of(cluster) for cluster in clusters)
    found["cloudkms"] = any(bucket.kms_key for bucket in buckets if bucket) or any(c.kms_key for c in clusters)
    return (*APIS, *(name for name, needed in found.items() if needed))


def _enable(names: Sequence[str], project: str) -> str:
    return f"gcloud services enable {' '.join(f'{name}.googleapis.com' for name in names)} --project {project}"


def _apis(cloud: Google, project: str, wanted: Sequence[str]) -> Iterator[CheckResult]:
    pages = cloud.pages(SERVICES, f"projects/{project}/services", filter="state:ENABLED", pageSize="200")
    enabled = {entry["config"]["name"].partition(".")[0] for page in pages for entry in page.get("services", [])}
    missing = [name for name in wanted if name not in enabled]
    yield failed(f"{', '.join(missing)} not enabled", _enable(missing, project)) if missing else ok("all enabled")


def _quotas(cloud: Google, project: str, region: str, clusters: Sequence[Cluster]) -> Iterator[CheckResult]:
    """The quotas of a region, and the accelerators of all regions."""
    limits = {
        **_limits(cloud.find(COMPUTE, f"projects/{project}")),
        **_limits(cloud.find(COMPUTE, f"projects/{project}/regions/{region}")),
    }
    demands: dict[str, Demand] = defaultdict(Demand)
    for cluster in clusters:
        for metric, demand in _demands(cloud, cluster).items():
            demands[_counted_as(metric, limits)] += demand
            if metric.endswith("_GPUS"):
                demands[ALL_GPUS] += demand
    for metric, demand in demands.items():
        if metric not in limits:
            yield CheckResult(Status.SKIPPED, f"{region} does not report this quota", "", metric)
            continue
        limit, used = limits[metric]
        place = "all regions" if metric == ALL_GPUS else region
        how = f"request more in IAM & Admin, Quotas: {metric}, {place}"
        yield compared(metric, limit, demand, how=how, used=used)


def _described(fleet: Fleet, cloud: Google, cluster: Cluster) -> owners.Described | None:
    found = cloud.cluster(cluster.project or "", cluster.location, cluster.cloud_name)
    if found is None:
        return None
    lacks = _lacks(cluster, found, member=cluster.name != fleet.spec.home)
    return owners.Described(str(found.get("currentMasterVersion", "")), found.get("resourceLabels", {}), lacks)


def _lacks(cluster: Cluster, found: dict[str, Any], *, member: bool) -> Iterator[CheckResult]:
    """What an existing cluster lacks for the identities of pods and for access to its API server."""
    if found.get("autopilot", {}).get("enabled"):
        yield failed("is in Autopilot mode, which is not supported", "name a cluster in Standard mode")
        return
    place = f"--project {cluster.project} --location {cluster.location}"
    update = f"gcloud container clusters update {cluster.cloud_name} {place}"
    if not found.get("workloadIdentityConfig", {}).get("workloadPool"):
        fix = f"{update} --workload-pool {cluster.project}.svc.id.goog"
        yield failed("has no Workload Identity Federation, which gives pods access to the bucket", fix)
    for pool in found.get("nodePools", ()):
        if pool.get("config", {}).get("workloadMetadataConfig", {}).get("mode") != "GKE_METADATA":
            name = pool["name"]
            fix = f"gcloud container node-pools update {name} --cluster {cluster.cloud_name} {place} "
            message = f"node pool {name} gives pods the identity of its nodes: the controller cannot run there"
            yield CheckResult(Status.WARNING, message, f"{fix}--workload-metadata GKE_METADATA")
    dns = found.get("controlPlaneEndpointsConfig", {}).get("dnsEndpointConfig", {})
    if not dns.get("allowExternalTraffic"):
        yield failed("is not reached at its DNS endpoint", f"{update} --enable-dns-access")
    if member and not dns.get("enableK8sTokensViaDns"):
        message = "accepts no tokens of the home cluster at its DNS endpoint"
        yield failed(message, f"{update} --enable-k8s-tokens-via-dns")
    scaling = found.get("autoscaling", {})
    if cluster.provisioner is Autoscaler.COMPUTE_CLASS and scaling.get("enableNodeAutoprovisioning"):
        kinds = {kind for pool in cluster.pools for kind in accelerators_of(cluster, pool)}
        limited = {entry["resourceType"] for entry in scaling.get("resourceLimits", ())}
        if missing := ", ".join(sorted(kinds - limited)):
            fix = f"{update} --enable-autoprovisioning --autoprovisioning-config-file FILE, with a limit for {missing}"
            yield failed(f"creates no nodes with {missing}: auto-provisioning has no limit for it", fix)


def _demands(cloud: Google, cluster: Cluster) -> dict[str, Demand]:
    """The demand of a cluster's system nodes and pools, by quota metric. A pool without instance types has none."""
    found: dict[str, Demand] = defaultdict(Demand)
    zones = zones_of(cluster)
    system = system_instance_of(cluster)
    if cluster.created and (machine := _machine(cloud, cluster, system, zones)):
        count = float(machine["guestCpus"] * cluster.system.count * len(zones))
        found[_cpu_metric(system)] += Demand(count, count)
    for pool in cluster.pools:
        if pool.capacity_type is CapacityType.RESERVED:
            continue
        for name in pool.instance_types[:1]:
            machine = _machine(cloud, cluster, name, pool.zones or zones)
            for metric, count in (_counts(pool, name, machine) if machine else {}).items():
                found[metric] += Demand(count, count * (pool.limits.nodes or 1))
    return found


def _counts(pool: Pool, name: str, machine: dict[str, Any]) -> dict[str, float]:
    """The CPUs and accelerators of one node of a pool, by quota metric."""
    prefix = "PREEMPTIBLE_" if pool.capacity_type is CapacityType.SPOT else ""
    found = {prefix + _cpu_metric(name): float(machine["guestCpus"])}
    for entry in machine.get("accelerators", []):
        kind = entry["guestAcceleratorType"]
        metric = GPU_METRIC.get(kind) or f"{kind.upper().replace('-', '_')}_GPUS"
        if instances.accelerator_of("gcp", kind).startswith("tpu"):
            metric = TPU_METRIC.get(kind, f"TPUS_PER_TPU_FAMILY of {kind.upper()}")
        found[prefix + metric] = float(entry["guestAcceleratorCount"])
    return found


def _machine(cloud: Google, cluster: Cluster, name: str, zones: Sequence[str]) -> dict[str, Any] | None:
    found = online.machine_types(cloud, cluster, name, zones)
    return next((entry for entry in found.values() if entry is not None), None)


def _cpu_metric(machine_type: str) -> str:
    return f"{machine_type.partition('-')[0].upper()}_CPUS"


def _counted_as(metric: str, limits: Limits) -> str:
    """The metric that the region has: families without one of their own count as CPUS. A preemptible quota of 0 was
    never requested, so that Spot VMs count against the ordinary one."""
    spot = metric.startswith("PREEMPTIBLE_")
    name = metric if limits.get(metric, (0.0, 0.0))[0] or not spot else metric.removeprefix("PREEMPTIBLE_")
    if name not in limits and name.endswith("_CPUS"):
        return "PREEMPTIBLE_CPUS" if spot and limits.get("PREEMPTIBLE_CPUS", (0.0, 0.0))[0] else "CPUS"
    return name


def _limits(resource: dict[str, Any] | None) -> Limits:
    quotas = (resource or {}).get("quotas", [])
    return {entry["metric"]: (float(entry["limit"]), float(entry.get("usage", 0))) for entry in quotas}
