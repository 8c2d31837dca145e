"""Rules that are the same on every cloud: who owns a name, and what the cloud offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from spotladder_infra.doctor.result import Check, CheckResult, Status, failed, ok
from spotladder_infra.names import OWNER, ForeignBucket
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.findings import FleetFinding
from spotladder_infra.topology.fleet import Fleet

Tags = Mapping[str, str] | None
"""The tags or labels of a resource; None when it does not exist."""


def state_bucket(tags: Callable[[], Tags]) -> Iterator[CheckResult]:
    """Whether the bucket for Terraform's state exists and may be used. `tags` raises ForeignBucket."""
    try:
        found = tags()
    except ForeignBucket as error:
        yield failed(f"may not be used ({error})", "use its account or project, or choose another name")
        return
    yield ok("reachable") if found is not None else failed("does not exist", "spotladder infra state")


@dataclass(frozen=True, slots=True)
class Described:
    """A cluster as its cloud describes it. `lacks` are the results for what an existing cluster lacks."""

    version: str
    tags: Mapping[str, str]
    lacks: Iterable[CheckResult]


Describe = Callable[[], Described | None]
"""Describes a cluster; None when it does not exist."""


def of_cluster(
    fleet: Fleet,
    cluster: Cluster,
    offered: Iterable[FleetFinding],
    describe: Describe,
    bucket_tags: Callable[[str, str], Tags],
) -> Iterator[Check]:
    """The checks of one cluster.

    Args:
        offered: What the cloud does not offer.
        bucket_tags: Gets the name and the region of a bucket. Raises ForeignBucket.
    """
    yield Check(cluster.name, "zones, versions and instances", _offers(offered))
    if cluster.existing is not None:
        yield Check(cluster.name, cluster.existing, _existing(cluster, describe))
    yield Check(cluster.name, "names", _names(fleet, cluster, describe, bucket_tags))


def _names(
    fleet: Fleet, cluster: Cluster, describe: Describe, bucket_tags: Callable[[str, str], Tags]
) -> Iterator[CheckResult]:
    """Whether the names of the cluster and of the bucket that its stack creates are taken."""
    taken: list[CheckResult] = []
    if cluster.created and (found := describe()) is not None:
        taken += _taken(f"cluster {cluster.name}", found.tags, fleet, "rename the cluster")
    bucket = fleet.created_bucket(cluster)
    if bucket is not None:
        what = f"bucket {bucket.name}"
        try:
            tags = bucket_tags(bucket.name, bucket.region)
        except ForeignBucket:
            taken.append(failed(f"{what} belongs to another account or project", "rename the bucket"))
        else:
            taken += _taken(what, tags, fleet, "rename it, or set create: false to use it")
    yield from taken or [ok("available, or owned by this fleet")]


def _taken(what: str, tags: Tags, fleet: Fleet, fix: str) -> Iterator[CheckResult]:
    if tags is not None and tags.get(OWNER) != fleet.metadata.name:
        yield failed(f"{what} exists and does not belong to fleet {fleet.metadata.name}", fix)


def _existing(cluster: Cluster, describe: Describe) -> Iterator[CheckResult]:
    """Whether an existing cluster has what the stack and the rollout need of it."""
    found = describe()
    if found is None:
        place = f"{cluster.project or 'this account'}, {cluster.location}"
        yield failed(f"{cluster.cloud_name} is not in {place}", "correct existing, region or account")
        return
    results = list(found.lacks)
    minor = ".".join(found.version.split(".")[:2])
    if minor != cluster.kubernetes:
        differs = f"runs Kubernetes {minor}, the file has {cluster.kubernetes}"
        results.append(CheckResult(Status.WARNING, differs, f'set kubernetes to "{minor}"'))
    yield from results or [ok(f"Kubernetes {found.version}, with all that is needed")]


def _offers(findings: Iterable[FleetFinding]) -> Iterator[CheckResult]:
    """What the cloud does not offer, each with its field in the file."""
    found = [
        CheckResult(Status.WARNING if entry.warning else Status.FAILED, str(entry), "change the fleet file")
        for entry in findings
    ]
    yield from found or [ok("all are offered")]
