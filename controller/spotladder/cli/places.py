"""The places whose jobs a command follows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from spotladder.cli.local.selection import is_local, state_folder
from spotladder.cli.target import ClusterTarget, Refused

if TYPE_CHECKING:
    from pathlib import Path

    from spotladder.places.place import Place


@asynccontextmanager
async def places_of(
    target: ClusterTarget,
    state_dir: Path | None,
    *,
    everywhere: bool,
    contexts: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[list[Place]]:
    """This machine, unless the command names a cluster or runs in a pod of one, and the cluster, if one is configured.
    `contexts` are those of its members. Raises Refused."""
    if everywhere and target.namespace:
        raise Refused("--namespace and --all-namespaces exclude each other: remove one of them")
    from spotladder.cli.cluster.attempt_clusters import AttemptClusters
    from spotladder.cli.cluster.connected_cluster import MANAGER, ConnectedCluster
    from spotladder.clusters.client import Client
    from spotladder.clusters.connection import IN_CLUSTER, connect
    from spotladder.places.cluster import JobsOfCluster
    from spotladder.places.this_machine import ThisMachine

    here: list[Place] = [] if target.is_explicit else [ThisMachine(state_folder(state_dir))]
    if is_local(target, state_dir):
        yield here
        return
    connection = connect(target.kubeconfig, target.context)
    if connection.context == IN_CLUSTER:
        here = []
    async with Client(connection, manager=MANAGER) as client:
        cluster = ConnectedCluster(client, target)
        async with AttemptClusters(cluster, target, contexts) as members:
            namespace = "" if everywhere else cluster.namespace
            yield [*here, JobsOfCluster(client, cluster.context, namespace, members)]
