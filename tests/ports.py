"""Ports of this machine on which a test starts a server."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack


def free_port(count: int = 1) -> int:
    """The first of `count` consecutive ports on which nothing listens.

    They lie below the ports that Linux and macOS give to outgoing connections, and above those of Ray's workers. A
    port from the system itself could become that of a connection before the server starts.
    """
    while True:
        first = random.randrange(20_000, 32_000)
        try:
            with ExitStack() as probes:
                for port in range(first, first + count):
                    probes.enter_context(socket.socket()).bind(("", port))
        except OSError:
            continue
        return first
