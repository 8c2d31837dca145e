"""A fake of the part of the API server that an election uses: versions, conflicts, and outages."""

from __future__ import annotations

from typing import Any

from spotladder.clusters.errors import ClusterUnreachable, Conflict, NotFound
from spotladder.resources import APIResource


class LeaseServer:
    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.down = False
        self.writes = 0

    async def get(self, kind: APIResource, name: str, namespace: str = "") -> dict[str, Any]:
        self._answer()
        if self.lease is None:
            raise NotFound(404, "NotFound", name)
        return {**self.lease, "metadata": dict(self.lease["metadata"]), "spec": dict(self.lease["spec"])}

    async def create(self, kind: APIResource, body: dict[str, Any]) -> dict[str, Any]:
        self._answer()
        if self.lease is not None:
            raise Conflict(409, "AlreadyExists", "")
        return self._store(body)

    async def replace(self, kind: APIResource, body: dict[str, Any]) -> dict[str, Any]:
        self._answer()
        if self.lease is None:
            raise NotFound(404, "NotFound", "")
        if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise Conflict(409, "Conflict", "")
        return self._store(body)

    def _answer(self) -> None:
        if self.down:
            raise ClusterUnreachable("down")

    def _store(self, body: dict[str, Any]) -> dict[str, Any]:
        self.writes += 1
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.writes)}}
        return self.lease
