"""Connects to the clusters of a job's attempts through the contexts of the user's kubeconfig.

The controller's settings name the clusters. `--context-for east=prod-east` maps such a name to a context; a
context with the same name as the cluster needs no mapping.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

from spotladder.cli.cluster.connected_cluster import MANAGER, ConnectedCluster, for_user
from spotladder.cli.target import ClusterTarget, Refused
from spotladder.clusters.connection import connect
from spotladder.errors import EnvironmentFailure, SpotladderError
from spotladder.places.attempt_output import is_home


class NoContext(EnvironmentFailure):
    """The kubeconfig has no context for a cluster."""


class AttemptClusters:
    """An async context manager. `contexts` maps clusters to contexts from the command line. Connects on first use."""

    def __init__(self, home: ConnectedCluster, target: ClusterTarget, contexts: Mapping[str, str]) -> None:
        self._home = home
        self._target = target
        self._contexts = contexts
        self._open: dict[str, ConnectedCluster] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> AttemptClusters:
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.__aexit__(*error)

    @asynccontextmanager
    async def on(self, name: str) -> AsyncIterator[ConnectedCluster]:
        """The cluster of that name, with API errors converted into messages for the user. Raises NoContext."""
        cluster = self._home if is_home(name) else self._open.get(name) or await self._reach(name)
        try:
            yield cluster
        except SpotladderError as error:
            raise await for_user(error, cluster) from None

    async def _reach(self, name: str) -> ConnectedCluster:
        from spotladder.clusters.client import Client

        client = Client(connect(self._target.kubeconfig, self._context(name)), manager=MANAGER)
        await self._stack.enter_async_context(client)
        target = replace(self._target, namespace=self._home.namespace)
        self._open[name] = ConnectedCluster(client, target)
        return self._open[name]

    def _context(self, name: str) -> str:
        from spotladder.clusters.connection import contexts

        if name in self._contexts:
            return self._contexts[name]
        try:
            known = contexts(self._target.kubeconfig)
        except EnvironmentFailure:
            known = ()  # the home cluster needs no kubeconfig in a pod
        if name in known:
            return name
        choice = f"contexts: {', '.join(known)}" if known else "the kubeconfig has no contexts"
        raise NoContext(f"cluster {name} has no context of the same name: set --context-for {name}=CONTEXT ({choice})")


def clusters_of(job: Mapping[str, Any]) -> list[str]:
    """The clusters of the job's attempts other than home, in the order of the attempts."""
    status = job.get("status") or {}
    ended = sorted(status.get("attempts") or [], key=lambda entry: entry.get("number", 0))
    names = [str(entry.get("cluster") or "") for entry in (*ended, status)]
    return [name for name in dict.fromkeys(names) if not is_home(name)]


def contexts_given(values: Iterable[str] | None) -> Mapping[str, str]:
    """The values of --context-for. Raises Refused."""
    given = {}
    for value in values or ():
        name, _, context = value.partition("=")
        if not (name and context):
            raise Refused(f"--context-for {value}: expected CLUSTER=CONTEXT, such as east=prod-east")
        given[name] = context
    return given
