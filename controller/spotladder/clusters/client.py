"""One cluster's API, as much of it as spotladder uses: objects are dicts, kinds are `APIResource`s, errors are typed.

Made on aiohttp and nothing else. Beside lightkube 1.0, httpx and kubernetes-asyncio it needs between a third and a
twentieth of the CPU for a request and holds no models of kinds that are not used (docs/operator.md has the figures).

1. A write asks its `guard` first, and gives up when the guard's time is over: a controller whose lease may have been
   taken writes nothing more, and nothing that it sent can arrive much later.
2. 429 is answered by waiting as long as the server says, a few times. Everything else is the caller's to repeat.
3. An answer 401 renews the credentials once.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import aiohttp
from pydantic_core import from_json, to_json

from spotladder.clusters.clock import Clock, SystemClock
from spotladder.clusters.connection import Connection
from spotladder.clusters.errors import ClusterUnreachable, Throttled, api_error
from spotladder.clusters.skew import ahead
from spotladder.clusters.throttle import Throttle
from spotladder.clusters.wire import lines, refused, retry_after, typed, watched_socket
from spotladder.core.model import Seconds
from spotladder.errors import SpotladderError
from spotladder.resources import PODS, APIResource

Object = dict[str, Any]

TIMEOUT: Seconds = 30.0
PAGE = 500
TRIES = 4
LONGEST_WAIT: Seconds = 10.0
"""A longer Retry-After than this is the caller's to wait."""

SILENCE: Seconds = 150.0
"""A watch that hears nothing for so long is dead: bookmarks come every minute."""

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"

METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

Guard = Callable[[], Seconds]
"""How many more seconds writing is allowed; raises when it is not."""

Watcher = Callable[[str, str, int, Seconds], None]
"""Told of every answer: verb, resource (`pods` or `pods/status`), HTTP status (0: none), seconds."""


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a listing, all parts at the same `version`."""

    items: list[Object]
    version: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """`kind` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    kind: str
    object: Object


class Client:
    """Use as `async with Client(connection) as client`. All methods raise ApiError or ClusterUnreachable."""

    def __init__(
        self,
        connection: Connection | None = None,
        *,
        clock: Clock | None = None,
        throttle: Throttle | None = None,
        guard: Guard | None = None,
        watcher: Watcher | None = None,
        manager: str = "spotladder",
        timeout: Seconds = TIMEOUT,
    ) -> None:
        self.manager = manager
        self.guard = guard
        self._clock = clock or SystemClock()
        self._throttle = throttle
        self.watcher = watcher
        self._timeout = timeout
        self._connection = connection
        self._session: aiohttp.ClientSession | None = None
        self.ahead: Seconds = 0.0
        """By how much the cluster's clock is ahead of this machine's, as of its last answer."""

    @property
    def connection(self) -> Connection:
        """How the cluster is reached. Raises ClusterUnreachable when that is not known yet."""
        if self._connection is None:
            raise ClusterUnreachable("the connection to this cluster is not configured yet")
        return self._connection

    async def connect(self, connection: Connection) -> None:
        """Go on by way of this connection; what is under way on the one before breaks."""
        before, self._connection = self._session, connection
        connector = aiohttp.TCPConnector(limit=0, socket_factory=watched_socket, ssl=connection.tls or True)
        self._session = aiohttp.ClientSession(
            connector=connector, headers={"Accept": "application/json", "User-Agent": "spotladder"}, trust_env=False
        )
        if before:
            await before.close()

    async def __aenter__(self) -> Client:
        if self._connection is not None:
            await self.connect(self._connection)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    # --- reading ----------------------------------------------------------------------------------------------------

    async def get(self, kind: APIResource, name: str, namespace: str = "") -> Object:
        """The object as it is now."""
        return await self._call("get", kind, "GET", path_of(kind, namespace, name))

    async def metadata(self, kind: APIResource, name: str, namespace: str = "") -> Object:
        """The object without its content: what a Secret holds is not sent."""
        return await self._call("get", kind, "GET", path_of(kind, namespace, name), accept=METADATA)

    async def pages(
        self, kind: APIResource, namespace: str = "", *, labels: str = "", fields: str = "", limit: int = PAGE
    ) -> AsyncIterator[Page]:
        """All objects of the kind, at least as new as everything written before the call."""
        query = {"limit": str(limit), **_selectors(labels, fields)}
        while True:
            data = await self._call("list", kind, "GET", path_of(kind, namespace), query=query)
            meta = data.get("metadata") or {}
            yield Page(data.get("items") or [], str(meta.get("resourceVersion", "")))
            if not (following := meta.get("continue")):
                return
            query["continue"] = following

    async def watch(
        self,
        kind: APIResource,
        namespace: str = "",
        *,
        version: str,
        labels: str = "",
        fields: str = "",
        seconds: Seconds = 300.0,
    ) -> AsyncIterator[WatchEvent]:
        """Changes after `version`, with bookmarks, until the server ends the watch. Raises Expired."""
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(int(seconds)),
            **_selectors(labels, fields),
        }
        where, began = f"watch {kind.plural}", self._clock.ticks()
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=SILENCE)
        async with (
            typed(where),
            await self._send(
                "GET", path_of(kind, namespace), query=query, data=None, headers={}, timeout=timeout
            ) as answer,
        ):
            if self.watcher:
                self.watcher("watch", kind.plural, answer.status, self._clock.ticks() - began)
            if answer.status != 200:
                raise await refused(answer, where)
            async for line in lines(answer):
                event = from_json(line)
                found = event.get("object") if isinstance(event, dict) else None
                if not isinstance(found, dict):  # what stands between has something to say
                    raise ClusterUnreachable(f"{where}: no event: {line[:200].decode(errors='replace')}")
                if event["type"] == "ERROR":
                    raise api_error(
                        found.get("code", 500), str(found.get("reason", "")), str(found.get("message", "")), where=where
                    )
                yield WatchEvent(event["type"], found)

    async def log(
        self, pod: str, namespace: str, *, container: str, follow: bool = False, tail: int | None = None
    ) -> AsyncIterator[bytes]:
        """What a container has printed, in pieces as they come; with `follow` until it ends."""
        query = {"container": container, "follow": "true" if follow else "false"}
        if tail is not None:
            query["tailLines"] = str(tail)
        path = path_of(PODS, namespace, pod, "log")
        async for piece in self._pieces(f"log of pod {namespace}/{pod}", path, query, None if follow else TIMEOUT):
            yield piece

    async def read(
        self, pod: str, namespace: str, port: int, path: str, query: Mapping[str, str]
    ) -> AsyncIterator[bytes]:
        """What an HTTP server in a pod answers, by way of the API server, in pieces as they come."""
        base = path_of(PODS, namespace, f"{pod}:{port}", "proxy")
        async for piece in self._pieces(f"{path} of pod {namespace}/{pod}", f"{base}/{path}", query, TIMEOUT):
            yield piece

    async def _pieces(
        self, where: str, path: str, query: Mapping[str, str], silence: Seconds | None
    ) -> AsyncIterator[bytes]:
        timeout, began = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=silence), self._clock.ticks()
        async with (
            typed(where),
            await self._send("GET", path, query=query, data=None, headers={}, timeout=timeout) as answer,
        ):
            if self.watcher:
                self.watcher("get", _resource(PODS, path), answer.status, self._clock.ticks() - began)
            if answer.status != 200:
                raise await refused(answer, where)
            async for chunk in answer.content.iter_any():
                yield chunk

    async def ask(self, pod: str, namespace: str, port: int, path: str) -> Any:
        """What an HTTP server in a pod answers, as parsed JSON, by way of the API server."""
        base = path_of(PODS, namespace, f"{pod}:{port}", "proxy")
        return await self._call("get", PODS, "GET", f"{base}/{path}")

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
        """Return when the API server says within so many seconds that it is ready."""
        where, limits = "get /readyz", aiohttp.ClientTimeout(total=seconds)
        async with (
            typed(where),
            asyncio.timeout(seconds),
            await self._send("GET", "/readyz", query={}, data=None, headers={}, timeout=limits) as answer,
        ):
            if answer.status >= 300:
                raise await refused(answer, where)

    async def version(self) -> str:
        """The API server's version, such as `v1.35.2-eks-1a2b3c4`."""
        where = "get /version"
        limits = aiohttp.ClientTimeout(total=self._timeout, sock_connect=min(10.0, self._timeout))
        async with (
            typed(where),
            await self._send("GET", "/version", query={}, data=None, headers={}, timeout=limits) as answer,
        ):
            if answer.status >= 300:
                raise await refused(answer, where)
            return str(from_json(await answer.read()).get("gitVersion", ""))

    # --- writing ----------------------------------------------------------------------------------------------------

    async def apply(self, kind: APIResource, body: Object, *, force: bool = False) -> Object:
        """Server-side apply as our field manager. Raises Conflict where another manager owns a field."""
        meta = body["metadata"]
        query = {"fieldManager": self.manager, "force": "true" if force else "false"}
        path = path_of(kind, meta.get("namespace", ""), meta["name"])
        return await self._call("apply", kind, "PATCH", path, query=query, body=body, content_type=APPLY)

    async def create(self, kind: APIResource, body: Object, *, dry_run: bool = False) -> Object:
        """Create it; with `dry_run` only go through everything that could refuse it. Raises Conflict when the name is
        taken."""
        path = path_of(kind, body["metadata"].get("namespace", ""))
        query = {"fieldManager": self.manager, **({"dryRun": "All"} if dry_run else {})}
        return await self._call("create", kind, "POST", path, query=query, body=body)

    async def replace(self, kind: APIResource, body: Object) -> Object:
        """Put this in the place of what is there. Raises Conflict when that is not of the body's resourceVersion."""
        path = path_of(kind, body["metadata"].get("namespace", ""), body["metadata"]["name"])
        return await self._call("update", kind, "PUT", path, query={"fieldManager": self.manager}, body=body)

    async def merge(
        self, kind: APIResource, name: str, namespace: str = "", *, body: Object, subresource: str = ""
    ) -> Object:
        """JSON merge patch; with a resourceVersion in its metadata it raises Conflict when the object is newer."""
        path = path_of(kind, namespace, name, subresource)
        query = {"fieldManager": self.manager}
        return await self._call("patch", kind, "PATCH", path, query=query, body=body, content_type=MERGE)

    async def delete(
        self, kind: APIResource, name: str, namespace: str = "", *, uid: str = "", grace: int | None = None
    ) -> Object:
        """Delete it, and what hangs on it in the background. With `uid`: only if it is that very object."""
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        return await self._call("delete", kind, "DELETE", path_of(kind, namespace, name), body=options)

    async def delete_all(self, kind: APIResource, namespace: str, *, labels: str, grace: int | None = None) -> None:
        """Delete all of the kind that are labelled so, and what hangs on them in the background."""
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        await self._call(
            "deletecollection", kind, "DELETE", path_of(kind, namespace), query={"labelSelector": labels}, body=options
        )

    # --- the wire ---------------------------------------------------------------------------------------------------

    async def _call(
        self,
        verb: str,
        kind: APIResource,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Object:
        where = f"{verb} {kind.plural}{path.partition(kind.plural)[2]}"
        data = None if body is None else to_json(body)
        headers = {"Accept": accept} if body is None else {"Accept": accept, "Content-Type": content_type}
        for attempt in range(1, TRIES + 1):
            if self._throttle:
                await self._throttle.take()
            began, status = self._clock.ticks(), 0
            timeout = min(self._timeout, self.guard()) if self.guard and method != "GET" else self._timeout
            try:
                limits = aiohttp.ClientTimeout(total=timeout, sock_connect=min(10.0, timeout))
                async with (
                    typed(where),
                    await self._send(
                        method, path, query=query or {}, data=data, headers=headers, timeout=limits
                    ) as answer,
                ):
                    status = answer.status
                    if status < 300:
                        found: Object = from_json(await answer.read())
                        return found
                    refusal = await refused(answer, where)
            finally:
                if self.watcher:
                    self.watcher(verb, _resource(kind, path), status, self._clock.ticks() - began)
            wait = retry_after(answer)
            if not isinstance(refusal, Throttled) or attempt == TRIES or wait > LONGEST_WAIT:
                raise refusal
            await self._clock.sleep(wait)
        raise AssertionError("the last try returns or raises")

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str],
        data: bytes | None,
        headers: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        for fresh in (False, True):
            connection = self.connection
            ours = await connection.credentials.headers(fresh=fresh)
            assert self._session, "use the client in `async with`"  # noqa: S101 – our own defect, not the cluster's
            asked = time.time()  # not the injected clock's: a test steps how time passes, not what this machine's says
            answer = await self._session.request(
                method,
                connection.server + path,
                params=query,
                data=data,
                headers={**headers, **ours},
                timeout=timeout,
                server_hostname=connection.server_name,
                proxy=connection.proxy,
                allow_redirects=False,
            )
            self.ahead = ahead(answer.headers.get("Date"), asked, time.time())
            if answer.status != 401 or fresh:
                return answer
            answer.release()
        raise AssertionError("the second answer is returned")


def path_of(kind: APIResource, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """`/apis/ray.io/v1/namespaces/team-a/rayjobs/digits-a001/status`."""
    parts = ["", "apis", kind.group, kind.version] if kind.group else ["", "api", kind.version]
    if namespace:
        parts += ["namespaces", namespace]
    parts += [part for part in (kind.plural, name, subresource) if part]
    return "/".join(quote(part, safe="") for part in parts)


def _resource(kind: APIResource, path: str) -> str:
    """`rayjobs`, `rayjobs/status` or `pods/proxy`, as RBAC names it."""
    found = re.match(rf"/apis?/.+?(?:/namespaces/[^/]+)?/{kind.plural}(?:/[^/]+(?:/([^/]+))?)?(?:/|$)", path)
    return f"{kind.plural}/{found[1]}" if found and found[1] else kind.plural


def _selectors(labels: str, fields: str) -> dict[str, str]:
    return {key: value for key, value in (("labelSelector", labels), ("fieldSelector", fields)) if value}
