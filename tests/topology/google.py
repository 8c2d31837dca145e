"""Google Cloud for tests: the real google-auth and google-cloud-container, over HTTP to this machine.

The server checks requests as far as the clients are ours: the fields of a bucket, and that every request is authorised.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import google.auth
import pytest
from google.oauth2.credentials import Credentials

from spotladder_infra.google import COMPUTE, CONTAINER, STORAGE

BUCKET_FIELDS = {
    "name": str, "location": str, "iamConfiguration": dict, "versioning": dict, "softDeletePolicy": dict,
}  # fmt: skip
"""Fields of the Bucket resource of the storage API, with their JSON types."""


class Cloud:
    """What there is in Google Cloud. Paths of `compute` and `container` are those of the APIs, without the version."""

    def __init__(self) -> None:
        self.buckets: dict[str, dict[str, Any]] = {}
        self.compute: dict[str, Any] = {}
        self.container: dict[str, Any] = {}
        self.refuses: dict[str, int] = {}
        self.asked: list[str] = []

    def answer(self, method: str, url: str, body: Any) -> tuple[int, Any]:
        where = urlsplit(url)
        _, api, path = where.path.split("/", 2)
        path = path.removeprefix("v1/")
        self.asked.append(f"{method} {path}")
        if status := self.refuses.get(path):
            return status, _error(status, "refused by the test")
        if api == "storage":
            return self._storage(method, path, parse_qs(where.query), body)
        found = (self.compute if api == "compute" else self.container).get(path)
        return (200, found) if found is not None else (404, _error(404, f"{path} was not found"))

    def _storage(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        for name, value in (body or {}).items():
            if not isinstance(value, BUCKET_FIELDS.get(name, type(None))):
                return 400, _error(400, f"Invalid argument: {name}")
        if method == "POST" and path == "b":
            if "project" not in query:
                return 400, _error(400, "Required parameter: project")
            if body["name"] in self.buckets:
                return 409, _error(409, "Your previous request to create the named bucket succeeded")
            made = {"location": "US", **body, "project": query["project"][0]}
            self.buckets[body["name"]] = {**made, "location": made["location"].upper()}
            return 200, self.buckets[body["name"]]
        name = re.fullmatch("b/([a-z0-9.-]+)", path)
        if name is None or name[1] not in self.buckets:
            return 404, _error(404, "The specified bucket does not exist.")
        if method == "PATCH":
            self.buckets[name[1]].update(body)
        return 200, self.buckets[name[1]]


def _error(status: int, message: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": message}}


@contextmanager
def google_cloud(monkeypatch: pytest.MonkeyPatch, project: str | None = "acme-ml") -> Iterator[Cloud]:
    """A cloud that the libraries reach, with credentials for it."""
    cloud = Cloud()

    class Handler(BaseHTTPRequestHandler):
        def do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            assert self.headers["Authorization"] == "Bearer a-token"
            status, found = cloud.answer(self.command, self.path, body)
            content = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setattr(google.auth, "default", lambda **_: (Credentials("a-token"), project))
    monkeypatch.setenv(COMPUTE, f"{url}/compute/v1/")
    monkeypatch.setenv(STORAGE, f"{url}/storage/")
    monkeypatch.setenv(CONTAINER, url)
    try:
        yield cloud
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
