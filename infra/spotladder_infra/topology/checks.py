"""Rules between the objects of a fleet, and between the fleet and what its clouds offer.

Every rule is one function that yields findings. An error makes the fleet invalid; a warning names a risk or a cost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date

from spotladder import versions
from spotladder.api.problems import Path, quoted
from spotladder.api.suggest import closest
from spotladder_infra.facts import prices, regions
from spotladder_infra.topology.addon_checks import addon_versions
from spotladder_infra.topology.cluster import Cloud
from spotladder_infra.topology.compute_class_checks import COMPUTE_CLASS_CHECKS
from spotladder_infra.topology.defaults import zones_of
from spotladder_infra.topology.findings import Check, FleetFinding, pool_path, pools, with_stack
from spotladder_infra.topology.fleet import Fleet, FleetSpec
from spotladder_infra.topology.identity_checks import IDENTITY_CHECKS
from spotladder_infra.topology.network_checks import NETWORK_CHECKS
from spotladder_infra.topology.pool_checks import POOL_CHECKS

LONGEST_NAME = {Cloud.AWS: 38, Cloud.GCP: 20}
"""Maximum length of a cluster's name, so that the names of its roles and service accounts fit the cloud's limits."""

RESERVED_NAMESPACES = frozenset({"default", "spotladder-system", "kuberay-system", "jobset-system", "kueue-system"})

_GCP_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_GCP_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")


def check(fleet: Fleet, today: date) -> list[FleetFinding]:
    """All errors and warnings. A warning says which versions reach the end of their support soon after `today`."""
    return [found for rule in CHECKS for found in rule(fleet, today)]


# --- names -----------------------------------------------------------------------------------------------------------


def unique_names(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that names are unique; pool names in the whole fleet, because a CapacityTier has no namespace."""
    spec = fleet.spec
    for field in ("clusters", "buckets", "teams"):
        yield from _twice(
            ((("spec", field, index, "name"), entry.name) for index, entry in enumerate(getattr(spec, field))), ""
        )
    for index, cluster in enumerate(spec.clusters):
        yield from _twice(
            (
                (("spec", "clusters", index, "volumes", at, "name"), entry.name)
                for at, entry in enumerate(cluster.volumes)
            ),
            "",
        )
    named = ((pool_path(c, p, "name"), pool.name) for c, p, _, pool in pools(fleet))
    yield from _twice(named, ": the CapacityTiers of all clusters are in the home cluster")


def known_names(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that every reference to another object of the file names an existing one."""
    spec = fleet.spec
    known = {
        "cluster": [entry.name for entry in spec.clusters],
        "bucket": [entry.name for entry in spec.buckets],
        "team": [entry.name for entry in spec.teams],
    }
    for path, what, name in _references(spec):
        if name not in known[what]:
            yield FleetFinding(("spec", *path), _unknown(name, what, known[what]))


def _references(spec: FleetSpec) -> Iterator[tuple[Path, str, str]]:
    """The names of other objects in the file: their place, the kind of the object, and the name."""
    yield ("home",), "cluster", spec.home
    for index, cluster in enumerate(spec.clusters):
        path: Path = ("clusters", index)
        if cluster.bucket is not None:
            yield (*path, "bucket"), "bucket", cluster.bucket
        for name in cluster.service_account_annotations:
            yield (*path, "serviceAccountAnnotations", name), "team", name
        for at, volume in enumerate(cluster.volumes):
            for place, name in enumerate(volume.teams):
                yield (*path, "volumes", at, "teams", place), "team", name
    for index, name in enumerate(spec.rollout.canary):
        yield ("rollout", "canary", index), "cluster", name
    for index, team in enumerate(spec.teams):
        for place, name in enumerate(team.clusters):
            yield ("teams", index, "clusters", place), "cluster", name


def team_names(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that Kubernetes and the platform do not use a team's namespace."""
    for index, team in enumerate(fleet.spec.teams):
        if team.name.startswith("kube-") or team.name in RESERVED_NAMESPACES:
            message = f"{quoted(team.name)} is a namespace of Kubernetes or of the platform: rename the team"
            yield FleetFinding(("spec", "teams", index, "name"), message)


def places_of_teams(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that every cluster has a namespace for jobs: the chart of the controller refuses a member without one."""
    if not fleet.spec.teams or fleet.spec.rollout.smoke is not None:
        return
    for index, cluster in enumerate(fleet.spec.clusters):
        if not fleet.teams_with_namespace(cluster):
            message = "has no team, so that no job may run there: add it to the clusters of a team, or remove it"
            yield FleetFinding(("spec", "clusters", index), message)


def name_lengths(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that names derived from a cluster's name stay within the cloud's limits."""
    for index, cluster in with_stack(fleet):
        longest = LONGEST_NAME[cluster.cloud]
        if len(cluster.name) > longest:
            message = f"has {len(cluster.name)} characters (expected at most {longest} on {cluster.cloud}): shorten it"
            yield FleetFinding(("spec", "clusters", index, "name"), message)
        if not cluster.name[0].isalpha():
            yield FleetFinding(
                ("spec", "clusters", index, "name"), f"{quoted(cluster.name)} does not begin with a letter: rename it"
            )


def tags(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that the tags are valid in the clouds that get them."""
    clouds = {cluster.cloud for cluster in fleet.spec.clusters}
    for key, value in fleet.spec.tags.items():
        path = ("spec", "tags", key)
        if key.lower().startswith(("aws:", "kubernetes.io/", "karpenter.sh/", "spotladder.io/", "spotladder-")):
            yield FleetFinding(path, "has a prefix that is reserved: rename it")
        elif Cloud.GCP in clouds and not (_GCP_LABEL.fullmatch(key) and _GCP_LABEL_VALUE.fullmatch(value)):
            message = "cannot be a label on gcp (expected lower-case letters, digits, '_' and '-', up to 63)"
            yield FleetFinding(path, f"{message}: rename it")


# --- regions, zones, accelerators ------------------------------------------------------------------------------------


def zones(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that zones belong to the cluster's region, and those of a pool to the cluster."""
    for index, cluster in with_stack(fleet):
        path = ("spec", "clusters", index)
        region = cluster.region or ""
        if not regions.is_region(cluster.cloud, region):
            example = next(iter(regions.ZONES[cluster.cloud]))
            yield FleetFinding(
                (*path, "region"),
                f"{quoted(region)} is not a region of {cluster.cloud} (expected one like {example}): correct it",
            )
            continue
        for place, zone in enumerate(cluster.zones):
            yield from _zone(cluster.cloud, region, zone, (*path, "zones", place))
            if zone in cluster.zones[:place]:
                yield FleetFinding((*path, "zones", place), "is named twice: remove it")
        if cluster.cloud is Cloud.AWS and cluster.created and cluster.zones and len(set(cluster.zones)) < 2:
            yield FleetFinding((*path, "zones"), "has one zone: the EKS control plane needs at least two; add one")
        chosen = zones_of(cluster)
        if not chosen:
            near = closest(region, regions.ZONES[cluster.cloud], cutoff=0.8)
            hint = f"did you mean {near}? Otherwise" if near else "if it is right,"
            message = f"{quoted(region)} is not in the table of regions of {regions.AS_OF}; {hint} name its zones"
            yield FleetFinding((*path, "region"), message)
        for place, pool in enumerate(cluster.pools):
            for at, zone in enumerate(pool.zones):
                if chosen and zone not in chosen:
                    message = f"{quoted(zone)} is not a zone of cluster {cluster.name} (it has {', '.join(chosen)})"
                    yield FleetFinding(
                        (*path, "pools", place, "zones", at), f"{message}: add it to the cluster or choose one"
                    )


# --- versions --------------------------------------------------------------------------------------------------------


def version_matrix(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that the versions of Kubernetes, Karpenter, KubeRay and Ray are compatible."""
    for index, cluster in with_stack(fleet):
        karpenter = versions.KARPENTER if cluster.cloud is Cloud.AWS else None
        for message in versions.conflicts(kubernetes=cluster.kubernetes, karpenter=karpenter):
            yield FleetFinding(("spec", "clusters", index, "kubernetes"), message)
        if message := versions.untested(cluster.kubernetes):
            yield FleetFinding(("spec", "clusters", index, "kubernetes"), message, warning=True)


def end_of_support(fleet: Fleet, today: date) -> Iterator[FleetFinding]:
    """Check that the standard support of the Kubernetes version has not ended and does not end soon."""
    for index, cluster in with_stack(fleet):
        ends = versions.standard_support_ends(cluster.kubernetes, cluster.cloud)
        if ends is None or ends - today > versions.END_OF_SUPPORT_NOTICE:
            continue
        verb = "ended" if ends < today else "ends"
        message = f"standard support of {cluster.kubernetes} on {cluster.cloud} {verb} on {ends}"
        yield FleetFinding(
            ("spec", "clusters", index, "kubernetes"), f"{message}: choose a newer version", warning=True
        )


# --- buckets and state -----------------------------------------------------------------------------------------------


def buckets(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that a cluster's bucket is in its cloud; warn if it is in another region, because that data transfer costs
    money."""
    for index, cluster in with_stack(fleet):
        path = ("spec", "clusters", index, "bucket")
        bucket = fleet.bucket_of(cluster)
        if bucket is None:
            if cluster.bucket is None and cluster.pools:
                yield FleetFinding(
                    path[:-1], "has no bucket: jobs on it cannot write checkpoints; name one", warning=True
                )
            continue
        if bucket.cloud is not cluster.cloud:
            message = f"is a bucket of {bucket.cloud}: pods of {cluster.cloud} have no identity there without a secret"
            yield FleetFinding(path, f"{message}; use a bucket of {cluster.cloud}")
        elif bucket.region != cluster.region:
            cost = bucket.monthly_gi_b * prices.REGION_EGRESS_GIB[cluster.cloud]
            message = (
                f"is in {bucket.region}, the cluster in {cluster.region}: {bucket.monthly_gi_b} GiB a month cost about "
                f"${cost:.0f}/month (prices of {prices.AS_OF}); use a bucket in {cluster.region}"
            )
            yield FleetFinding(path, message, warning=True)


def replicas(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that a bucket is replicated only within AWS: S3 has no replication to another cloud."""
    for index, bucket in enumerate(fleet.spec.buckets):
        if bucket.replicate_to is not None and not regions.is_region(bucket.cloud, bucket.replicate_to):
            message = (
                f"{quoted(bucket.replicate_to)} is not a region of {bucket.cloud}: buckets are not replicated to "
                f"another cloud; name a region of {bucket.cloud}, or remove it"
            )
            yield FleetFinding(("spec", "buckets", index, "replicateTo"), message)


def state(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Warn about state in local files, which is lost with the machine."""
    if fleet.spec.state is None and any(with_stack(fleet)):
        message = "has no state: Terraform keeps it in local files, for one person on one machine; add state.uri"
        yield FleetFinding(("spec",), message, warning=True)


def bucket_regions(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check the regions of buckets on AWS. A region that is not in the table may be new, so it is only a warning."""
    spec = fleet.spec
    named: list[tuple[Path, str | None]] = [
        (("spec", "buckets", index, field), region)
        for index, bucket in enumerate(spec.buckets)
        if bucket.cloud is Cloud.AWS
        for field, region in (("region", bucket.region), ("replicateTo", bucket.replicate_to))
    ]
    if spec.state is not None and spec.state.uri.startswith("s3://"):
        named.append((("spec", "state", "region"), spec.state.region))
    known = regions.ZONES[Cloud.AWS]
    for path, region in named:
        if region is None or region in known:
            continue
        near = closest(region, known, cutoff=0.8)
        hint = f"did you mean {near}?" if near else "correct it"
        if regions.is_region(Cloud.AWS, region):
            message = f"{quoted(region)} is not in the table of regions of {regions.AS_OF}"
            yield FleetFinding(path, f"{message}; {hint}", warning=True)
        elif path[-1] == "region":  # `replicas` checks the form of the other one
            message = f"{quoted(region)} is not a region of aws (expected one like {next(iter(known))})"
            yield FleetFinding(path, f"{message}: {hint}")


def controller_image(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Warn about a fleet whose controller has the default image, which the nodes find in no registry."""
    platform = fleet.spec.platform
    if platform.image is None and "image" not in platform.values.get("controller", {}):
        message = (
            "has no platform.image: the default image, spotladder, is in no registry; push the image that the "
            "Dockerfile builds, and name its repository"
        )
        yield FleetFinding(("spec",), message, warning=True)


CHECKS: tuple[Check, ...] = (
    unique_names,
    known_names,
    team_names,
    places_of_teams,
    name_lengths,
    tags,
    *NETWORK_CHECKS,
    zones,
    version_matrix,
    end_of_support,
    addon_versions,
    *POOL_CHECKS,
    *COMPUTE_CLASS_CHECKS,
    buckets,
    replicas,
    bucket_regions,
    *IDENTITY_CHECKS,
    state,
    controller_image,
)

# --- parts -----------------------------------------------------------------------------------------------------------


def _twice(names: Iterable[tuple[Path, str]], why: str) -> Iterator[FleetFinding]:
    seen: set[str] = set()
    for path, name in names:
        if name in seen:
            yield FleetFinding(path, f"{quoted(name)} is used twice{why}; rename one")
        seen.add(name)


def _unknown(name: str, what: str, known: list[str]) -> str:
    near = closest(name, known)
    hint = f"did you mean {near}?" if near else f"the file has {', '.join(known) or 'none'}"
    return f"there is no {what} {quoted(name)}; {hint}"


def _zones_of(cloud: str, region: str) -> str:
    known = regions.ZONES[cloud].get(region)
    return f"choose one of {', '.join(known)}" if known else f"choose a zone of {region}"


def _zone(cloud: str, region: str, zone: str, path: Path) -> Iterator[FleetFinding]:
    found = regions.region_of(cloud, zone)
    known = regions.ZONES[cloud].get(region)
    if found is None:
        yield FleetFinding(path, f"{quoted(zone)} is not a zone of {cloud}: {_zones_of(cloud, region)}")
    elif found != region:
        yield FleetFinding(path, f"{quoted(zone)} is in {found}, not in {region}: correct the zone or the region")
    elif known is not None and zone not in known:
        message = f"{quoted(zone)} does not exist (table of {regions.AS_OF}): {_zones_of(cloud, region)}"
        yield FleetFinding(path, message)
