"""Clusters with a kubeconfig in a Secret of the home cluster or in a file, which is read again at intervals.

A kubeconfig in a Secret must be self-contained: write access to the Secret must not allow running programs in the
controller's pod or reading its files.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

from pydantic import BaseModel

from spotladder.clusters.client import Client
from spotladder.clusters.clock import Clock
from spotladder.clusters.connection import Connection, connect, from_kubeconfig, parse
from spotladder.clusters.errors import Forbidden, NotFound
from spotladder.clusters.kubeconfig_model import Kubeconfig
from spotladder.core.model import Seconds
from spotladder.errors import EnvironmentFailure
from spotladder.resources import SECRETS

REREAD: Seconds = 30.0
"""Interval after which a rotated Secret is noticed; a failed connection triggers a read at once."""

_OUTSIDE = ("certificate_authority", "exec", "token_file", "client_certificate", "client_key", "auth_provider")
"""Fields of clusters and users that refer to programs and files."""


class KubeconfigFile:
    """Implements `Source`."""

    def __init__(self, file: Path, context: str | None = None) -> None:
        self._file = file
        self._context = context
        self._text = b""
        self._connection: Connection | None = None

    async def connection(self, *, fresh: bool = False) -> Connection:  # noqa: ARG002 – it is always read
        try:
            text = self._file.read_bytes()
        except OSError as error:
            raise EnvironmentFailure(f"{self._file}: {error.strerror}: it should be a kubeconfig") from None
        if self._connection is None or text != self._text:
            self._connection, self._text = connect(str(self._file), self._context), text
        return self._connection


class KubeconfigSecret:
    """Implements `Source`."""

    def __init__(self, home: Client, namespace: str, name: str, *, key: str, context: str | None, clock: Clock) -> None:
        self._home = home
        self._namespace = namespace
        self._name = name
        self._key = key
        self._context = context
        self._clock = clock
        self._read_at = float("-inf")
        self._text = ""
        self._connection: Connection | None = None

    @property
    def _where(self) -> str:
        return f"Secret {self._namespace}/{self._name}"

    async def connection(self, *, fresh: bool = False) -> Connection:
        now = self._clock.ticks()
        if self._connection is not None and not fresh and now - self._read_at < REREAD:
            return self._connection
        text = await self._read()
        if self._connection is None or text != self._text:
            self._connection, self._text = _understood(text, self._context, f"{self._where}, key {self._key}"), text
        self._read_at = now
        return self._connection

    async def _read(self) -> str:
        try:
            secret = await self._home.get(SECRETS, self._name, self._namespace)
        except NotFound:
            raise EnvironmentFailure(f"{self._where} does not exist: create it with the cluster's kubeconfig") from None
        except Forbidden:
            message = (
                f"{self._where} may not be read: list the cluster in the chart's values, which grant the permission"
            )
            raise EnvironmentFailure(message) from None
        data = secret.get("data") or {}
        if self._key not in data:
            keys = ", ".join(sorted(data)) or "none"
            raise EnvironmentFailure(f"{self._where} has no key {self._key}; it has: {keys}")
        try:
            return base64.b64decode(data[self._key]).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise EnvironmentFailure(
                f"{self._where}, key {self._key}: is not text; it should be a kubeconfig"
            ) from None


def _understood(text: str, context: str | None, where: str) -> Connection:
    config = parse(text, where)
    _check(config, where)
    return from_kubeconfig(config, context, where=where)


def _check(config: Kubeconfig, where: str) -> None:
    entries: list[tuple[str, str, BaseModel | None]] = [
        *(("cluster", entry.name, entry.cluster) for entry in config.clusters or ()),
        *(("user", entry.name, entry.user) for entry in config.users or ()),
    ]
    for kind, name, settings in entries:
        for field in _OUTSIDE:
            if settings is not None and getattr(settings, field, None):
                raise EnvironmentFailure(
                    f"{where}: {kind} {name} has {type(settings).model_fields[field].alias}, which is not in the "
                    "controller's pod: put a token or certificate data into the kubeconfig itself"
                )
