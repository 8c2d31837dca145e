"""Runs an asynchronous program in a thread beside the program's own work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def beside(program: Callable[[Callable[[T], None]], Coroutine[None, None, None]]) -> Iterator[T]:
    """Run the program in a thread until the block ends; then it is cancelled. The program calls its argument once it is
    ready, with the value that this yields. Raises what the program raises before it is ready."""
    running: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = Future()
    ready: Future[T] = Future()

    async def run() -> None:
        task = asyncio.create_task(program(ready.set_result))
        running.set_result((asyncio.get_running_loop(), task))
        try:
            await task
        except asyncio.CancelledError:
            return
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    thread = threading.Thread(target=lambda: asyncio.run(run()), name="beside", daemon=True)
    thread.start()
    loop, task = running.result()
    try:
        yield ready.result()
    finally:
        if thread.is_alive():
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
