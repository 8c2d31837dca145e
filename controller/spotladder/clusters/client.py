"""A client of the parts of one cluster's API that spotladder uses: objects are dicts, kinds are `APIResource`s, errors
are typed.

`transport` sends the requests with aiohttp. Compared with lightkube 1.0, httpx and kubernetes-asyncio, a request needs
between a third and a twentieth of the CPU time, and no models of unused kinds are loaded (docs/operator.md has the
figures).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import aiohttp
from pydantic_core import from_json

from spotladder.clusters.errors import ClusterUnreachable, api_error
from spotladder.clusters.responses import capped, lines, parsed, typed
from spotladder.clusters.transport import TIMEOUT, Object, Transport, path_of, resource_of
from spotladder.core.model import Seconds
from spotladder.errors import SpotladderError, TooLarge
from spotladder.resources import PODS, APIResource

PAGE = 500
PAGE_TRIES = 4
"""Maximum number of requests for a page that the server does not answer. The first page of a list is requested once."""

PAGE_REDUCTION = 8
"""Divides the limit of a page that has more bytes than a response may have, before the page is requested again."""

MAX_OBJECTS = 100_000
"""Maximum number of objects of one list."""

PAGE_RETRY_INTERVAL: Seconds = 2.0
"""Delay before a page is requested again."""

SILENCE: Seconds = 150.0
"""A watch without an event for this time is dead: bookmarks arrive every minute."""

LARGEST_ANSWER = 1 << 20
"""Maximum bytes of the JSON response of a pod, or of one without a kind."""

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

JSON = "application/json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list; all pages have the same `version`."""

    items: list[Object]
    version: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """`kind` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    kind: str
    object: Object


class Client(Transport):
    """Use as `async with Client(connection) as client`. All methods raise ApiError, ClusterUnreachable or TooLarge."""

    # --- reads ------------------------------------------------------------------------------------------------------

    async def get(self, kind: APIResource, name: str, namespace: str = "") -> Object:
        """The current object."""
        return await self._call("get", kind, "GET", path_of(kind, namespace, name))

    async def metadata(self, kind: APIResource, name: str, namespace: str = "") -> Object:
        """The object's metadata without its content: the content of a Secret is not sent."""
        return await self._call("get", kind, "GET", path_of(kind, namespace, name), accept=METADATA)

    async def pages(
        self,
        kind: APIResource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = PAGE,
        metadata: bool = False,
    ) -> AsyncIterator[Page]:
        """All objects of the kind, or their metadata without the content, at least as new as every write before the
        call. Raises TooLarge.

        A page that the server does not answer is requested again: an overloaded server would have to send all pages
        before it once more. So is a page with too many bytes, with fewer objects.
        """
        query, listed = {"limit": str(limit), **_selectors(labels, fields)}, 0
        while True:
            try:
                data = await self._page(kind, namespace, query, METADATA_LIST if metadata else JSON)
            except TooLarge:
                if query["limit"] == "1":
                    raise
                query["limit"] = str(max(1, int(query["limit"]) // PAGE_REDUCTION))
                continue
            meta, items = data.get("metadata") or {}, data.get("items") or []
            if (listed := listed + max(1, len(items))) > MAX_OBJECTS:
                raise TooLarge(f"list {kind.plural}", "objects", listed, MAX_OBJECTS)
            yield Page(items, str(meta.get("resourceVersion", "")))
            if not (following := meta.get("continue")):
                return
            query["continue"] = following

    async def _page(self, kind: APIResource, namespace: str, query: Mapping[str, str], accept: str) -> Object:
        for left in reversed(range(PAGE_TRIES if "continue" in query else 1)):
            try:
                return await self._call("list", kind, "GET", path_of(kind, namespace), query=query, accept=accept)
            except ClusterUnreachable:
                if not left:
                    raise
            await self._clock.sleep(PAGE_RETRY_INTERVAL)
        raise AssertionError("the last try returns or raises")

    async def watch(
        self,
        kind: APIResource,
        namespace: str = "",
        *,
        version: str,
        labels: str = "",
        fields: str = "",
        seconds: Seconds = 300.0,
        metadata: bool = False,
    ) -> AsyncIterator[WatchEvent]:
        """Changes after `version`, of the objects or only of their metadata, with bookmarks, until the server ends the
        watch. Raises Expired."""
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(int(seconds)),
            **_selectors(labels, fields),
        }
        where, headers = f"watch {kind.plural}", {"Accept": METADATA if metadata else JSON}
        async with self._response(
            where,
            "GET",
            path_of(kind, namespace),
            aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=SILENCE),
            watched=("watch", kind.plural),
            query=query,
            headers=headers,
        ) as answer:
            async for line in lines(answer, where):
                event = await parsed(line)
                found = event.get("object") if isinstance(event, dict) else None
                if not isinstance(found, dict):  # Events between bookmarks have changes.
                    got = line[:200].decode(errors="replace")
                    raise ClusterUnreachable(f"{where}: expected a watch event, got {got}")
                if event["type"] == "ERROR":
                    raise api_error(
                        found.get("code", 500), str(found.get("reason", "")), str(found.get("message", "")), where=where
                    )
                yield WatchEvent(event["type"], found)

    async def log(
        self, pod: str, namespace: str, *, container: str, follow: bool = False, tail: int | None = None
    ) -> AsyncIterator[bytes]:
        """The output of a container, in chunks as they arrive; with `follow` until it ends."""
        query = {"container": container, "follow": "true" if follow else "false"}
        if tail is not None:
            query["tailLines"] = str(tail)
        path = path_of(PODS, namespace, pod, "log")
        async for piece in self._pieces(f"log of pod {namespace}/{pod}", path, query, None if follow else TIMEOUT):
            yield piece

    async def read(
        self,
        pod: str,
        namespace: str,
        port: int,
        path: str,
        query: Mapping[str, str],
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> AsyncIterator[bytes]:
        """The response of an HTTP server in a pod, through the API server, in chunks as they arrive."""
        where, base = f"{path} of pod {namespace}/{pod}", path_of(PODS, namespace, f"{pod}:{port}", "proxy")
        async for piece in self._pieces(where, f"{base}/{path}", query, TIMEOUT, headers=headers):
            yield piece

    async def _pieces(
        self,
        where: str,
        path: str,
        query: Mapping[str, str],
        silence: Seconds | None,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> AsyncIterator[bytes]:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=silence)
        watched = "get", resource_of(PODS, path)
        async with self._response(where, "GET", path, timeout, watched=watched, query=query, headers=headers) as answer:
            async for chunk in answer.content.iter_any():
                yield chunk

    async def ask(
        self,
        pod: str,
        namespace: str,
        port: int,
        path: str,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        most: int = LARGEST_ANSWER,
    ) -> Any:
        """The response of an HTTP server in a pod, through the API server, as parsed JSON. Raises TooLarge if it has
        more than `most` bytes."""
        base = path_of(PODS, namespace, f"{pod}:{port}", "proxy")
        return await self._call("get", PODS, "GET", f"{base}/{path}", headers=headers, most=most)

    async def exists(self, kind: APIResource) -> bool:
        """Whether the server knows the kind."""
        try:
            data = await self._call("get", kind, "GET", path_of(kind).rpartition("/")[0])
        except SpotladderError as error:
            if getattr(error, "status", 0) == 404:
                return False
            raise
        return any(entry.get("name") == kind.plural for entry in data.get("resources") or [])

    async def ping(self, seconds: Seconds) -> None:
        """Return when the API server reports within this time that it is ready."""
        async with typed("get /readyz"), asyncio.timeout(seconds):
            await self._page_of("/readyz", seconds)

    async def version(self) -> str:
        """The API server's version, such as `v1.35.2-eks-1a2b3c4`."""
        return str(from_json(await self._page_of("/version", self._timeout)).get("gitVersion", ""))

    async def _page_of(self, path: str, seconds: Seconds) -> bytes:
        """The response of the API server itself, which has no kind."""
        where, timeout = f"get {path}", aiohttp.ClientTimeout(total=seconds, sock_connect=min(10.0, seconds))
        async with self._response(where, "GET", path, timeout) as answer:
            return await capped(answer, LARGEST_ANSWER, where)

    # --- writes -----------------------------------------------------------------------------------------------------

    async def apply(self, kind: APIResource, body: Object, *, force: bool = False, dry_run: bool = False) -> Object:
        """Server-side apply with spotladder's field manager; with `dry_run` only validate and admit the object. Raises
        Conflict if another manager owns a field."""
        meta = body["metadata"]
        query = {"fieldManager": self.manager, "force": "true" if force else "false"}
        query |= {"dryRun": "All"} if dry_run else {}
        path = path_of(kind, meta.get("namespace", ""), meta["name"])
        return await self._call("apply", kind, "PATCH", path, query=query, body=body, content_type=APPLY)

    async def create(self, kind: APIResource, body: Object, *, dry_run: bool = False) -> Object:
        """Create the object; with `dry_run` only validate and admit it. Raises Conflict if the name is taken."""
        path = path_of(kind, body["metadata"].get("namespace", ""))
        query = {"fieldManager": self.manager, **({"dryRun": "All"} if dry_run else {})}
        return await self._call("create", kind, "POST", path, query=query, body=body)

    async def replace(self, kind: APIResource, body: Object) -> Object:
        """Replace the object. Raises Conflict if the body's resourceVersion is not the current one."""
        path = path_of(kind, body["metadata"].get("namespace", ""), body["metadata"]["name"])
        return await self._call("update", kind, "PUT", path, query={"fieldManager": self.manager}, body=body)

    async def merge(
        self, kind: APIResource, name: str, namespace: str = "", *, body: Object, subresource: str = ""
    ) -> Object:
        """JSON merge patch. With a resourceVersion in its metadata, raises Conflict if the object is newer."""
        path = path_of(kind, namespace, name, subresource)
        query = {"fieldManager": self.manager}
        return await self._call("patch", kind, "PATCH", path, query=query, body=body, content_type=MERGE)

    async def patch(
        self, kind: APIResource, name: str, namespace: str, operations: Sequence[Mapping[str, Any]]
    ) -> Object:
        """JSON patch (RFC 6902). Raises Invalid when one of its tests fails."""
        path = path_of(kind, namespace, name)
        query = {"fieldManager": self.manager}
        body = [dict(operation) for operation in operations]
        return await self._call("patch", kind, "PATCH", path, query=query, body=body, content_type=JSON_PATCH)

    async def delete(
        self, kind: APIResource, name: str, namespace: str = "", *, uid: str = "", grace: int | None = None
    ) -> Object:
        """Delete the object and, in the background, its dependents. With `uid`: only the object with this uid."""
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        return await self._call("delete", kind, "DELETE", path_of(kind, namespace, name), body=options)

    async def delete_all(self, kind: APIResource, namespace: str, *, labels: str) -> None:
        """Delete all objects of the kind with these labels and, in the background, their dependents."""
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        await self._call(
            "deletecollection", kind, "DELETE", path_of(kind, namespace), query={"labelSelector": labels}, body=options
        )


def _selectors(labels: str, fields: str) -> dict[str, str]:
    return {key: value for key, value in (("labelSelector", labels), ("fieldSelector", fields)) if value}
