"""Requests to endpoints in users' Secrets go through a proxy in this process, which connects only to checked
addresses.

The stores' library resolves names itself and follows redirects. The proxy resolves, checks and opens each connection
in one step, so neither a name that changes its address nor a redirect can reach another address.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Self
from weakref import WeakValueDictionary

from spotladder.api.address import Endpoint
from spotladder.core.model import Seconds
from spotladder.errors import InvalidSpec
from spotladder.operator.storage.allowed_addresses import AccessDenied

Address = IPv4Address | IPv6Address

RESOLVE_TIMEOUT: Seconds = 10.0
CONNECT_TIMEOUT: Seconds = 5.0
REQUEST_TIMEOUT: Seconds = 30.0  # Timeout for the head of a request.
HEAD_LIMIT = 64 << 10  # bytes
CHUNK = 64 << 10  # bytes

_METADATA = (
    IPv4Network("168.63.129.16/32"),  # Azure
    IPv4Network("100.100.100.200/32"),  # Alibaba Cloud
    IPv4Network("192.0.0.192/32"),  # Oracle Cloud
    IPv6Network("fd00:ec2::/32"),  # AWS: metadata, time, DNS, Pod Identity
    IPv6Network("fd20:ce::254/128"),  # Google Cloud
)
"""Metadata services outside of the link-local ranges."""

_TRANSLATED = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"), IPv6Network("::/96"))
"""Ranges whose last 32 bits are an IPv4 address: NAT64 (RFC 6052, RFC 8215) and IPv4-compatible addresses."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_REFUSED = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""All IP addresses of a host. Raises OSError."""


def refusal(address: Address, *, loopback: bool = False) -> str:
    """Why no request may be sent to this address; empty if it is allowed. `loopback`: allow addresses of the machine
    itself."""
    address = _embedded(address)
    if address.is_link_local or any(address in network for network in _METADATA):
        return "a link-local or metadata address"
    if address.is_loopback:
        return "" if loopback else "a loopback address"
    if address.is_unspecified or address.is_multicast or address in IPv4Network("0.0.0.0/8"):
        return "not the address of a machine"
    if isinstance(address, IPv4Address) and address.is_reserved:
        return "a reserved address"
    return ""


def _embedded(address: Address) -> Address:
    """The IPv4 address that an IPv6 address leads to, if it does."""
    if isinstance(address, IPv4Address) or address.is_loopback or address.is_unspecified:
        return address
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour or address
    if address.teredo:
        return address.teredo[1]
    if any(address in network for network in _TRANSLATED):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


@dataclass(slots=True, weakref_slot=True)
class Permit:
    """The permission to send requests to one endpoint. `proxy` is the proxy's address, `refused` why the last request
    was refused."""

    endpoint: Endpoint
    loopback: bool
    proxy: str
    token: str = field(repr=False)
    refused: str = ""
    unreachable: str = ""

    def check(self) -> None:
        """Resolve the endpoint now, which blocks. If the name does not resolve, the store reports the error. Raises
        AccessDenied."""
        with suppress(OSError):
            found = socket.getaddrinfo(self.endpoint.host, self.endpoint.port, type=socket.SOCK_STREAM)
            self.admit([str(entry[4][0]) for entry in found])

    def admit(self, addresses: Sequence[str]) -> None:
        """Raises AccessDenied if one of the endpoint's addresses must not be contacted."""
        for text in addresses:
            if why := refusal(ip_address(text.partition("%")[0]), loopback=self.loopback):
                self.deny(f"leads to {text}, {why}")

    def deny(self, why: str) -> None:
        """Raises AccessDenied."""
        self.refused = (
            f"spec.checkpoints.credentials: AWS_ENDPOINT_URL: {self.endpoint} {why}: the controller sends nothing "
            "there; name another endpoint"
        )
        raise AccessDenied(self.refused)


class Egress:
    """Use as `async with Egress(…)`."""

    def __init__(self, resolve: Resolve | None = None) -> None:
        self._resolve = resolve or _resolved
        self._permits: WeakValueDictionary[str, Permit] = WeakValueDictionary()
        self._port = 0
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=HEAD_LIMIT)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for serving in self._serving:
            serving.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def permit(self, endpoint: Endpoint, *, loopback: bool = False) -> Permit:
        """The permission lasts as long as the caller keeps it. Thread-safe."""
        token = secrets.token_urlsafe(24)
        permit = Permit(endpoint, loopback, f"http://permit:{token}@127.0.0.1:{self._port}", token)
        self._permits[token] = permit
        return permit

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.create_task(self._served(reader, writer))
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # When one end closes its connection, closing the other one informs the peer.
            with suppress(OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
                await self._serve(reader, writer)
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(REQUEST_TIMEOUT):
            head = await reader.readuntil(b"\r\n\r\n")
        request, *lines = head[:-4].decode("latin-1").split("\r\n")
        fields = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        permit = self._permits.get(_token(dict(fields).get("proxy-authorization", "")))
        if permit is None:
            writer.write(
                b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            return
        try:
            remote, towards = await self._connect(permit, request)
        except (AccessDenied, InvalidSpec):
            writer.write(_REFUSED)
            return
        except (OSError, TimeoutError) as error:
            permit.unreachable = f"{permit.endpoint} cannot be reached: {_cause(error)}"
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        try:
            method, target, version = request.split(" ")
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _both(_pipe(reader, towards), _pipe(remote, writer))
            else:
                path = "/" + target.split("://", 1)[1].partition("/")[2]
                # One request for each connection: the next one may have another destination.
                kept = [line for line in lines if not line.lower().startswith(("proxy-", "connection:"))]
                own = [f"{method} {path} {version}", *kept, "Connection: close", "", ""]
                towards.write("\r\n".join(own).encode("latin-1"))
                await _both(_pipe(reader, towards), self._answer(permit, remote, writer))
        finally:
            towards.close()

    @staticmethod
    async def _answer(permit: Permit, remote: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward the response, unless it is a redirect. A redirect in a tunnel is detected by the next request."""
        status = 100
        while 100 <= status < 200:  # interim answers
            head = await remote.readuntil(b"\r\n\r\n")
            code = head.split(b" ", 2)[1] if head.count(b" ") else b""
            status = int(code) if code.isdigit() else 0
            if status in REDIRECTS:
                with suppress(AccessDenied):
                    permit.deny(f"redirects elsewhere (status {status})")
                writer.write(_REFUSED)
                return
            writer.write(head if 100 <= status < 200 else _last(head))
        await _pipe(remote, writer)

    async def _connect(self, permit: Permit, request: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the permit's endpoint if the request is for it. Raises AccessDenied, InvalidSpec and OSError."""
        method, target, _ = (*request.split(" "), "", "")[:3]
        asked = Endpoint.parse(f"https://{target}" if method == "CONNECT" else _origin(target))
        if asked != permit.endpoint:
            permit.deny(f"redirects to {asked}")
        async with asyncio.timeout(RESOLVE_TIMEOUT):
            addresses = await self._resolve(asked.host, asked.port)
        permit.admit(addresses)
        failed: OSError | TimeoutError = OSError(f"{asked.host} has no address")
        for address in addresses:
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT):
                    return await asyncio.open_connection(address, asked.port)
            except (OSError, TimeoutError) as error:
                failed = error
        raise failed


def _cause(error: OSError) -> str:
    """Why a connection failed: `connection refused`."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    known = error.errno is not None and error.errno > 0  # codes of the name resolution are negative
    return (os.strerror(error.errno) if known else error.strerror or str(error)).lower()  # type: ignore[arg-type]


def _last(head: bytes) -> bytes:
    """The head of a response after which the connection is closed; without it the client would reuse the connection."""
    lines = head[:-4].split(b"\r\n")
    kept = [line for line in lines if not line.lower().startswith((b"connection:", b"keep-alive:"))]
    return b"\r\n".join([*kept, b"Connection: close", b"", b""])


async def _resolved(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _token(header: str) -> str:
    """The password in a `Basic …` header."""
    try:
        return base64.b64decode(header.removeprefix("Basic "), validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _origin(target: str) -> str:
    """Scheme and authority of an absolute request target."""
    scheme, separator, rest = target.partition("://")
    return scheme + separator + rest.partition("/")[0].partition("?")[0]


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(CHUNK):
        writer.write(chunk)
        await writer.drain()


async def _both(upwards: Coroutine[Any, Any, None], downwards: Coroutine[Any, Any, None]) -> None:
    """Wait until one of the two ends: the response is complete, or the client has closed the connection."""
    pipes = [asyncio.create_task(upwards), asyncio.create_task(downwards)]
    try:
        await asyncio.wait(pipes, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for pipe in pipes:
            pipe.cancel()
        await asyncio.gather(*pipes, return_exceptions=True)
