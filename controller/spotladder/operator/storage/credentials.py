"""The credentials for reading a job's log: the Secret that its pods get, used instead of the controller's own."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from spotladder.clusters.client import Client
from spotladder.clusters.clock import Clock
from spotladder.clusters.errors import Forbidden, NotFound
from spotladder.clusters.shared_reads import SharedReads
from spotladder.core.model import Seconds
from spotladder.errors import EnvironmentFailure
from spotladder.resources import SECRETS

SECRET_TTL: Seconds = 60.0
"""Time for which a Secret is cached."""

MISSING_RETRY_INTERVAL: Seconds = 10.0
"""Interval between two reads of a Secret that does not exist."""


class CredentialsMissing(EnvironmentFailure):
    """The Secret does not exist or may not be read."""


class SecretReader:
    """Reads Secrets by name, rarely."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._reads = SharedReads[tuple[str, str], Mapping[str, str] | CredentialsMissing](clock, _lasts)

    async def of(self, namespace: str, name: str) -> Mapping[str, str]:
        """The Secret as environment variables. Raises CredentialsMissing."""
        found = await self._reads.get((namespace, name), lambda: self._ask(namespace, name))
        if isinstance(found, CredentialsMissing):
            raise found
        return found

    async def _ask(self, namespace: str, name: str) -> Mapping[str, str] | CredentialsMissing:
        where = f"spec.checkpoints.credentials: Secret {namespace}/{name}"
        try:
            secret = await self._client.get(SECRETS, name, namespace)
            data = secret.get("data") or {}
            return {key: base64.b64decode(value).decode() for key, value in data.items()}
        except NotFound:
            return CredentialsMissing(f"{where} does not exist: create it")
        except Forbidden:
            return CredentialsMissing(
                f"{where} may not be read by the controller: add its name to the chart's checkpointSecrets"
            )
        except (binascii.Error, UnicodeDecodeError):
            return CredentialsMissing(f"{where} has a value that is not text")


def _lasts(found: Mapping[str, str] | CredentialsMissing) -> Seconds:
    return MISSING_RETRY_INTERVAL if isinstance(found, CredentialsMissing) else SECRET_TTL
