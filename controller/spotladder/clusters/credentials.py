"""Credentials for an API server: fixed headers, or a token that is renewed."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from spotladder.clusters.clock import Clock
from spotladder.core.model import Instant, Seconds
from spotladder.errors import EnvironmentFailure
from spotladder.timestamps import seconds_of

REREAD: Seconds = 60.0
"""Interval of reading the token file. The kubelet renews it long before the token expires."""

EXEC_TIMEOUT: Seconds = 30.0
"""Timeout of a credentials program."""

LONGEST_COMPLAINT = 1000
"""As many last characters of what a credentials program prints about its failure are in the error."""

EARLY: Seconds = 60.0
"""A token is renewed this long before it expires."""


class Credentials(Protocol):
    """The headers that authenticate a request."""

    async def headers(self, *, fresh: bool = False) -> dict[str, str]:
        """The headers to send. `fresh`: the server refused the previous ones."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Headers that never change; none with a client certificate."""

    fixed: dict[str, str] = field(default_factory=dict, repr=False)

    async def headers(self, *, fresh: bool = False) -> dict[str, str]:  # noqa: ARG002 – nothing to renew
        return self.fixed


class BearerToken:
    """A token that is fetched at its first use, again when its time has come, and when the server has refused it. Until
    then it is kept if the next one cannot be fetched: its time comes before it expires.

    `fetch` returns the token and the time at which to fetch the next one, in seconds since the epoch."""

    def __init__(self, fetch: Callable[[], Awaitable[tuple[str, Instant]]], *, clock: Clock) -> None:
        self._fetch = fetch
        self._clock = clock
        self._renew_at: Instant = float("-inf")
        self._headers: dict[str, str] = {}
        self._lock = asyncio.Lock()

    async def headers(self, *, fresh: bool = False) -> dict[str, str]:
        async with self._lock:
            if fresh or self._clock.now() > self._renew_at:
                try:
                    token, self._renew_at = await self._fetch()
                except EnvironmentFailure:
                    if fresh or not self._headers:
                        raise
                else:
                    self._headers = {"Authorization": f"Bearer {token}"}
        return self._headers


def token_file(path: Path, clock: Clock) -> BearerToken:
    """A token in a file that another process renews, such as a service account's."""

    async def read() -> tuple[str, Instant]:
        try:
            return path.read_text(encoding="utf-8").strip(), clock.now() + REREAD
        except OSError as error:
            raise EnvironmentFailure(f"{path}: the token cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise EnvironmentFailure(f"{path}: the token cannot be read: it is not text") from None

    return BearerToken(read, clock=clock)


async def token_of_program(
    command: list[str], environment: dict[str, str], api_version: str, hint: str = ""
) -> tuple[str, Instant]:
    """The token of a kubeconfig's `exec` user, and when to run the program again. It prints an ExecCredential (aws eks
    get-token, gke-gcloud-auth-plugin)."""
    info = {"kind": "ExecCredential", "apiVersion": api_version, "spec": {"interactive": False}}
    name = command[0]
    try:
        process = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, **environment, "KUBERNETES_EXEC_INFO": json.dumps(info)},
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
    except OSError as error:
        hint = f"; {' '.join(hint.split())}" if hint else ""
        raise EnvironmentFailure(f"the kubeconfig's credentials program {name}: {error.strerror}{hint}") from None
    try:
        async with asyncio.timeout(EXEC_TIMEOUT):
            output, complaint = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise EnvironmentFailure(f"the credentials program {name} did not answer in {EXEC_TIMEOUT:g} s") from None
    if process.returncode:
        why = " ".join(complaint.decode(errors="replace").split())[-LONGEST_COMPLAINT:] or "no message"
        raise EnvironmentFailure(f"the credentials program {name} failed ({process.returncode}): {why}")
    try:
        status = json.loads(output)["status"]
        expires = status.get("expirationTimestamp")
        return "" + status["token"], seconds_of(expires) - EARLY if expires else float("inf")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise EnvironmentFailure(f"the credentials program {name} printed no ExecCredential with a token") from None
