"""Rules that are the same on every cloud: who owns a name, and what the cloud offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from spotladder.api.problems import dotted
from spotladder_infra.doctor.result import CheckResult, Status, failed, ok
from spotladder_infra.names import ForeignBucket
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.findings import FleetFinding
from spotladder_infra.topology.fleet import Fleet

OWNER = "spotladder-fleet"
"""The tag or label with the name of the fleet that a resource belongs to."""

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


def names(
    fleet: Fleet, cluster: Cluster, cluster_tags: Tags, bucket_tags: Callable[[str, str], Tags]
) -> Iterator[CheckResult]:
    """Whether the names of the cluster and of the bucket that its stack creates are taken.

    `bucket_tags` gets the name and the region of the bucket, and raises ForeignBucket.
    """
    taken: list[CheckResult] = []
    if cluster.created:
        taken += _taken(f"cluster {cluster.name}", cluster_tags, fleet, "rename the cluster")
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


def existing(cluster: Cluster, version: str | None, lacks: Iterable[CheckResult]) -> Iterator[CheckResult]:
    """Whether an existing cluster has what the stack and the rollout need of it.

    Args:
        version: Its Kubernetes version; None if the cluster does not exist.
        lacks: What it lacks, each with the command that adds it; not read if the cluster does not exist.
    """
    if version is None:
        place = cluster.project or "this account"
        yield failed(
            f"{cluster.cloud_name} is not in {place}, {cluster.location}", "correct existing, region or account"
        )
        return
    found = list(lacks)
    minor = ".".join(version.split(".")[:2])
    if minor != cluster.kubernetes:
        differs = f"runs Kubernetes {minor}, the file has {cluster.kubernetes}"
        found.append(CheckResult(Status.WARNING, differs, f'set kubernetes to "{minor}"'))
    yield from found or [ok(f"Kubernetes {version}, with all that is needed")]


def offers(findings: Iterable[FleetFinding]) -> Iterator[CheckResult]:
    """What the cloud does not offer, each with its field in the file."""
    found = [
        CheckResult(
            Status.WARNING if entry.warning else Status.FAILED,
            f"{dotted(entry.path)}: {entry.message}",
            "change the fleet file",
        )
        for entry in findings
    ]
    yield from found or [ok("all are offered")]
