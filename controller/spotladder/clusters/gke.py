"""GKE clusters by project, location and name, with the identity that google-auth finds: Workload Identity, …

If a cluster's DNS endpoint allows external access, it is used: it needs no certificate of its own and no route into
the cluster's network.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

import google.auth
from google.api_core.exceptions import GoogleAPIError, RetryError
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import Request
from google.cloud.container_v1 import ClusterManagerClient

from spotladder.clusters.clock import Clock
from spotladder.clusters.connection import Connection, trusting
from spotladder.clusters.credentials import EARLY, BearerToken
from spotladder.core.model import Instant, Seconds
from spotladder.errors import EnvironmentFailure

ANSWER: Seconds = 15.0
"""Timeout of requests to Google's APIs."""

_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]


class GoogleCredentials(Protocol):
    """The part of google-auth's credentials that is used."""

    token: str | None
    expiry: datetime | None

    def refresh(self, request: Any) -> None: ...


class Gke:
    """Implements `clusters.cloud_cluster.Cloud`. `manager` makes the client of the cloud with the identity."""

    def __init__(
        self,
        project: str,
        location: str,
        name: str,
        *,
        clock: Clock,
        manager: Callable[[Any], Any] | None = None,
    ) -> None:
        self._path = f"projects/{project}/locations/{location}/clusters/{name}"
        self._short = f"gke:{project}/{location}/{name}"
        self._clock = clock
        self._manager = manager or (lambda credentials: ClusterManagerClient(credentials=credentials))
        self._credentials: GoogleCredentials | None = None

    def connected(self, server: str, authority: str) -> Connection:
        assert self._credentials is not None  # noqa: S101 – describing the cluster needed them
        token = BearerToken(partial(token_of, self._credentials, self._path), clock=self._clock)
        return Connection(server, token, tls=trusting(authority), context=self._short)

    def describe(self) -> tuple[str, str]:
        where = f"GKE cluster {self._path}"
        try:
            if self._credentials is None:
                self._credentials = found_identity()
            cluster = self._manager(self._credentials).get_cluster(name=self._path, timeout=ANSWER)
        except (GoogleAPIError, GoogleAuthError, RetryError) as error:
            raise EnvironmentFailure(f"{where}: {' '.join(str(error).split())}") from None
        public = cluster.control_plane_endpoints_config.dns_endpoint_config
        if public.endpoint and public.allow_external_traffic:
            return f"https://{public.endpoint}", ""
        if not cluster.endpoint or not cluster.master_auth.cluster_ca_certificate:
            raise EnvironmentFailure(f"{where} has no endpoint that can be used: its status is {cluster.status.name}")
        return f"https://{cluster.endpoint}", cluster.master_auth.cluster_ca_certificate


async def token_of(identity: GoogleCredentials, cluster: str) -> tuple[str, Instant]:
    """An OAuth token of the identity for this cluster, and when to get the next one."""
    try:
        async with asyncio.timeout(ANSWER):
            await asyncio.to_thread(identity.refresh, Request())
    except (GoogleAuthError, TimeoutError) as error:
        why = " ".join(str(error).split()) or f"no answer in {ANSWER:g} s"
        raise EnvironmentFailure(f"no token for GKE cluster {cluster}: {why}") from None
    expiry = identity.expiry  # google-auth returns UTC without a time zone.
    return str(identity.token), float("inf") if expiry is None else expiry.replace(tzinfo=UTC).timestamp() - EARLY


def found_identity() -> GoogleCredentials:
    """The identity of this process as google-auth finds it. Raises google-auth's errors."""
    found: GoogleCredentials = google.auth.default(scopes=_SCOPES)[0]
    return found
