"""moto's S3 server, whose conditional writes are atomic as those of S3 are.

Run as a program, it answers with 503 after a line `refuse` on its standard input, until another line.

moto looks whether an object exists and creates it in two steps, so that two threads of it can both create it.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

from moto.server import ThreadedMotoServer

App = Callable[[dict[str, Any], Any], Iterable[bytes]]

refuses = threading.Event()
"""While it is set, every request is answered with 503."""


def started(address: str) -> tuple[ThreadedMotoServer, str]:
    """A server at any free port of this address, and its endpoint."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address=address, port=0, verbose=False)
    server.start()
    server._server.app = _atomic(server._server.app)  # type: ignore[union-attr]
    return server, f"http://{address}:{server.get_host_and_port()[1]}"


def _atomic(app: App) -> App:
    """The application, one conditional write at a time. The lock is held after the body has arrived."""
    lock = threading.Lock()

    def answer(environment: dict[str, Any], start: Any) -> Iterable[bytes]:
        if refuses.is_set():
            start("503 Service Unavailable", [("Content-Length", "0")])
            return []
        if "HTTP_IF_NONE_MATCH" not in environment or environment["REQUEST_METHOD"] == "GET":
            return app(environment, start)
        length = int(environment.get("CONTENT_LENGTH") or 0)
        environment["wsgi.input"] = BytesIO(environment["wsgi.input"].read(length))
        with lock:
            return list(app(environment, start))

    return answer


if __name__ == "__main__":
    server, endpoint = started(sys.argv[1])
    print(endpoint, flush=True)
    for line in sys.stdin:  # until the tests end, however they end
        (refuses.set if line == "refuse\n" else refuses.clear)()
    server.stop()
