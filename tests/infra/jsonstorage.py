"""A fake of Cloud Storage for Go's client, which reads objects with the XML API and uses the JSON API otherwise.

Source: cloud.google.com/storage/docs/json_api/v1/objects. Pulumi's engine finds it by STORAGE_EMULATOR_HOST.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.checkpoints.gcs import BUCKET, WHEN, GcsServer, XmlCalls
from tests.docs.markdown import ROOT

_OBJECTS = re.compile(rf"/(?:upload/)?storage/v1/b/{BUCKET}/o(?:/([^/]+))?(?:/rewriteTo/b/{BUCKET}/o/([^/]+))?")


class JsonCalls(XmlCalls):
    """The calls of both APIs."""

    def do_GET(self) -> None:  # noqa: N802 – named by http.server
        found = self._json()
        if found is None:
            return super().do_GET()
        key, _, query = found
        if not key:
            return self._tell(self._listed(query.get("prefix", ""), query.get("delimiter", "")))
        return self._tell(self._resource(key)) if key in self.server.objects else self._missing()

    def do_POST(self) -> None:  # noqa: N802 – named by http.server
        found = self._json()
        if found is None:
            return super().do_POST()
        key, copy, query = found
        body = self._body()
        with self.server.lock:
            if copy:
                if key not in self.server.objects:
                    return self._missing()
                self.server.objects[copy] = self.server.objects[key]
                size = str(len(self.server.objects[copy]))
                done = {"done": True, "totalBytesRewritten": size, "objectSize": size}
                return self._tell({**done, "resource": self._resource(copy)})
            assert query["uploadType"] == "multipart"
            name, data = self._uploaded(body)
            self.server.objects[name] = data
        return self._tell(self._resource(name))

    def do_DELETE(self) -> None:  # noqa: N802 – named by http.server
        found = self._json()
        if found is None:
            return super().do_DELETE()
        with self.server.lock:
            known = self.server.objects.pop(found[0], None) is not None
        return self._answer(204) if known else self._missing()

    def _json(self) -> tuple[str, str, dict[str, str]] | None:
        """The object, the target of a copy, and the query; None for a call of the XML API."""
        parts = urlsplit(self.path)
        found = _OBJECTS.fullmatch(parts.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        return None if found is None else (unquote(found[1] or ""), unquote(found[2] or ""), query)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return super()._body()
        found = b""
        while size := int(self.rfile.readline(), 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def _uploaded(self, body: bytes) -> tuple[str, bytes]:
        """Name and content of a multipart upload: the resource as JSON, then the media."""
        boundary = re.search(r'boundary="?([^";]+)', self.headers["Content-Type"])
        assert boundary is not None
        parts = body.split(b"--" + boundary[1].encode())
        resource, media = (part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n") for part in parts[1:3])
        return json.loads(resource)["name"], media

    def _listed(self, prefix: str, delimiter: str) -> dict[str, Any]:
        with self.server.lock:
            keys = sorted(key for key in self.server.objects if key.startswith(prefix))
            groups, items = set(), []
            for key in keys:
                head, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
                if found:
                    groups.add(prefix + head + found)
                else:
                    items.append(self._resource(key))
        return {"kind": "storage#objects", "items": items, "prefixes": sorted(groups)}

    def _resource(self, key: str) -> dict[str, Any]:
        size = str(len(self.server.objects[key]))
        numbers = {"generation": "1", "metageneration": "1", "size": size}
        return {"kind": "storage#object", "name": key, "bucket": BUCKET, "updated": WHEN, "etag": "1", **numbers}

    def _tell(self, answer: dict[str, Any]) -> None:
        self._answer(200, json.dumps(answer), {"Content-Type": "application/json"})

    def _missing(self) -> None:
        error = {"error": {"code": 404, "message": "not found", "errors": [{"reason": "notFound"}]}}
        self._answer(404, json.dumps(error), {"Content-Type": "application/json"})


@contextmanager
def storage() -> Iterator[dict[str, str]]:
    """The bucket, in a process of its own. Yields the environment in which Go's client uses it."""
    command = [sys.executable, "-m", __name__]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        host = process.stdout.readline().strip()
        try:
            yield {"STORAGE_EMULATOR_HOST": host, "GOOGLE_OAUTH_ACCESS_TOKEN": "test"}
        finally:
            process.kill()


if __name__ == "__main__":
    server = GcsServer(JsonCalls)
    print(f"127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
