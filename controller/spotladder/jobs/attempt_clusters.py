"""Connects to the clusters of a job's attempts through the contexts of the user's kubeconfig.

The controller's settings name the clusters. `--context-for east=prod-east` maps such a name to a context; a
context with the same name as the cluster needs no mapping.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from spotladder.clusters.connection import connect, contexts
from spotladder.errors import EnvironmentFailure, SpotladderError
from spotladder.jobs.connected_cluster import MANAGER, ConnectedCluster, for_user
from spotladder.places.attempt_output import is_home


class NoContext(EnvironmentFailure):
    """The kubeconfig has no context for a cluster."""


class AttemptClusters:
    """An async context manager. `contexts` maps clusters to contexts from the command line. Connects on first use."""

    def __init__(self, home: ConnectedCluster, kubeconfig: str | None, contexts: Mapping[str, str]) -> None:
        self._home = home
        self._kubeconfig = kubeconfig
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
        from spotladder.clusters.client import Client  # noqa: PLC0415 – slow to import

        client = Client(connect(self._kubeconfig, self._context(name)), manager=MANAGER)
        await self._stack.enter_async_context(client)
        self._open[name] = ConnectedCluster(client, self._home.namespace)
        return self._open[name]

    def _context(self, name: str) -> str:
        if name in self._contexts:
            return self._contexts[name]
        try:
            known = contexts(self._kubeconfig)
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
