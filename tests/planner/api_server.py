"""An API server for the commands that read the objects of a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from tests.api.builders import written

Object = dict[str, Any]


@contextmanager
def api_server(folder: Path, objects: Mapping[str, Object]) -> Iterator[Path]:
    """The kubeconfig of an API server that has these objects, by their paths, and nothing else."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = objects.get(self.path.split("?")[0])
            body = json.dumps(found or {"kind": "Status", "reason": "NotFound", "code": 404}).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """No line on standard error."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield written(
                folder,
                "kubeconfig",
                f"clusters: [{{name: east, cluster: {{server: 'http://127.0.0.1:{server.server_port}'}}}}]\n"
                "contexts: [{name: east, context: {cluster: east}}]\n"
                "current-context: east\n",
            )
        finally:
            server.shutdown()
