"""The page beside a run: served by a thread while the run's own thread goes on."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

from spotladder.web import HOST, PORT
from spotladder.web.server import serving
from spotladder.web.this_machine import ThisMachine


@contextmanager
def page_beside(root: Path) -> Iterator[str]:
    """Serve the page over the runs below this state folder; yields its address, at `PORT` or at any free port."""
    page = _Page(root)
    thread = threading.Thread(target=page.run, name="page", daemon=True)
    thread.start()
    try:
        yield f"http://localhost:{page.port.result()}"
    finally:
        page.end()
        thread.join()


class _Page:
    def __init__(self, root: Path) -> None:
        self.port: Future[int] = Future()
        self._root = root
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()

    def run(self) -> None:
        """Serve until `end`."""
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                runner.run(self._serve())
            except BaseException as error:
                if self.port.done():
                    raise
                self.port.set_exception(error)

    def end(self) -> None:
        """End the page, from another thread."""
        self._loop.call_soon_threadsafe(self._ended.set)

    async def _serve(self) -> None:
        try:
            await self._at(PORT)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            await self._at(0)

    async def _at(self, port: int) -> None:
        async with serving([ThisMachine(self._root)], HOST, port) as chosen:
            self.port.set_result(chosen)
            await self._ended.wait()
