"""EKS clusters by name and region, with the identity that boto3 finds: Pod Identity, a service account's role, …

The token is that of `aws eks get-token`: a presigned URL of STS GetCallerIdentity that carries the cluster's name. It
is created without a request, and the cluster accepts it for 15 minutes.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import boto3
from botocore.config import Config
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import get_session
from botocore.signers import RequestSigner

from spotladder.clusters.clock import Clock
from spotladder.clusters.connection import Connection, trusting
from spotladder.clusters.credentials import EARLY, BearerToken
from spotladder.core.model import Instant, Seconds
from spotladder.errors import EnvironmentFailure

LASTS: Seconds = 14 * 60.0
"""A token is accepted for 15 minutes; one minute of these is for clock differences."""

PRESIGNED: Seconds = 60.0
"""The expiry that `aws eks get-token` sets; the cluster accepts the token for longer."""

PREFIX = "k8s-aws-v1."
HEADER = "x-k8s-aws-id"

_CALLS = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "max_attempts": 2})


class Eks:
    """Implements `clusters.cloud_cluster.Cloud`. `role` is assumed first; "" for none."""

    def __init__(self, name: str, region: str, *, role: str = "", clock: Clock) -> None:
        self._name = name
        self._region = region
        self._clock = clock
        self._session = _session(region, role)

    async def token(self) -> tuple[str, Instant]:
        """A token for this cluster, which needs no description of the cluster, and when to make the next one."""
        began = self._clock.now()
        url = await asyncio.to_thread(self._sign)
        token = base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
        return PREFIX + token, began + LASTS - EARLY

    def connected(self, server: str, authority: str) -> Connection:
        token = BearerToken(self.token, clock=self._clock)
        return Connection(server, token, tls=trusting(authority), context=f"eks:{self._region}/{self._name}")

    def describe(self) -> tuple[str, str]:
        where = f"EKS cluster {self._name} in {self._region}"
        try:
            answer = self._session.client("eks", config=_CALLS).describe_cluster(name=self._name)
        except (BotoCoreError, ClientError) as error:
            raise EnvironmentFailure(f"{where}: {' '.join(str(error).split())}") from None
        cluster: dict[str, Any] = answer["cluster"]
        authority = (cluster.get("certificateAuthority") or {}).get("data")
        if not cluster.get("endpoint") or not authority:
            raise EnvironmentFailure(f"{where} has no endpoint yet: its status is {cluster.get('status')}")
        return cluster["endpoint"], authority

    def _sign(self) -> str:
        """The presigned URL. boto3 renews credentials that are about to expire."""
        try:
            sts = self._session.client("sts", config=_CALLS)
            signer = RequestSigner(
                sts.meta.service_model.service_id, self._region, "sts", "v4",
                self._session.get_credentials(), self._session.events,
            )  # fmt: skip
            request = {
                "method": "GET",
                "url": f"{sts.meta.endpoint_url}/?Action=GetCallerIdentity&Version=2011-06-15",
                "body": {},
                "headers": {HEADER: self._name},
                "context": {},
            }
            url: str = signer.generate_presigned_url(
                request, region_name=self._region, expires_in=int(PRESIGNED), operation_name=""
            )
        except (BotoCoreError, ClientError) as error:
            message = f"no token for EKS cluster {self._name}: {' '.join(str(error).split())}"
            raise EnvironmentFailure(message) from None
        return url


def _session(region: str, role: str) -> Any:
    """The session with the identity: the process's own, or one that assumes the role when needed."""
    if not role:
        return boto3.session.Session(region_name=region)
    own, taken = get_session(), get_session()
    own.set_config_variable("region", region)
    if (source := own.get_credentials()) is None:
        raise EnvironmentFailure(f"no AWS credentials to assume the role {role}: give the controller an identity")
    fetcher = AssumeRoleCredentialFetcher(own.create_client, source, role, extra_args={"RoleSessionName": "spotladder"})
    taken._credentials = DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")  # noqa: SLF001
    return boto3.session.Session(botocore_session=taken, region_name=region)
