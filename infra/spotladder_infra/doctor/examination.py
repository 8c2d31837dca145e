"""All checks of a fleet, in the order in which to fix the problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store_check import StoreUnsafe, check_store
from spotladder_infra.amazon import bucket_tags, connect
from spotladder_infra.doctor import aws, gcp, kube, machine, owners
from spotladder_infra.doctor.result import Check, CheckResult, Status, failed, ok, results
from spotladder_infra.google import Google
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.fleet import Fleet

FOLDER = "spotladder-doctor"
"""The folder of a bucket in which the check makes its probes, and deletes them."""

Places = Sequence[tuple[int, Cluster]]
CLOUDS: Mapping[Cloud, Callable[[Fleet, Places], Iterator[Check]]] = {Cloud.AWS: aws.checks, Cloud.GCP: gcp.checks}
BUCKET_TAGS: Mapping[str, Callable[[str, str], owners.Tags]] = {
    "s3": partial(bucket_tags, connect),
    "gs": lambda name, _: Google().bucket_labels(name),
}
"""The checks of clusters with their indexes in the file, by cloud; the function that reads the tags of a bucket, given
its name and region, by the scheme of its URI."""


def examine(fleet: Fleet, clusters: Sequence[Cluster], state: Path, *, offline: bool) -> Iterator[CheckResult]:
    """Yields the results one by one.

    Args:
        clusters: The clusters to check.
        state: Folder for the state of fleets that keep it in local files.
        offline: Check only this machine.
    """
    yield from results(machine.checks(clusters))
    if offline:
        yield CheckResult(Status.SKIPPED, "--offline", "", "all checks", "clouds and clusters")
        return
    yield from results(buckets(fleet))
    for cloud, checks in CLOUDS.items():
        places = [(index, entry) for index, entry in enumerate(fleet.spec.clusters) if entry.cloud is cloud]
        if chosen := [place for place in places if place[1] in clusters]:
            yield from results(checks(fleet, chosen))
    for cluster in clusters:
        if cluster.cloud is Cloud.EXISTING:
            yield from results(kube.checks(fleet, cluster, state))


def buckets(fleet: Fleet) -> Iterator[Check]:
    """The checks of the bucket for Terraform's state and of the checkpoint buckets that no stack creates."""
    state = fleet.spec.state
    if state is not None:
        scheme, _, rest = state.uri.partition("://")
        tags = partial(BUCKET_TAGS[scheme], rest.partition("/")[0], state.region or "")
        yield Check("state", state.uri, owners.state_bucket(tags))
    for bucket in fleet.spec.buckets:
        if not bucket.create:
            scheme, settings = ("gs", {}) if bucket.cloud is Cloud.GCP else ("s3", {"AWS_REGION": bucket.region})
            uri = f"{scheme}://{bucket.name}"
            yield Check(str(bucket.cloud), f"fence in {uri}", _fences(f"{uri}/{FOLDER}", settings))


def _fences(uri: str, settings: Mapping[str, str]) -> Iterator[CheckResult]:
    """Whether a bucket can fence an attempt that was cut off, with the credentials of this machine."""
    try:
        check_store(open_store(uri, settings))
    except StoreUnsafe as error:
        yield failed(error.found, error.remedy)
    else:
        yield ok("of several writers one succeeds")
