"""Rules between the objects of a fleet, and between the fleet and what its clouds offer.

Every rule is one function that yields what it finds. An error stops; a warning names a risk or a cost.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from itertools import combinations

from spotladder import versions
from spotladder.api.problems import Path, quoted
from spotladder.api.suggest import closest
from spotladder.core.durations import format_duration
from spotladder.core.model import CapacityType
from spotladder.workloads.grace import grace_of
from spotladder_infra.facts import images, prices, regions
from spotladder_infra.topology.cluster import CREATED, Cloud, Cluster, Nat
from spotladder_infra.topology.defaults import notice_of, pod_range_of, service_range_of, zones_of
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import Pool, PoolRole

SHORTEST_CONSOLIDATION = 300.0
"""Seconds. A new attempt of a job has its pods pending within this time."""

LONGEST_NAME = {Cloud.AWS: 38, Cloud.GCP: 20}
"""Characters of a cluster's name, so that the names of its roles and service accounts fit the cloud's limits."""

_GCP_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_GCP_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_INTERNET = "0.0.0.0/0"


@dataclass(frozen=True, slots=True)
class Found:
    """A finding. `path` is the field in the fleet file."""

    path: Path
    message: str
    warning: bool = False


Check = Callable[[Fleet, date], Iterator[Found]]


def check(fleet: Fleet, today: date) -> list[Found]:
    """All that is wrong or risky. `today` decides which versions are near the end of their support."""
    return [found for rule in CHECKS for found in rule(fleet, today)]


# --- names -----------------------------------------------------------------------------------------------------------


def unique_names(fleet: Fleet, _: date) -> Iterator[Found]:
    """Names are unique; those of pools in the whole fleet, because a CapacityTier has no namespace."""
    spec = fleet.spec
    for field in ("clusters", "buckets", "teams"):
        yield from _twice(
            ((("spec", field, index, "name"), entry.name) for index, entry in enumerate(getattr(spec, field))), ""
        )
    pools = ((_pool_path(c, p, "name"), pool.name) for c, p, _, pool in _pools(fleet))
    yield from _twice(pools, ": the CapacityTiers of all clusters live in the home cluster")


def known_names(fleet: Fleet, _: date) -> Iterator[Found]:
    """Every name that refers to something else in the file exists there."""
    spec = fleet.spec
    clusters = [entry.name for entry in spec.clusters]
    buckets = [entry.name for entry in spec.buckets]
    if spec.home not in clusters:
        yield Found(("spec", "home"), _unknown(spec.home, "cluster", clusters))
    for index, cluster in enumerate(spec.clusters):
        if cluster.bucket is not None and cluster.bucket not in buckets:
            yield Found(("spec", "clusters", index, "bucket"), _unknown(cluster.bucket, "bucket", buckets))
    for index, name in enumerate(spec.rollout.canary):
        if name not in clusters:
            yield Found(("spec", "rollout", "canary", index), _unknown(name, "cluster", clusters))
    for index, team in enumerate(spec.teams):
        for place, name in enumerate(team.clusters):
            if name not in clusters:
                yield Found(("spec", "teams", index, "clusters", place), _unknown(name, "cluster", clusters))


def name_lengths(fleet: Fleet, _: date) -> Iterator[Found]:
    """The names that are made of a cluster's name stay within the cloud's limits."""
    for index, cluster in _created(fleet):
        longest = LONGEST_NAME[cluster.cloud]
        if len(cluster.name) > longest:
            message = f"has {len(cluster.name)} characters (expected at most {longest} on {cluster.cloud}): shorten it"
            yield Found(("spec", "clusters", index, "name"), message)
        if not cluster.name[0].isalpha():
            yield Found(("spec", "clusters", index, "name"), "must begin with a letter")


def tags(fleet: Fleet, _: date) -> Iterator[Found]:
    """Tags are allowed by the clouds that get them."""
    clouds = {cluster.cloud for cluster in fleet.spec.clusters}
    for key, value in fleet.spec.tags.items():
        path = ("spec", "tags", key)
        if key.lower().startswith(("aws:", "kubernetes.io/", "karpenter.sh/", "spotladder.io/", "spotladder-")):
            yield Found(path, "has a prefix that is reserved: rename it")
        elif Cloud.GCP in clouds and not (_GCP_LABEL.fullmatch(key) and _GCP_LABEL_VALUE.fullmatch(value)):
            message = "cannot be a label on gcp (expected lower-case letters, digits, '_' and '-', up to 63)"
            yield Found(path, f"{message}: rename it")


# --- networks --------------------------------------------------------------------------------------------------------


def network_ranges(fleet: Fleet, _: date) -> Iterator[Found]:
    """No two ranges overlap, inside a cluster or between clusters, so that clusters can be peered."""
    ranges = [
        (
            ("spec", "clusters", index, "network", field),
            f"{cluster.name}'s {what}",
            cluster,
            ipaddress.IPv4Network(text),
        )
        for index, cluster in _created(fleet)
        for field, what, text in _ranges(cluster)
    ]
    for (__, name, owner, one), (path, other_name, other_owner, other) in combinations(ranges, 2):
        services = "services" in (name.rpartition(" ")[2], other_name.rpartition(" ")[2])
        if one.overlaps(other) and (owner is other_owner or not services):
            yield Found(path, f"{other} ({other_name}) overlaps {one} ({name}): choose another range")
    for index, cluster in _created(fleet):
        length = ipaddress.IPv4Network(cluster.network.cidr).prefixlen
        if cluster.cloud is Cloud.AWS and not 16 <= length <= 22:
            message = f"/{length} does not fit an EKS network (expected /16 to /22)"
            yield Found(("spec", "clusters", index, "network", "cidr"), f"{message}: choose another range")


def way_out(fleet: Fleet, _: date) -> Iterator[Found]:
    """Nodes without a NAT gateway reach the services of AWS by other means."""
    for index, cluster in _created(fleet):
        network = cluster.network
        if cluster.cloud is Cloud.AWS and network.nat is Nat.NONE and not network.interface_endpoints:
            message = "leaves the nodes without a way to ECR, STS and EC2: set interfaceEndpoints to true"
            yield Found(("spec", "clusters", index, "network", "nat"), message)


def api_access(fleet: Fleet, _: date) -> Iterator[Found]:
    """An API server that the whole internet reaches is worth a warning."""
    for index, cluster in _created(fleet):
        for place, allowed in enumerate(cluster.api.allowed):
            if allowed == _INTERNET:
                message = "opens the API server to the whole internet: name the ranges of your offices"
                yield Found(("spec", "clusters", index, "api", "allowed", place), message, warning=True)


# --- regions, zones, accelerators ------------------------------------------------------------------------------------


def zones(fleet: Fleet, _: date) -> Iterator[Found]:
    """Zones belong to the cluster's region, and those of a pool to the cluster."""
    for index, cluster in _created(fleet):
        path = ("spec", "clusters", index)
        region = cluster.region or ""
        if not regions.is_region(cluster.cloud, region):
            yield Found((*path, "region"), f"{quoted(region)} is not a region of {cluster.cloud}")
            continue
        for place, zone in enumerate(cluster.zones):
            yield from _zone(cluster.cloud, region, zone, (*path, "zones", place))
        if cluster.cloud is Cloud.AWS and cluster.zones and len(set(cluster.zones)) < 2:
            yield Found((*path, "zones"), "has one zone: the EKS control plane needs at least two")
        chosen = zones_of(cluster)
        if not chosen:
            message = f"is required: the zones of {region} are not in the table of {regions.AS_OF}"
            yield Found((*path, "zones"), message)
        for place, pool in enumerate(cluster.pools):
            for at, zone in enumerate(pool.zones):
                if chosen and zone not in chosen:
                    message = f"{quoted(zone)} is not a zone of cluster {cluster.name} (it has {', '.join(chosen)})"
                    yield Found((*path, "pools", place, "zones", at), f"{message}: add it to the cluster or choose one")


def accelerators(fleet: Fleet, _: date) -> Iterator[Found]:
    """The instances have the accelerator that the pool names, and the region offers them."""
    for c, p, cluster, pool in _pools(fleet):
        if cluster.cloud not in CREATED:
            continue
        known = regions.ACCELERATORS[cluster.cloud]
        for field, names in (("instanceTypes", pool.instance_types), ("families", pool.families)):
            for place, name in enumerate(names):
                family = regions.family_of(cluster.cloud, name)
                path = _pool_path(c, p, field, place)
                has = known.get(family)
                if pool.accelerator is not None and has is not None and has != pool.accelerator.type:
                    yield Found(path, f"{name} has {has}, not {pool.accelerator.type}: correct one of them")
                offered = regions.OFFERED[cluster.cloud].get(family)
                if offered is not None and cluster.region not in offered:
                    message = f"{family} is not known to be offered in {cluster.region} (table of {regions.AS_OF})"
                    yield Found(path, f"{message}: check the region, or choose another family", warning=True)


# --- versions --------------------------------------------------------------------------------------------------------


def version_matrix(fleet: Fleet, _: date) -> Iterator[Found]:
    """Kubernetes, Karpenter, KubeRay and Ray fit together."""
    for index, cluster in _created(fleet):
        karpenter = versions.KARPENTER if cluster.cloud is Cloud.AWS else None
        for message in versions.conflicts(kubernetes=cluster.kubernetes, karpenter=karpenter):
            yield Found(("spec", "clusters", index, "kubernetes"), message)


def end_of_support(fleet: Fleet, today: date) -> Iterator[Found]:
    """The standard support of the Kubernetes version has not ended and does not end soon."""
    for index, cluster in _created(fleet):
        ends = versions.standard_support_ends(cluster.kubernetes, cluster.cloud)
        if ends is None or ends - today > versions.END_OF_SUPPORT_NOTICE:
            continue
        verb = "ended" if ends < today else "ends"
        message = f"standard support of {cluster.kubernetes} on {cluster.cloud} {verb} on {ends}"
        yield Found(("spec", "clusters", index, "kubernetes"), f"{message}: choose a newer version", warning=True)


def node_images(fleet: Fleet, today: date) -> Iterator[Found]:
    """Images of nodes on EKS are pinned to a release that is not old."""
    for index, cluster in enumerate(fleet.spec.clusters):
        if cluster.cloud is not Cloud.AWS:
            continue
        for place, pool in enumerate(cluster.pools):
            if pool.image is not None:
                yield from _image(pool.image, today, _pool_path(index, place, "image"))
        unpinned = any(pool.image is None for pool in cluster.pools)
        if unpinned and (old := _old_image(images.NODE_IMAGE, today)):
            message = f"pools without image get {old}: give the pools a newer image, or upgrade spotladder"
            yield Found(("spec", "clusters", index, "pools"), message, warning=True)


# --- capacity --------------------------------------------------------------------------------------------------------


def heads(fleet: Fleet, _: date) -> Iterator[Found]:
    """Ray heads have nodes: the pools of workers are tainted, and so are the system nodes."""
    for index, cluster in _created(fleet):
        if cluster.pools and all(pool.role is PoolRole.WORKERS for pool in cluster.pools):
            message = "has no pool with role heads: Ray heads find no node; add one with capacityType on-demand"
            yield Found(("spec", "clusters", index, "pools"), message)


def fallback(fleet: Fleet, _: date) -> Iterator[Found]:
    """A fleet whose workers have spot capacity only stops when spot is dry."""
    workers = [pool for _, _, _, pool in _pools(fleet) if pool.role is PoolRole.WORKERS]
    if workers and all(pool.capacity_type is CapacityType.SPOT for pool in workers):
        message = (
            "has only spot capacity for workers: jobs wait while spot is dry; add an on-demand pool to fall back to"
        )
        yield Found(("spec", "clusters"), message, warning=True)


def grace(fleet: Fleet, _: date) -> Iterator[Found]:
    """A node's grace period covers its pods' grace period and ends with the cloud's notice."""
    for c, p, cluster, pool in _pools(fleet):
        path = _pool_path(c, p, "disruption")
        period = pool.disruption.termination_grace_period
        if pool.capacity_type is CapacityType.SPOT and period is not None:
            notice = notice_of(cluster, pool)
            needed = grace_of(notice)
            if period < needed:
                message = (
                    f"{format_duration(period)} is shorter than the {needed}s that pods have to end: "
                    f"Karpenter would delete them at once; set at least {needed}s or remove it"
                )
                yield Found((*path, "terminationGracePeriod"), message)
            elif notice and period > notice:
                message = (
                    f"{format_duration(period)} is longer than the notice of {format_duration(notice)}: "
                    f"the cloud takes the node before; set at most {format_duration(notice)} or remove it"
                )
                yield Found((*path, "terminationGracePeriod"), message, warning=True)
        if pool.role is PoolRole.WORKERS and pool.disruption.consolidate_after < SHORTEST_CONSOLIDATION:
            message = (
                f"{format_duration(pool.disruption.consolidate_after)} is shorter than a restart of a job: the node "
                f"may be given back between two attempts; set at least {format_duration(SHORTEST_CONSOLIDATION)}"
            )
            yield Found((*path, "consolidateAfter"), message, warning=True)


def known_prices(fleet: Fleet, _: date) -> Iterator[Found]:
    """Costs are reported as unknown for a pool whose price nothing says."""
    for c, p, cluster, pool in _pools(fleet):
        looked_up = cluster.cloud is Cloud.AWS and pool.capacity_type is CapacityType.SPOT
        listed = pool.capacity_type is CapacityType.ON_DEMAND and prices.dearest(pool.instance_types) is not None
        if pool.role is PoolRole.WORKERS and pool.price is None and not looked_up and not listed:
            message = "has no price: its costs will be reported as unknown; add price.perNodeHour"
            yield Found(_pool_path(c, p), message, warning=True)


# --- buckets and state -----------------------------------------------------------------------------------------------


def buckets(fleet: Fleet, _: date) -> Iterator[Found]:
    """A cluster's bucket is in its cloud, and better in its region: data between regions costs money."""
    for index, cluster in _created(fleet):
        path = ("spec", "clusters", index, "bucket")
        bucket = fleet.bucket_of(cluster)
        if bucket is None:
            if cluster.bucket is None and cluster.pools:
                yield Found(path[:-1], "has no bucket: jobs on it cannot write checkpoints; name one", warning=True)
            continue
        if bucket.cloud is not cluster.cloud:
            message = f"is a bucket of {bucket.cloud}: pods of {cluster.cloud} have no identity there without a secret"
            yield Found(path, f"{message}; use a bucket of {cluster.cloud}")
        elif bucket.region != cluster.region:
            cost = bucket.monthly_gi_b * prices.REGION_EGRESS_GIB[cluster.cloud]
            message = (
                f"is in {bucket.region}, the cluster in {cluster.region}: {bucket.monthly_gi_b} GiB a month cost about "
                f"${cost:.0f}/month (prices of {prices.AS_OF}); use a bucket in {cluster.region}"
            )
            yield Found(path, message, warning=True)


def state(fleet: Fleet, _: date) -> Iterator[Found]:
    """State in local files is lost with the machine."""
    if fleet.spec.state is None and any(_created(fleet)):
        message = "has no state: Terraform keeps it in local files, for one person on one machine; add state.uri"
        yield Found(("spec",), message, warning=True)


CHECKS: tuple[Check, ...] = (
    unique_names,
    known_names,
    name_lengths,
    tags,
    network_ranges,
    way_out,
    api_access,
    zones,
    accelerators,
    version_matrix,
    end_of_support,
    node_images,
    heads,
    fallback,
    grace,
    known_prices,
    buckets,
    state,
)

# --- parts -----------------------------------------------------------------------------------------------------------


def _created(fleet: Fleet) -> Iterator[tuple[int, Cluster]]:
    return ((index, entry) for index, entry in enumerate(fleet.spec.clusters) if entry.cloud in CREATED)


def _pools(fleet: Fleet) -> Iterator[tuple[int, int, Cluster, Pool]]:
    for index, cluster in enumerate(fleet.spec.clusters):
        for place, pool in enumerate(cluster.pools):
            yield index, place, cluster, pool


def _pool_path(cluster: int, pool: int, *rest: str | int) -> Path:
    return ("spec", "clusters", cluster, "pools", pool, *rest)


def _twice(names: Iterable[tuple[Path, str]], why: str) -> Iterator[Found]:
    seen: set[str] = set()
    for path, name in names:
        if name in seen:
            yield Found(path, f"{quoted(name)} is used twice{why}; rename one")
        seen.add(name)


def _unknown(name: str, what: str, known: list[str]) -> str:
    near = closest(name, known)
    hint = f"did you mean {near}?" if near else f"the file has {', '.join(known) or 'none'}"
    return f"there is no {what} {quoted(name)}; {hint}"


def _image(alias: str, today: date, path: Path) -> Iterator[Found]:
    dated = alias.partition("@")[2].removeprefix("v")
    if not images.ALIAS.fullmatch(alias) or (len(dated) == 8 and images.released(alias) is None):
        yield Found(path, f"{quoted(alias)} is not an image of EKS (expected one like {images.NODE_IMAGE})")
    elif dated == "latest":
        message = "is not pinned: every new image of AWS makes the nodes drift, and nodes of one job may differ"
        yield Found(path, f"{message}; name a release like {images.NODE_IMAGE}", warning=True)
    elif old := _old_image(alias, today):
        yield Found(path, f"is {old}: choose a newer one (spotladder infra doctor tells the newest)", warning=True)


def _old_image(alias: str, today: date) -> str | None:
    released = images.released(alias)
    if released is None or today - released <= images.OLDEST:
        return None
    return f"{alias}, which is {(today - released).days} days old and lacks later security fixes"


def _ranges(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    yield "cidr", "nodes", cluster.network.cidr
    if cluster.cloud is Cloud.GCP:
        yield "pods", "pods", pod_range_of(cluster)
    yield "services", "services", service_range_of(cluster)


def _zone(cloud: str, region: str, zone: str, path: Path) -> Iterator[Found]:
    found = regions.region_of(cloud, zone)
    known = regions.ZONES[cloud].get(region)
    if found is None:
        yield Found(path, f"{quoted(zone)} is not a zone of {cloud}")
    elif found != region:
        yield Found(path, f"{quoted(zone)} is in {found}, not in {region}: choose a zone of {region}")
    elif known is not None and zone not in known:
        message = f"{quoted(zone)} does not exist (expected {', '.join(known)}; table of {regions.AS_OF})"
        yield Found(path, message)
