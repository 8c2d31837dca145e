"""The servers that the API server calls to read logs: a kubelet, and the dashboard of a Ray head."""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web

from spotladder.clusters.transport import Object
from spotladder.resources import NODES, PODS
from spotladder.workloads import names
from tests.kube.world import KubeWorld


class Kubelet:
    """Serves `logs[pod, container]`; a log that is followed lasts until `end` is set."""

    def __init__(self) -> None:
        self.logs: dict[tuple[str, str], list[str]] = {}
        self.end = asyncio.Event()
        self.asked: list[dict[str, str]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        found = self.logs.get((request.match_info["pod"], request.match_info["container"]))
        self.asked.append(dict(request.query))
        if found is None:
            raise web.HTTPNotFound(text="no such container")
        response = web.StreamResponse()
        await response.prepare(request)
        lines = found[-int(request.query["tailLines"]) :] if "tailLines" in request.query else found
        await response.write("".join(f"{line}\n" for line in lines).encode())
        if request.query.get("follow") == "true":
            await self.end.wait()
            await response.write(b"the end\n")
        return response


@asynccontextmanager
async def kubelet(world: KubeWorld) -> AsyncIterator[tuple[Kubelet, str]]:
    """A kubelet, and the name of its node."""
    made = Kubelet()
    app = web.Application()
    app.add_routes([web.get("/containerLogs/{namespace}/{pod}/{container}", made.answer)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=_certificate())
    await site.start()
    try:
        node = await world.node(f"{world.namespace}-kubelet")
        port = runner.addresses[0][1]
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        await world.client.merge(NODES, node, body={"status": status}, subresource="status")
        yield made, node
    finally:
        await runner.cleanup()


async def ray_pod(
    kube: KubeWorld,
    node: str,
    name: str,
    *,
    role: str,
    containers: list[str],
    attempt: str = "2",
    more: dict[str, str] | None = None,
    job_uid: str = "",
    env: Sequence[Object] = (),
) -> str:
    """A pod of the job `digits` on that node. `job_uid` is for a job in another cluster."""
    job_uid = job_uid or (await kube.job())["metadata"]["uid"]
    labels = {names.JOB: "digits", names.JOB_UID: job_uid, names.ATTEMPT: attempt, names.ROLE: role, **(more or {})}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": kube.namespace, "labels": labels},
        "spec": {
            "nodeName": node,
            "containers": [{"name": each, "image": "ray", "env": list(env)} for each in containers],
        },
    }
    await kube.client.create(PODS, body)
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    statuses = [
        {"name": each, "state": state, "image": "", "imageID": "", "ready": True, "restartCount": 0}
        for each in containers
    ]
    await kube.set_pod(name, phase="Running", containerStatuses=statuses)
    return name


class Dashboard:
    """A dashboard with one submitted job. With a `token` it refuses requests without it."""

    def __init__(self) -> None:
        self.printed, self.status, self.asked, self.token = "", "RUNNING", 0, ""

    def _authenticate(self, request: web.Request) -> None:
        if self.token and request.headers.get("X-Ray-Authorization") != f"Bearer {self.token}":
            raise web.HTTPUnauthorized(text="missing authentication token")

    async def jobs(self, request: web.Request) -> web.Response:
        self._authenticate(request)
        return web.json_response([
            {"type": "DRIVER", "submission_id": None, "status": "RUNNING"},
            {"type": "SUBMISSION", "submission_id": "digits-a002-x", "status": self.status},
        ])  # fmt: skip

    async def logs(self, request: web.Request) -> web.Response:
        self._authenticate(request)
        assert request.match_info["job"] == "digits-a002-x"
        self.asked += 1
        return web.json_response({"logs": self.printed})

    async def last_lines(self, request: web.Request) -> web.Response:
        assert request.query["submission_id"] == "digits-a002-x"
        lines = self.printed.splitlines(keepends=True)
        return web.Response(text="".join(lines[-int(request.query["lines"]) :]))


@asynccontextmanager
async def dashboard() -> AsyncIterator[tuple[Dashboard, str, int]]:
    """A dashboard, with its address and port. API servers refuse loopback addresses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # Sends nothing; selects this machine's external address.
        except OSError:
            pytest.skip("this machine has no address but 127.0.0.1")
        address = probe.getsockname()[0]
    made = Dashboard()
    app = web.Application()
    app.add_routes(
        [
            web.get("/api/jobs/", made.jobs),
            web.get("/api/jobs/{job}/logs", made.logs),
            web.get("/api/v0/logs/file", made.last_lines),
        ]
    )
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, address, 0).start()
        yield made, address, runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _certificate() -> ssl.SSLContext:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubelet")]), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
        context.load_cert_chain(file)
    return context
