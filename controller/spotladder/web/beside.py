"""The page beside a run."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path

from spotladder.places.this_machine import ThisMachine
from spotladder.web import HOST, PORT
from spotladder.web.server import serving


async def serve_runs(root: Path, ready: Callable[[str], None]) -> None:
    """Serve the page over the runs below this state folder until cancelled. `ready` gets its address, at `PORT` or, if
    that is in use, at any free port."""
    try:
        await _serve(root, PORT, ready)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        await _serve(root, 0, ready)


async def _serve(root: Path, port: int, ready: Callable[[str], None]) -> None:
    async with serving([ThisMachine(root)], HOST, port) as chosen:
        ready(f"http://localhost:{chosen}")
        await asyncio.Event().wait()
