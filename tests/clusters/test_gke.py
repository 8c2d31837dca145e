"""GKE, with a fake of its API and of Google's token endpoint; the requests are sent by Google's own libraries."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import certifi
import pytest
from aiohttp import web

from spotladder.clusters.cloud_cluster import CloudCluster
from spotladder.clusters.credentials import EARLY
from spotladder.clusters.gke import Gke
from spotladder.errors import EnvironmentFailure
from tests.clusters.stepped_clock import SteppedClock

CLUSTER = "/v1/projects/ml/locations/europe-west4/clusters/training"
AUTHORITY = base64.b64encode(Path(certifi.where()).read_bytes()).decode()


class ContainerApi:
    """A fake of Google's container API and token endpoint. `cluster` is the response of the API."""

    def __init__(self) -> None:
        self.cluster: dict[str, Any] = {"endpoint": "10.0.0.2", "masterAuth": {"clusterCaCertificate": AUTHORITY}}
        self.refuses = False
        self.tokens = 0
        self.bearers: list[str] = []
        self.url = ""

    async def describe(self, request: web.Request) -> web.Response:
        self.bearers.append(request.headers["Authorization"])
        if request.path != CLUSTER:
            return web.json_response({"error": {"code": 404, "message": "Not found"}}, status=404)
        return web.json_response(self.cluster)

    async def token(self, request: web.Request) -> web.Response:
        if self.refuses:
            return web.json_response({"error": "invalid_grant", "error_description": "no such key"}, status=400)
        self.tokens += 1
        return web.json_response({"access_token": f"token-{self.tokens}", "expires_in": 3600, "token_type": "Bearer"})

    def manager(self, credentials: Any) -> Any:
        """The real client, which sends its requests to the fake over HTTP."""
        from google.cloud.container_v1 import ClusterManagerClient
        from google.cloud.container_v1.services.cluster_manager.transports import ClusterManagerRestTransport

        transport = ClusterManagerRestTransport(
            host=self.url.removeprefix("http://"), url_scheme="http", credentials=credentials
        )
        return ClusterManagerClient(transport=transport)


@asynccontextmanager
async def cloud(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ContainerApi]:
    """The fake, and the key of a service account that refers to it."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    made, app = ContainerApi(), web.Application()
    app.add_routes([web.post("/token", made.token), web.get("/v1/{path:.*}", made.describe)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    key = {"type": "service_account", "client_email": "controller@ml.iam", "private_key": private.decode(),
           "private_key_id": "1", "project_id": "ml", "token_uri": f"{made.url}/token"}  # fmt: skip
    (folder / "key.json").write_text(json.dumps(key))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(folder / "key.json"))
    try:
        yield made
    finally:
        await runner.cleanup()


def training(made: ContainerApi, clock: SteppedClock, name: str = "training") -> CloudCluster:
    return CloudCluster(lambda: Gke("ml", "europe-west4", name, clock=clock, manager=made.manager), "gcp")


async def test_a_gke_cluster_is_found_and_its_token_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SteppedClock(datetime.now(UTC).timestamp())
    async with cloud(tmp_path, monkeypatch) as made:
        source = training(made, clock)
        found = await source.connection()
        assert (found.server, found.context) == ("https://10.0.0.2", "gke:ml/europe-west4/training")
        assert found.tls is not None
        assert await source.connection() is found
        assert await source.connection(fresh=True) is found
        first = await found.credentials.headers()
        assert first["Authorization"].startswith("Bearer token-")
        await clock.advance(3600 - EARLY - 60)
        assert await found.credentials.headers() == first
        await clock.advance(120)
        second = await found.credentials.headers()
        assert second != first
        assert await found.credentials.headers(fresh=True) != second


async def test_the_dns_endpoint_is_used_where_external_traffic_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cloud(tmp_path, monkeypatch) as made:
        for allowed, server in ((False, "https://10.0.0.2"), (True, "https://gke-1.gke.goog")):
            public = {"endpoint": "gke-1.gke.goog", "allowExternalTraffic": allowed}
            made.cluster["controlPlaneEndpointsConfig"] = {"dnsEndpointConfig": public}
            assert (await training(made, SteppedClock()).connection()).server == server


async def test_errors_of_gke_and_of_the_token_endpoint_have_their_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cloud(tmp_path, monkeypatch) as made:
        where = "GKE cluster projects/ml/locations/europe-west4/clusters"
        with pytest.raises(EnvironmentFailure, match=f"{where}/other: 404"):
            await training(made, SteppedClock(), "other").connection()
        made.cluster = {"status": "PROVISIONING"}
        with pytest.raises(EnvironmentFailure, match=f"{where}/training has no endpoint .* PROVISIONING"):
            await training(made, SteppedClock()).connection()
        made.cluster = ContainerApi().cluster
        found = await training(made, SteppedClock()).connection()
        made.refuses = True
        with pytest.raises(EnvironmentFailure, match=r"no token for GKE cluster .*no such key"):
            await found.credentials.headers(fresh=True)
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent")
        with pytest.raises(EnvironmentFailure, match="/nonexistent was not found"):
            await training(made, SteppedClock()).connection()
