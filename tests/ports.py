"""Ports of this machine on which a test starts a server."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

FIRST, LAST = 20_000, 32_000


def free_port(count: int = 1) -> int:
    """The first of `count` consecutive ports on which nothing listens; no other call gets them while this process runs.

    They lie below the ports that Linux and macOS give to outgoing connections, and above those of Ray's workers. A
    port from the system itself could become that of a connection before the server starts.
    """
    draw = random.SystemRandom()  # a library that seeds `random` would give two processes the same ports
    while True:
        first = draw.randrange(FIRST, LAST)
        if all(_is_free(port) and _reserve(port) for port in range(first, first + count)):
            return first


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def _reserve(port: int) -> bool:
    """Lock the port's file until this process ends: between the probe and the start of a server are seconds."""
    folder = Path(tempfile.gettempdir()) / f"spotladder-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    lock = os.open(folder / str(port), os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return False
    return True
