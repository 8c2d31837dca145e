"""Repeats background writes to a checkpoint store that does not answer, or while the API server, which has its
credentials, does not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from spotladder.checkpoints.store import StoreRefused
from spotladder.clusters.clock import Clock
from spotladder.clusters.errors import ClusterUnreachable
from spotladder.core.model import Seconds
from spotladder.errors import StoreUnavailable
from spotladder.operator.storage.commit_logs import LogAddress

Address = Callable[[], Awaitable[LogAddress]]
"""The address of a job's log with the credentials of this moment."""

RETRY_INTERVALS: tuple[Seconds, ...] = (5.0, 15.0, 60.0, 300.0)
"""Delays before further tries."""

T = TypeVar("T")


async def retried(clock: Clock, address: Address, write: Callable[[LogAddress], Awaitable[T]]) -> T:
    """The result of the write. Raises the error of the last try; refused writes are not tried again."""
    for pause in RETRY_INTERVALS:
        try:
            return await write(await address())
        except StoreRefused:
            raise
        except (StoreUnavailable, ClusterUnreachable):
            await clock.sleep(pause)
    return await write(await address())
