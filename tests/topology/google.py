"""Google Cloud for tests: the real google-auth, over HTTP to this machine.

The server checks the requests that this project builds itself, those to Cloud Storage, and that every request is
authorised.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import google.auth
import pytest
from google.oauth2.credentials import Credentials

from spotladder_infra.google import COMPUTE, CONTAINER, IAM, REGISTRY, SERVICES, STORAGE
from tests.topology.gcs import refusal


class GoogleCloud:
    """The resources of Google Cloud.

    Paths of `compute`, `container`, `iam` and `registry` are those of the APIs, without the version. `objects` are
    names and generations by bucket, `enabled` the APIs of every project. Lists come in pages of one entry or scope.
    """

    def __init__(self) -> None:
        self.buckets: dict[str, dict[str, Any]] = {}
        self.compute: dict[str, Any] = {}
        self.container: dict[str, Any] = {}
        self.iam: dict[str, Any] = {}
        self.registry: dict[str, Any] = {}
        self.enabled = {"artifactregistry", "cloudresourcemanager", "compute", "container", "iam", "storage"}
        self.objects: dict[str, set[tuple[str, int]]] = {}
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
        if api == "services":
            assert parse_qs(where.query)["filter"] == ["state:ENABLED"]
            return 200, {"services": [{"config": {"name": f"{name}.googleapis.com"}} for name in self.enabled]}
        resources = {"compute": self.compute, "iam": self.iam, "registry": self.registry}.get(api, self.container)
        found = resources.get(path)
        if found is None and ("/aggregated/" in path or path.endswith("/global/firewalls")):
            found = {}
        if found is not None and "items" in found:
            found = _page(found, parse_qs(where.query))
        return (200, found) if found is not None else (404, _error(404, f"{path} was not found"))

    def _storage(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        if problem := refusal(method, path, query, body):
            return 400, _error(400, problem)
        if method == "POST" and path == "b":
            if body["name"] in self.buckets:
                return 409, _error(409, "Your previous request to create the named bucket succeeded")
            made = {"location": "US", **body, "project": query["project"][0]}
            self.buckets[body["name"]] = {**made, "location": made["location"].upper()}
            return 200, self.buckets[body["name"]]
        if method == "GET" and path == "b":
            return 200, _page({"items": list(self.buckets.values())}, query)
        if of_object := re.fullmatch("b/([a-z0-9.-]+)/o(?:/(.+))?", path):
            return self._objects(method, of_object[1], of_object[2], query)
        name = re.fullmatch("b/([a-z0-9.-]+)", path)
        if name is None or name[1] not in self.buckets:
            return 404, _error(404, "The specified bucket does not exist.")
        if method == "DELETE":
            if self.objects.get(name[1]):
                return 409, _error(409, "The bucket you tried to delete is not empty.")
            del self.buckets[name[1]]
            return 204, None
        if method == "PATCH":
            self.buckets[name[1]].update(body)
        return 200, self.buckets[name[1]]

    def _objects(self, method: str, bucket: str, name: str | None, query: dict[str, list[str]]) -> tuple[int, Any]:
        objects = self.objects.setdefault(bucket, set())
        if method == "GET":
            assert query["versions"] == ["true"]
            listed = [{"name": key, "generation": str(number)} for key, number in sorted(objects)]
            return 200, {"items": listed[:2], **({"nextPageToken": "more"} if len(listed) > 2 else {})}
        one = (unquote(name or ""), int(query["generation"][0]))
        if one not in objects:
            return 404, _error(404, "No such object")
        objects.remove(one)
        return 204, None


def _page(found: dict[str, Any], query: dict[str, list[str]]) -> dict[str, Any]:
    """One entry of a list, or one scope of an aggregated list."""
    start = int(query.get("pageToken", ["0"])[0])
    items = found["items"]
    keyed = isinstance(items, dict)
    some = list(items.items() if keyed else items)[start : start + 1]
    more = {"nextPageToken": str(start + 1)} if start + 1 < len(items) else {}
    return {**found, "items": dict(some) if keyed else some, **more}


def _error(status: int, message: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": message}}


@contextmanager
def google_cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[GoogleCloud]:
    """A fake cloud for the libraries, with credentials for it."""
    cloud = GoogleCloud()

    class Handler(BaseHTTPRequestHandler):
        def do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            assert self.headers["Authorization"] == "Bearer a-token"
            status, found = cloud.answer(self.command, self.path, body)
            content = b"" if found is None else json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_DELETE = do  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setattr(google.auth, "default", lambda **_: (Credentials("a-token"), "acme-ml"))
    monkeypatch.setenv(COMPUTE, f"{url}/compute/v1/")
    monkeypatch.setenv(STORAGE, f"{url}/storage/")
    monkeypatch.setenv(CONTAINER, f"{url}/container/v1/")
    monkeypatch.setenv(IAM, f"{url}/iam/v1/")
    monkeypatch.setenv(REGISTRY, f"{url}/registry/v1/")
    monkeypatch.setenv(SERVICES, f"{url}/services/v1/")
    try:
        yield cloud
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
