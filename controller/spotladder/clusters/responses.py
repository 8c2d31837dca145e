"""Parses an API server's responses and converts network errors."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import aiohttp
from pydantic_core import from_json

from spotladder.clusters.errors import ClusterUnreachable, Throttled, api_error
from spotladder.errors import SpotladderError, TooLarge

LARGEST_RESPONSE = 16 << 20
"""Maximum bytes of a response or of an event. An object has at most 1.5 MiB, and a page is split."""

LONGEST_REFUSAL = 65_536
"""Bytes that are read of an error response, which may come from a pod."""


MAX_DEPTH = 200
"""Levels of nested values that the parser of JSON reads."""

_TO_BRACKET = re.compile(rb'[^][{}"]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^][{}"]*+)*+([][{}])', re.DOTALL)
"""The text to the next bracket outside of strings."""


async def parsed(content: bytes) -> Any:
    """The JSON, with null for values below `MAX_DEPTH`: one object of a tenant must not keep a list of all tenants from
    being read. No kind of Kubernetes has so many levels, but the API server stores 10,000 in a field that it does not
    know, such as one of a TieredJob's template. Raises ValueError."""
    try:
        return from_json(content)
    except ValueError:  # In a thread: a page of such objects takes seconds.
        return from_json(await asyncio.to_thread(_shallow, content))


def _shallow(content: bytes) -> bytes:
    kept, depth, since = list[bytes](), 0, 0
    for found in _TO_BRACKET.finditer(content):
        opens = found[1] in b"[{"
        if opens and depth == MAX_DEPTH:
            kept.append(content[since : found.start(1)])
        depth += 1 if opens else -1
        if not opens and depth == MAX_DEPTH:
            kept.append(b"null")
            since = found.end()
    return b"".join((*kept, content[since:]))


async def capped(answer: aiohttp.ClientResponse, most: int, where: str) -> bytes:
    """The response. Raises TooLarge when more than `most` bytes have arrived."""
    content = await _beginning(answer, most + 1)
    if len(content) > most:
        raise TooLarge(where, "bytes", len(content), most)
    return bytes(content)


async def _beginning(answer: aiohttp.ClientResponse, longest: int) -> bytearray:
    content = bytearray()
    while len(content) < longest and (piece := await answer.content.read(longest - len(content))):
        content += piece
    return content


async def refused(answer: aiohttp.ClientResponse, where: str) -> SpotladderError:
    """The error in an error response."""
    content = bytes(await _beginning(answer, LONGEST_REFUSAL))
    try:
        status = from_json(content)
        reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
        about = str((status.get("details") or {}).get("kind") or "")
    except (ValueError, AttributeError):
        reason, message = answer.reason or "", content[:200].decode(errors="replace")
        about = ""
    error = api_error(answer.status, reason, message, where=where, about=about)
    if isinstance(error, Throttled):
        with suppress(KeyError, ValueError):
            error.retry_after = max(0.0, float(answer.headers["Retry-After"]))  # In this order, NaN is 0.
    return error


async def lines(answer: aiohttp.ClientResponse, where: str) -> AsyncIterator[bytes]:
    """The stream's lines, each of which is one object. Raises TooLarge."""
    rest = bytearray()
    async for chunk in answer.content.iter_any():
        rest += chunk
        if b"\n" in chunk:
            *complete, rest_of_line = rest.split(b"\n")
            for line in complete:
                if line.strip():
                    yield bytes(line)
            rest = rest_of_line
        if len(rest) > LARGEST_RESPONSE:
            raise TooLarge(where, "bytes", len(rest), LARGEST_RESPONSE)


class typed:  # noqa: N801 – reads as a statement
    """Converts network errors to ClusterUnreachable."""

    def __init__(self, where: str) -> None:
        self._where = where

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, TimeoutError | asyncio.TimeoutError):
            raise ClusterUnreachable(f"{self._where}: the API server did not answer in time") from None
        if isinstance(error, aiohttp.ClientError | OSError | ValueError):
            text = " ".join(str(error).split()) or type(error).__name__
            raise ClusterUnreachable(f"{self._where}: {text}") from None


def watched_socket(address: Any) -> socket.socket:
    """A connection that detects the silent loss of its peer within half a minute."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 20_000)):
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made
