"""Requests to a user's endpoint through the proxy, with the real client library and local servers."""

from __future__ import annotations

import asyncio
import base64
import re
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotladder.api.address import Endpoint
from spotladder.checkpoints.open_store import open_store
from spotladder.errors import StoreUnavailable
from spotladder.operator.storage.allowed_addresses import AccessDenied, Grant, grant
from spotladder.operator.storage.bucket_log import BucketLog
from spotladder.operator.storage.commit_logs import LogAddress
from spotladder.operator.storage.egress_proxy import Egress, refusal

KEYS = {"AWS_ACCESS_KEY_ID": "user", "AWS_SECRET_ACCESS_KEY": "hidden", "AWS_REGION": "r"}
METADATA = "169.254.169.254"
FORMS = ["{}", "::ffff:{}", "64:ff9b::{}", "64:ff9b:1::{}", "::{}"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "address", [METADATA, "169.254.170.23", "168.63.129.16", "100.100.100.200", "127.0.0.1", "0.0.0.1"]
)
def test_metadata_and_local_addresses_are_refused_in_every_ipv6_form(form: str, address: str) -> None:
    assert refusal(ip_address(form.format(address)))


@pytest.mark.parametrize(
    "address",
    ["fe80::1", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "::1", "::", "ff02::1", "224.0.0.1", "255.255.255.255",
     "127.8.8.8", "2002:a9fe:a9fe::1", "2001:0:4136:e378:8000:63bf:5601:5601"],
)  # fmt: skip
def test_special_purpose_addresses_are_refused(address: str) -> None:
    assert refusal(ip_address(address))


@pytest.mark.parametrize("address", ["10.0.0.1", "192.168.1.1", "52.216.0.1", "fd12::1", "2600::1", "::ffff:10.0.0.1"])
def test_private_and_public_addresses_are_allowed(address: str) -> None:
    assert not refusal(ip_address(address))


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_loopback_addresses_are_allowed_only_for_listed_endpoints(address: str) -> None:
    assert refusal(ip_address(address))
    assert not refusal(ip_address(address), loopback=True)


@given(st.ip_addresses(v=4, network="169.254.0.0/16"), st.sampled_from(FORMS), st.booleans())
def test_link_local_addresses_are_always_refused(address: object, form: str, loopback: bool) -> None:
    assert refusal(ip_address(form.format(address)), loopback=loopback)


@dataclass
class Server:
    """Answers every request in the same way and records it."""

    status: int = 404
    location: str = ""
    body: bytes = b""
    port: int = 0
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.asked.append((f"{self.command} {self.path}", headers))
            self.rfile.read(int(headers.get("content-length", 0)))
            self.send_response(server.status)
            if server.location:
                self.send_header("Location", server.location)
            self.send_header("Content-Length", str(len(server.body)))
            self.send_header("ETag", '"1"')
            self.send_header("Last-Modified", "Sun, 22 Nov 2026 12:00:00 GMT")
            self.end_headers()
            self.wfile.write(server.body)

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


@asynccontextmanager
async def reading(endpoint: str, *answers: Sequence[str], listed: bool = True) -> AsyncIterator[BucketLog]:
    """A log at the endpoint. `answers` are the results of successive name lookups."""
    left = list(answers)

    async def resolve(host: str, _port: int) -> Sequence[str]:
        return left.pop(0) if left else [host]

    async with Egress(resolve) as egress:
        allowed = Grant({**KEYS, "AWS_ENDPOINT_URL": endpoint}, True, Endpoint.parse(endpoint), listed)
        log = await asyncio.to_thread(BucketLog, LogAddress("digits", "team-a", "uid", "s3://bkt/x", allowed), egress)
        yield log


@pytest.fixture(autouse=True)
def _controllers_own_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "CONTROLLER")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "CONTROLLER-SECRET")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "CONTROLLER-TOKEN")


EMPTY = b'<?xml version="1.0"?><ListBucketResult><Name>bkt</Name><IsTruncated>false</IsTruncated></ListBucketResult>'


async def test_a_request_carries_only_the_credentials_of_the_secret() -> None:
    with serving(Server(200, body=EMPTY)) as server:
        async with reading(f"http://localhost:{server.port}", *[["127.0.0.1"]] * 2) as log:
            progress = await asyncio.to_thread(log.progress)
    assert progress.committed_at is None
    line, headers = server.asked[0]
    assert line.startswith("GET /bkt?list-type=2")
    assert "Credential=user/" in headers["authorization"]
    assert headers["host"] == f"localhost:{server.port}"
    assert not [name for name in headers if name.startswith("proxy") or name == "x-amz-security-token"]
    assert "CONTROLLER" not in str(server.asked)


async def test_objects_are_written_and_read_through_the_proxy() -> None:
    body = b"x" * 300_000
    with serving(Server(200, body=body)) as server:
        async with Egress() as egress:
            endpoint = f"http://127.0.0.1:{server.port}"
            permit = egress.permit(Endpoint.parse(endpoint), loopback=True)
            store = open_store("s3://bkt/x", {**KEYS, "AWS_ENDPOINT_URL": endpoint}, isolated=True, proxy=permit.proxy)
            assert await asyncio.to_thread(store.get, "key") == body
            assert await asyncio.to_thread(store.put_if_absent, "key", body)
    assert [line for line, _ in server.asked] == ["GET /bkt/x/key", "PUT /bkt/x/key"]


async def test_each_response_closes_its_connection() -> None:
    """Otherwise the client would reuse a connection that is about to close, and would not retry a failed write."""
    with serving(Server(200, body=b"x")) as server:
        async with Egress() as egress:
            permit = egress.permit(Endpoint.parse(f"http://127.0.0.1:{server.port}"), loopback=True)
            head = await ask_for_head(permit.proxy, f"GET http://127.0.0.1:{server.port}/x HTTP/1.1")
    assert head.lower().count(b"connection: ") == 1
    assert b"\r\nConnection: close\r\n" in head


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(status: int) -> None:
    with serving(Server(200, body=b"METADATA")) as inner:
        location = f"http://127.0.0.1:{inner.port}/latest/meta-data"
        with serving(Server(status, location)) as server:
            async with reading(f"http://localhost:{server.port}", ["127.0.0.1"]) as log:
                with pytest.raises(AccessDenied, match=f"redirects elsewhere .status {status}") as denied:
                    await asyncio.to_thread(log.progress)
    assert "METADATA" not in str(denied.value)
    assert not inner.asked


async def test_the_error_for_an_unreachable_endpoint_names_the_endpoint_and_the_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client library itself only receives "502 Bad Gateway"."""
    monkeypatch.setattr("spotladder.checkpoints.bucket.RETRY_TIMEOUT", timedelta(0))
    async with reading("http://127.0.0.1:9") as log:
        why = "^http://127.0.0.1:9 cannot be reached: connection refused: check the network and AWS_ENDPOINT_URL$"
        with pytest.raises(StoreUnavailable, match=why):
            await asyncio.to_thread(log.progress)


async def test_an_endpoint_whose_name_resolves_to_a_refused_address_later_is_refused() -> None:
    """The address is checked when the log is opened, and again at each connection."""
    with serving(Server(200, body=EMPTY)) as server:
        async with reading(f"http://localhost:{server.port}", *[["127.0.0.1"]] * 2, ["127.0.0.1", METADATA]) as log:
            await asyncio.to_thread(log.progress)
            count = len(server.asked)
            with pytest.raises(AccessDenied, match=f"leads to {re.escape(METADATA)}, a link-local"):
                await asyncio.to_thread(log.progress)
    assert len(server.asked) == count


@pytest.mark.parametrize(
    "endpoint", [f"http://{METADATA}", f"https://[::ffff:{METADATA}]:8443", "http://[fd00:ec2::254]"]
)
@pytest.mark.parametrize("listed", [True, False])
async def test_metadata_services_are_refused_before_any_request(endpoint: str, listed: bool) -> None:
    with pytest.raises(AccessDenied, match=r"spec\.checkpoints\.credentials: AWS_ENDPOINT_URL"):
        async with reading(endpoint, listed=listed):
            pass


async def test_an_unlisted_loopback_endpoint_is_refused() -> None:
    with pytest.raises(AccessDenied, match="a loopback address"):
        async with reading("http://localhost:9", listed=False):
            pass


async def test_https_is_tunnelled_only_to_the_permitted_endpoint() -> None:
    received = bytearray()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.extend(await reader.read(5))
        writer.write(b"pong")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Egress() as egress:
        permit = egress.permit(Endpoint.parse(f"https://127.0.0.1:{port}"), loopback=True)
        assert await ask(permit.proxy, f"CONNECT 127.0.0.1:{port} HTTP/1.1", b"ping!") == (200, b"pong")
        assert received == b"ping!"
        assert await ask(permit.proxy, f"CONNECT 127.0.0.1:{port + 1} HTTP/1.1") == (403, b"")
        assert await ask(permit.proxy, f"GET http://127.0.0.1:{port}/x HTTP/1.1") == (403, b"")
        assert await ask(permit.proxy, "GET /x HTTP/1.1") == (403, b"")
        assert await ask(permit.proxy, "nonsense") == (403, b"")


async def test_a_request_without_a_valid_permit_is_not_forwarded() -> None:
    with serving(Server(200)) as server:
        async with Egress() as egress:
            permit = egress.permit(Endpoint.parse(f"http://127.0.0.1:{server.port}"), loopback=True)
            line = f"GET http://127.0.0.1:{server.port}/x HTTP/1.1"
            assert await ask(permit.proxy.replace(permit.token, "another"), line) == (407, b"")
            assert (await ask(permit.proxy, line))[0] == 200
            proxy = permit.proxy
            del permit  # dropping the permit revokes it
            assert await ask(proxy, line) == (407, b"")
    assert len(server.asked) == 1


async def ask(proxy: str, line: str, more: bytes = b"") -> tuple[int, bytes]:
    """Send this request line to the proxy. Returns the status code and the bytes after the head."""
    head, rest = await exchange(proxy, line, more)
    return int(head.split(b" ")[1]), rest


async def ask_for_head(proxy: str, line: str) -> bytes:
    return (await exchange(proxy, line))[0]


async def exchange(proxy: str, line: str, more: bytes = b"") -> tuple[bytes, bytes]:
    """The head of the response and the bytes after it."""
    user, _, place = proxy.removeprefix("http://").rpartition("@")
    reader, writer = await asyncio.open_connection("127.0.0.1", int(place.rpartition(":")[2]))
    token = base64.b64encode(user.encode()).decode()
    writer.write(f"{line}\r\nHost: x\r\nProxy-Authorization: Basic {token}\r\n\r\n".encode() + more)
    head = await reader.readuntil(b"\r\n\r\n")
    rest = await reader.read()
    writer.close()
    return head, rest


def test_the_representation_of_a_grant_has_no_secret() -> None:
    found = grant((), "ns", "s3://b/x", {**KEYS, "AWS_ENDPOINT_URL": "http://h"}, "s")
    assert "hidden" not in repr(found)
