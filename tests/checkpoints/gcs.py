"""A fake of Google Cloud Storage: the XML API calls that obstore makes, with their preconditions.

No published emulator fits. gcp-storage-emulator (PyPI) accepts XML uploads, but it ignores
`x-goog-if-generation-match`, so a second create succeeds, and it has no XML listing. fake-gcs-server 1.56 (a Go module)
supports `ifGenerationMatch` only in its JSON API and refuses obstore's XML uploads. Google's testbench is not in a
registry. The fake follows https://cloud.google.com/storage/docs/xml-api: a PUT with generation 0 answers 412 if the
object exists, multipart uploads are invisible until they are completed, listings are sorted by name and paginated.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

BUCKET = "bucket"
PAGE = 10
WHEN = "2026-01-01T00:00:00.000Z"


class GcsServer(ThreadingHTTPServer):
    """The objects of one bucket, for the calls of either API. `latency` is the time until it answers a request for an
    object, in seconds."""

    daemon_threads = True

    def __init__(self, calls: type[BaseHTTPRequestHandler] | None = None, latency: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), calls or XmlCalls)
        self.latency = latency
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.lock = threading.Lock()
        self.numbers = count(1)


class XmlCalls(BaseHTTPRequestHandler):
    """The calls of the XML API."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: GcsServer

    def log_message(self, *_: object) -> None:
        pass

    def do_PUT(self) -> None:
        key, query = self._target()
        body = self._body()
        with self.server.lock:
            if "uploadId" in query:
                self.server.uploads[query["uploadId"]][int(query["partNumber"])] = body
            elif self.headers.get("x-goog-if-generation-match") == "0" and key in self.server.objects:
                return self._answer(412, "<Error><Code>PreconditionFailed</Code></Error>")
            elif key is not None:
                self.server.objects[key] = body
        return self._answer(404 if key is None else 200)

    def do_POST(self) -> None:
        key, query = self._target()
        self._body()
        if key is None:
            return self._no_bucket()
        with self.server.lock:
            if "uploads" in query:
                upload = f"upload-{next(self.server.numbers)}"
                self.server.uploads[upload] = {}
                answer = (
                    f"<InitiateMultipartUploadResult><Bucket>{BUCKET}</Bucket><Key>{escape(key)}</Key>"
                    f"<UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
                )
            else:
                parts = self.server.uploads.pop(query["uploadId"])
                self.server.objects[key] = b"".join(parts[number] for number in sorted(parts))
                answer = "<CompleteMultipartUploadResult><ETag>&quot;1&quot;</ETag></CompleteMultipartUploadResult>"
        return self._answer(200, answer)

    def do_GET(self) -> None:
        key, query = self._target()
        if key is None:
            return self._no_bucket()
        if key == "":
            return self._answer(200, self._listing(query))
        return self._object(key)

    do_HEAD = do_GET  # noqa: N815 – named by http.server

    def do_DELETE(self) -> None:
        key, query = self._target()
        with self.server.lock:
            if "uploadId" in query:
                return self._answer(204 if self.server.uploads.pop(query["uploadId"], None) is not None else 404)
            return self._answer(204 if self.server.objects.pop(key or "", None) is not None else 404)

    def _target(self) -> tuple[str | None, dict[str, str]]:
        """The object's name ("" for the bucket itself, None for another bucket) and the query."""
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        return (key if bucket == BUCKET else None), query

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _object(self, key: str) -> None:
        data = self.server.objects.get(key)
        time.sleep(self.server.latency)
        if data is None:
            return self._answer(404, "<Error><Code>NoSuchKey</Code></Error>")
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if not wanted:
            return self._answer(200, data)
        if int(wanted[1]) >= len(data):
            return self._answer(416, "<Error><Code>InvalidRange</Code></Error>")
        start, end = int(wanted[1]), min(int(wanted[2] or len(data) - 1), len(data) - 1)
        return self._answer(206, data[start : end + 1], {"Content-Range": f"bytes {start}-{end}/{len(data)}"})

    def _listing(self, query: dict[str, str]) -> str:
        prefix = query.get("prefix", "")
        after = max(query.get("start-after", ""), query.get("continuation-token", ""))
        with self.server.lock:
            keys = sorted(key for key in self.server.objects if key.startswith(prefix) and key > after)
            sizes = {key: len(self.server.objects[key]) for key in keys}
        folders: set[str] = set()
        if delimiter := query.get("delimiter", ""):
            folders = {prefix + key[len(prefix) :].partition(delimiter)[0] + "/" for key in keys
                       if delimiter in key[len(prefix) :]}  # fmt: skip
            keys = [key for key in keys if delimiter not in key[len(prefix) :]]
        page = keys[:PAGE]
        contents = "".join(f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in folders)
        contents += "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{sizes[key]}</Size><LastModified>{WHEN}</LastModified>"
            f"<ETag>&quot;1&quot;</ETag></Contents>"
            for key in page
        )
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if len(keys) > PAGE else ""
        truncated = "true" if more else "false"
        return f"<ListBucketResult><IsTruncated>{truncated}</IsTruncated>{more}{contents}</ListBucketResult>"

    def _no_bucket(self) -> None:
        self._answer(404, "<Error><Code>NoSuchBucket</Code></Error>")

    def _answer(self, status: int, body: str | bytes = b"", headers: dict[str, str] | None = None) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        defaults = {"ETag": '"1"', "x-goog-generation": "1", "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
        for name, value in {**defaults, **(headers or {}), "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


@contextmanager
def google(environment: pytest.MonkeyPatch, latency: float = 0.0) -> Iterator[str]:
    """The fake on a free port, with a bucket named `bucket`. Yields its address and sets the environment for it."""
    server = GcsServer(latency=latency)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_address[1]}"
        environment.setenv("GOOGLE_BASE_URL", address)
        environment.setenv("GOOGLE_BEARER_TOKEN", "test")
        for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_KEY"):
            environment.delenv(name, raising=False)
        yield address
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
