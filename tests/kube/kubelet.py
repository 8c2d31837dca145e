"""A kubelet as far as the API server asks one for logs: HTTPS on a free port of 127.0.0.1."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aiohttp import web

from spotladder.workloads.records import NODES
from tests.kube.world import World


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
async def kubelet(world: World) -> AsyncIterator[tuple[Kubelet, str]]:
    """A kubelet, and the name of the node that it is on."""
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
