"""Credentials for an API server: a fixed token, a token file that is renewed, or a credentials program."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from spotladder.clusters.clock import Clock, SystemClock
from spotladder.core.model import Instant, Seconds
from spotladder.errors import EnvironmentFailure
from spotladder.timestamps import seconds_of

REREAD: Seconds = 60.0
"""Interval of reading the token file. The kubelet renews it long before the token expires."""

EXEC_TIMEOUT: Seconds = 30.0
"""Timeout of a credentials program."""

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


class TokenFile:
    """A token in a file that another process renews, such as a service account's."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock or SystemClock()
        self._read_at = float("-inf")
        self._headers: dict[str, str] = {}

    async def headers(self, *, fresh: bool = False) -> dict[str, str]:
        now = self._clock.ticks()
        if fresh or now - self._read_at > REREAD:
            try:
                token = self._path.read_text(encoding="utf-8").strip()
            except OSError as error:
                raise EnvironmentFailure(f"{self._path}: the token cannot be read: {error.strerror}") from None
            except UnicodeDecodeError:
                raise EnvironmentFailure(f"{self._path}: the token cannot be read: it is not text") from None
            self._headers = {"Authorization": f"Bearer {token}"}
            self._read_at = now
        return self._headers


class TokenProgram:
    """A kubeconfig's `exec` user: a program prints an ExecCredential (aws eks get-token, gke-gcloud-auth-plugin)."""

    def __init__(self, command: list[str], environment: dict[str, str], api_version: str, hint: str = "") -> None:
        self._command = command
        self._environment = environment
        self._api_version = api_version
        self._hint = hint
        self._clock = SystemClock()
        self._expires: Instant = float("-inf")
        self._headers: dict[str, str] = {}
        self._lock = asyncio.Lock()

    async def headers(self, *, fresh: bool = False) -> dict[str, str]:
        async with self._lock:
            if fresh or self._clock.now() > self._expires - EARLY:
                await self._run()
        return self._headers

    async def _run(self) -> None:
        info = {"kind": "ExecCredential", "apiVersion": self._api_version, "spec": {"interactive": False}}
        environment = {**os.environ, **self._environment, "KUBERNETES_EXEC_INFO": json.dumps(info)}
        name = self._command[0]
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command, env=environment, stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
        except OSError as error:
            hint = f"; {' '.join(self._hint.split())}" if self._hint else ""
            raise EnvironmentFailure(f"the kubeconfig's credentials program {name}: {error.strerror}{hint}") from None
        try:
            async with asyncio.timeout(EXEC_TIMEOUT):
                output, complaint = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            raise EnvironmentFailure(f"the credentials program {name} did not answer in {EXEC_TIMEOUT:g} s") from None
        if process.returncode:
            last = complaint.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
            raise EnvironmentFailure(f"the credentials program {name} failed ({process.returncode}): {last[0]}")
        try:
            status = json.loads(output)["status"]
            self._headers = {"Authorization": f"Bearer {status['token']}"}
            expires = status.get("expirationTimestamp")
            self._expires = seconds_of(expires) if expires else float("inf")
        except (ValueError, KeyError, TypeError):
            raise EnvironmentFailure(f"the credentials program {name} printed no ExecCredential with a token") from None
