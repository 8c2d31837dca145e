"""The places whose jobs a command follows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import typer

from spotladder.cli.local.selection import is_local, state_folder
from spotladder.cli.target import ClusterTarget
from spotladder.errors import Refused
from spotladder.state_folder import with_home

if TYPE_CHECKING:
    from spotladder.clusters.client import Client
    from spotladder.places.place import FollowedPlace

SHARED_CALLS_PER_SECOND, SHARED_CALLS_AT_ONCE = 100.0, 200
"""Average and burst of the requests to the API server by a page of many users."""


@asynccontextmanager
async def places_of(
    target: ClusterTarget,
    state_dir: Path | None,
    *,
    everywhere: bool,
    contexts: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[list[FollowedPlace]]:
    """This machine, unless the command names a cluster or runs in a pod of one, and the cluster, if one is configured.
    `contexts` are those of its members. Raises Refused."""
    _refuse_both(target, everywhere=everywhere)
    from spotladder.clusters.client import Client
    from spotladder.clusters.connection import IN_CLUSTER, connect
    from spotladder.jobs.attempt_clusters import AttemptClusters
    from spotladder.jobs.connected_cluster import MANAGER, ConnectedCluster
    from spotladder.places.cluster import JobsOfCluster
    from spotladder.places.this_machine import ThisMachine

    here: list[FollowedPlace] = [] if target.is_explicit else [ThisMachine(state_folder(state_dir))]
    if is_local(target, state_dir):
        yield here
        return
    connection = connect(target.kubeconfig, target.context)
    if connection.context == IN_CLUSTER:
        here = []
    async with Client(connection, manager=MANAGER) as client:
        cluster = ConnectedCluster(client, target.namespace)
        async with AttemptClusters(cluster, target.kubeconfig, contexts) as members:
            namespace = "" if everywhere else cluster.namespace
            yield [*here, JobsOfCluster(client, cluster.context, namespace, members)]


def recorded_place(address: str) -> FollowedPlace:
    """The jobs recorded at this address. Raises EnvironmentFailure without any, InvalidSpec, and StoreUnavailable."""
    from spotladder.places.recorded import RecordedJobs

    place = RecordedJobs(address.rstrip("/") if "://" in address else str(with_home(address).resolve()))
    place.look()
    return place


@asynccontextmanager
async def shared_place_of(
    target: ClusterTarget, state_dir: Path | None, *, everywhere: bool
) -> AsyncIterator[tuple[Client, FollowedPlace]]:
    """The cluster, for a page of many users. Raises Refused."""
    _refuse_both(target, everywhere=everywhere)
    if is_local(target, state_dir):
        raise Refused("--host serves the users of a cluster: name one with --context or --kubeconfig")
    from spotladder.clusters.client import Client
    from spotladder.clusters.clock import SystemClock
    from spotladder.clusters.connection import connect
    from spotladder.clusters.throttle import Throttle
    from spotladder.jobs.connected_cluster import MANAGER, ConnectedCluster
    from spotladder.places.cluster import JobsOfCluster

    throttle = Throttle(SHARED_CALLS_PER_SECOND, SHARED_CALLS_AT_ONCE, SystemClock())
    async with Client(connect(target.kubeconfig, target.context), throttle=throttle, manager=MANAGER) as client:
        cluster = ConnectedCluster(client, target.namespace)
        yield client, JobsOfCluster(client, cluster.context, "" if everywhere else cluster.namespace, shared=True)


async def warn_of_problems(places: Sequence[FollowedPlace]) -> None:
    """Print why the jobs of a place cannot be listed, such as refused credentials. Returns after the first list of each
    place, while the places are followed."""
    for place in places:
        await place.wait_for_sync()
        if place.problem:
            typer.echo(f"warning: {place.title}: {place.problem}", err=True)


def _refuse_both(target: ClusterTarget, *, everywhere: bool) -> None:
    if everywhere and target.namespace:
        raise Refused("--namespace and --all-namespaces exclude each other: remove one of them")
