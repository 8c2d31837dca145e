"""Blocking calls that may take long. asyncio's own threads are few: others, such as those that make the tokens of
member clusters, would wait for one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar, cast

from spotladder.errors import described

T = TypeVar("T")


def threaded(work: Callable[[], T]) -> asyncio.Future[T]:
    """The result of `work` in a daemon thread of its own, which does not delay the end of the process. Raises
    RuntimeError if the process may have no further thread."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def resolve(value: T | None, error: Exception | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(cast("T", value))

    def run() -> None:
        value: T | None = None
        error: Exception | None = None
        try:
            value = work()
        except Exception as caught:  # noqa: BLE001 – raised to the caller that awaits the result
            error = caught
        except BaseException as caught:  # noqa: BLE001 – on the event loop it would end the controller
            error = RuntimeError(described(caught))
        with suppress(RuntimeError):  # The loop is closed.
            loop.call_soon_threadsafe(resolve, value, error)

    threading.Thread(target=run, name="spotladder-work", daemon=True).start()
    return future
