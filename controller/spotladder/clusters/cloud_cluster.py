"""A cluster whose address and credentials its cloud's API returns: at the first use, and again after a change."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from spotladder.clusters.connection import Connection


class CloudCluster(ABC):
    """Implements `clusters.registry.ConnectionSource` for a cloud. The same description keeps the same connection."""

    def __init__(self) -> None:
        self._described: tuple[str, str] = ("", "")
        self._connection: Connection | None = None

    async def connection(self, *, fresh: bool = False) -> Connection:
        if self._connection is None or fresh:
            found = await asyncio.to_thread(self._describe)
            if self._connection is None or found != self._described:
                self._connection, self._described = self._connected(*found), found
        return self._connection

    @abstractmethod
    def _describe(self) -> tuple[str, str]:
        """The server's address, and its certificate authority in base64 ("" for a public one). Blocks until the cloud
        responds."""

    @abstractmethod
    def _connected(self, server: str, authority: str) -> Connection:
        """The connection for a description."""
