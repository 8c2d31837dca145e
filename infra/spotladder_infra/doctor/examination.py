"""All checks of a fleet, in the order in which to fix the problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from spotladder.errors import EnvironmentFailure
from spotladder_infra.amazon import connect
from spotladder_infra.doctor import buckets, kube, machine
from spotladder_infra.doctor.aws import Account
from spotladder_infra.doctor.gcp import Project
from spotladder_infra.doctor.result import CheckResult, Status
from spotladder_infra.topology.cluster import CREATED, Cloud, Cluster
from spotladder_infra.topology.fleet import Fleet


def examine(
    fleet: Fleet, clusters: Sequence[Cluster], today: date, state: Path, *, offline: bool
) -> Iterator[CheckResult]:
    """Yields the results one by one.

    Args:
        clusters: The clusters to check.
        today: The date by which node images are old.
        state: Folder for the state of fleets that keep it in local files.
        offline: Check only this machine.
    """
    yield from machine.examine(clusters, state)
    if offline:
        for name in dict.fromkeys(_place(cluster) for cluster in clusters):
            yield CheckResult(name, "all checks", Status.SKIPPED, "--offline")
        return
    yield from _state_bucket(fleet)
    yield from buckets.examine(fleet)
    places = [(index, entry) for index, entry in enumerate(fleet.spec.clusters) if entry in clusters]
    of_aws = [(index, entry) for index, entry in places if entry.cloud is Cloud.AWS]
    of_gcp = [(index, entry) for index, entry in places if entry.cloud is Cloud.GCP]
    if of_aws:
        yield from _aws(fleet, of_aws, today)
    if of_gcp:
        yield from Project().examine(fleet, of_gcp)
    for _, cluster in places:
        if cluster.cloud not in CREATED:
            yield from kube.examine(fleet, cluster, state)


def _place(cluster: Cluster) -> str:
    return str(cluster.cloud) if cluster.cloud in CREATED else cluster.name


def _aws(fleet: Fleet, clusters: Sequence[tuple[int, Cluster]], today: date) -> Iterator[CheckResult]:
    try:
        yield from Account(connect).examine(fleet, clusters, today)
    except EnvironmentFailure as error:
        yield CheckResult("aws", "all checks", Status.SKIPPED, str(error))


def _state_bucket(fleet: Fleet) -> Iterator[CheckResult]:
    state = fleet.spec.state
    if state is None:
        return
    scheme, _, rest = state.uri.partition("://")
    bucket = rest.partition("/")[0]
    if scheme == "gs":
        yield from Project().state_bucket(bucket)
        return
    try:
        yield from Account(connect).state_bucket(bucket, state.region or "")
    except EnvironmentFailure as error:
        yield CheckResult("state", state.uri, Status.SKIPPED, str(error))
