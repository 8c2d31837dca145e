"""Requests to an endpoint that the administrator has listed, with the real client library and local servers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from spotladder.api.address import Endpoint
from spotladder.api.tenancy import TenantRule
from spotladder.errors import StoreUnavailable
from spotladder.operator.storage.allowed_addresses import grant
from spotladder.operator.storage.bucket_log import BucketLog
from spotladder.operator.storage.commit_logs import LogAddress

KEYS = {"AWS_ACCESS_KEY_ID": "user", "AWS_SECRET_ACCESS_KEY": "hidden", "AWS_REGION": "r"}
EMPTY = b'<?xml version="1.0"?><ListBucketResult><Name>bkt</Name><IsTruncated>false</IsTruncated></ListBucketResult>'


@dataclass
class Server:
    """Answers every request in the same way and records it."""

    status: int = 200
    location: str = ""
    port: int = 0
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.asked.append((f"{self.command} {self.path}", headers))
            self.rfile.read(int(headers.get("content-length", 0)))
            self.send_response(server.status)
            if server.location:
                self.send_header("Location", server.location)
            self.send_header("Content-Length", str(len(EMPTY)))
            self.end_headers()
            self.wfile.write(EMPTY)

        do_PUT = do_GET  # noqa: N815 – the name is the server's

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.port = http.server_port
    thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()


def log_at(endpoint: str) -> BucketLog:
    rule = TenantRule(namespaces=("team-a",), endpoints=(Endpoint.parse(endpoint),))
    allowed = grant([rule], "team-a", "s3://bkt/x", {**KEYS, "AWS_ENDPOINT_URL": endpoint}, "bucket")
    return BucketLog(LogAddress("digits", "team-a", "uid", "s3://bkt/x", allowed))


@pytest.fixture(autouse=True)
def _controllers_own_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "CONTROLLER")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "CONTROLLER-SECRET")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "CONTROLLER-TOKEN")


def test_a_request_carries_only_the_credentials_of_the_secret() -> None:
    with serving(Server()) as server:
        assert log_at(f"http://localhost:{server.port}").progress().committed_at is None
    line, headers = server.asked[0]
    assert line.startswith("GET /bkt?list-type=2")
    assert "Credential=user/" in headers["authorization"]
    assert "x-amz-security-token" not in headers
    assert "CONTROLLER" not in str(server.asked)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_to_another_host_is_not_followed(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spotladder.checkpoints.bucket.RETRY_TIMEOUT", timedelta(0))
    with serving(Server()) as inner, serving(Server(status)) as server:
        server.location = f"http://127.0.0.1:{inner.port}/latest/meta-data"
        with pytest.raises(StoreUnavailable):
            log_at(f"http://localhost:{server.port}").progress()
    assert server.asked
    assert not inner.asked
