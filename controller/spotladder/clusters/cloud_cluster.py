"""A cluster whose address and credentials its cloud's API returns: at the first use, and again after a change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from spotladder.clusters.connection import Connection
from spotladder.extras import needs


class Cloud(Protocol):
    """The cloud of one cluster."""

    def describe(self) -> tuple[str, str]:
        """The server's address, and its certificate authority in base64 ("" for a public one). Blocks until the cloud
        responds."""

    def connected(self, server: str, authority: str) -> Connection:
        """The connection for a description."""


class CloudCluster:
    """Implements `clusters.registry.ConnectionSource`. The same description keeps the same connection. `cloud` is
    called at the first use, in a thread, because the import of a cloud's library takes seconds; `extra` has it."""

    def __init__(self, cloud: Callable[[], Cloud], extra: str) -> None:
        self._make = cloud
        self._extra = extra
        self._cloud: Cloud | None = None
        self._described: tuple[str, str] = ("", "")
        self._connection: Connection | None = None

    async def connection(self, *, fresh: bool = False) -> Connection:
        if self._connection is None or fresh:
            found = await asyncio.to_thread(self._describe)
            if self._connection is None or found != self._described:
                assert self._cloud is not None  # noqa: S101 – it has described the cluster
                self._connection, self._described = self._cloud.connected(*found), found
        return self._connection

    def _describe(self) -> tuple[str, str]:
        with needs(self._extra):
            self._cloud = self._cloud or self._make()
        return self._cloud.describe()
