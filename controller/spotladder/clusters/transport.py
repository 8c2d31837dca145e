"""Requests to one API server.

1. A write calls its `guard` first, and is aborted when the guard's time is over: a controller that may have lost its
   lease writes nothing more, and no request of it can arrive much later.
2. After 429 the request is repeated a few times after the delay that the server requests. Any other error is raised to
   the caller.
3. After 401 the credentials are renewed once.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Self
from urllib.parse import quote

import aiohttp
from pydantic_core import to_json

from spotladder.clusters.clock import Clock, SystemClock
from spotladder.clusters.connection import Connection
from spotladder.clusters.errors import ClusterUnreachable, Throttled
from spotladder.clusters.responses import LARGEST_RESPONSE, capped, parsed, refused, typed, watched_socket
from spotladder.clusters.skew import ahead
from spotladder.clusters.throttle import Throttle
from spotladder.core.model import Seconds
from spotladder.resources import APIResource

Object = dict[str, Any]

TIMEOUT: Seconds = 30.0
TRIES = 4
LONGEST_WAIT: Seconds = 10.0
"""Maximum Retry-After in seconds; the caller handles longer ones."""

Guard = Callable[[], Seconds]
"""Returns the number of seconds for which writes are allowed; raises if they are not."""

Watcher = Callable[[str, str, int], None]
"""Called for every response: verb, resource (`pods` or `pods/status`), HTTP status (0: none)."""


class Transport:
    """Use as `async with`. Every request raises ApiError or ClusterUnreachable."""

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
        """The difference by which the cluster's clock is ahead of this machine's, from its last response."""

    @property
    def connection(self) -> Connection:
        """The current connection. Raises ClusterUnreachable if it is unknown."""
        if self._connection is None:
            raise ClusterUnreachable("the connection to this cluster is not configured yet")
        return self._connection

    async def connect(self, connection: Connection) -> None:
        """Use this connection from now on; requests on the previous one fail."""
        before, self._connection = self._session, connection
        connector = aiohttp.TCPConnector(limit=0, socket_factory=watched_socket, ssl=connection.tls or True)
        self._session = aiohttp.ClientSession(
            connector=connector, headers={"Accept": "application/json", "User-Agent": "spotladder"}, trust_env=False
        )
        if before:
            await before.close()

    async def __aenter__(self) -> Self:
        if self._connection is not None:
            await self.connect(self._connection)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    async def _call(
        self,
        verb: str,
        kind: APIResource,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | list[Object] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        headers: Mapping[str, str] = MappingProxyType({}),
        most: int | None = None,
    ) -> Object:
        """The parsed response. Raises TooLarge if it has more than `most` bytes; None: `LARGEST_RESPONSE`."""
        where = f"{verb} {kind.plural}{path.partition(kind.plural)[2]}"
        data = None if body is None else to_json(body)
        content = {} if body is None else {"Content-Type": content_type}
        for attempt in range(1, TRIES + 1):
            if self._throttle:
                await self._throttle.take()
            allowed = self.guard() if self.guard and method != "GET" else None
            timeout = self._timeout if allowed is None else min(self._timeout, allowed)
            response = self._response(
                where,
                method,
                path,
                aiohttp.ClientTimeout(total=timeout, sock_connect=min(10.0, timeout)),
                watched=(verb, resource_of(kind, path)),
                query=query or {},
                data=data,
                headers={"Accept": accept, **content, **headers},
            )
            try:  # The credentials, whose renewal may take long, come before the request and its own timeout.
                async with typed(where), asyncio.timeout(allowed), response as answer:
                    found: Object = await parsed(await capped(answer, most or LARGEST_RESPONSE, where))
                    return found
            except Throttled as refusal:
                if attempt == TRIES or refusal.retry_after > LONGEST_WAIT:
                    raise
                await self._clock.sleep(refusal.retry_after)
        raise AssertionError("the last try returns or raises")

    @asynccontextmanager
    async def _response(
        self,
        where: str,
        method: str,
        path: str,
        timeout: aiohttp.ClientTimeout,
        *,
        watched: tuple[str, str] | None = None,
        query: Mapping[str, str] = MappingProxyType({}),
        data: bytes | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A response that is no error, to be read. `where` is the request in messages, `watched` its verb and resource
        for the watcher. Raises the error in an error response."""
        status = 0
        async with typed(where):
            try:
                answer = await self._send(method, path, query=query, data=data, headers=headers, timeout=timeout)
                status = answer.status
            finally:
                if self.watcher and watched:
                    self.watcher(*watched, status)
            async with answer:
                if status >= 300:
                    raise await refused(answer, where)
                yield answer

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
            asked = time.time()  # Not the injected clock's: a test steps durations, but not this machine's time.
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
            if "/proxy/" not in path:  # Otherwise a pod has written the response.
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


def resource_of(kind: APIResource, path: str) -> str:
    """`rayjobs`, `rayjobs/status` or `pods/proxy`, as RBAC names it."""
    found = re.match(rf"/apis?/.+?(?:/namespaces/[^/]+)?/{kind.plural}(?:/[^/]+(?:/([^/]+))?)?(?:/|$)", path)
    return f"{kind.plural}/{found[1]}" if found and found[1] else kind.plural
