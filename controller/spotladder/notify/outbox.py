"""Delivers messages: many notices in one message, each receiver on its own, with retries."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence

from spotladder.backoff import delay
from spotladder.notify.messages import Message
from spotladder.notify.notices import Notice
from spotladder.notify.targets import Target, Undelivered

WINDOW = 10.0
"""Seconds after a notice in which further notices join its message."""

TRIES = 8
"""Number of times that a message is sent to a receiver before it is given up."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 120.0
"""Seconds between two tries, at first and at last."""

LAST_SECONDS = 20.0
"""Seconds that the last messages may take."""

MAX_WAITING = 100
"""Number of messages that wait for one receiver."""


class Outbox:
    """Messages to these receivers. `given_up` is called with a sentence about each message that is not delivered."""

    def __init__(self, targets: Sequence[Target], given_up: Callable[[str], None]) -> None:
        self._given_up = given_up
        self._waiting = [(target, asyncio.Queue[Message](MAX_WAITING)) for target in targets]
        self._collected: list[Notice] = []
        self._any = asyncio.Event()

    def add(self, notices: Sequence[Notice]) -> None:
        """Send these notices with the next message to each receiver."""
        self._collected += notices
        if self._collected:
            self._any.set()

    async def run(self) -> None:
        """Send until cancelled."""
        async with asyncio.TaskGroup() as group:
            for target, waiting in self._waiting:
                group.create_task(self._deliver(target, waiting))
            while True:
                await self._any.wait()
                await asyncio.sleep(WINDOW)
                self._post()

    async def flush(self) -> None:
        """Send what is collected, and return when each receiver has taken it or was given up. While `run` is active."""
        self._post()
        await asyncio.gather(*(waiting.join() for _, waiting in self._waiting))

    async def finish(self) -> None:
        """Flush within `LAST_SECONDS`, also in a task that was cancelled; messages that take longer are given up."""
        # Not `asyncio.timeout`: in a task that was cancelled, it raises no TimeoutError before Python 3.11.3.
        last = asyncio.create_task(self.flush())
        _, late = await asyncio.wait([last], timeout=LAST_SECONDS)
        if late:
            last.cancel()
            self._given_up(f"the last messages were not delivered within {LAST_SECONDS:g} s")

    def _post(self) -> None:
        if not self._collected:
            return
        message = Message(tuple(self._collected))
        self._collected = []
        self._any.clear()
        for target, waiting in self._waiting:
            try:
                waiting.put_nowait(message)
            except asyncio.QueueFull:
                self._given_up(f"{target.name}: {MAX_WAITING} messages wait already; lost: {message.title}")

    async def _deliver(self, target: Target, waiting: asyncio.Queue[Message]) -> None:
        while True:
            message = await waiting.get()
            try:
                await self._try(target, message)
            finally:
                waiting.task_done()

    async def _try(self, target: Target, message: Message) -> None:
        why = ""
        for failures in range(1, TRIES + 1):
            try:
                return await target.send(message)
            except Undelivered as error:
                why = str(error)
            if failures < TRIES:
                await asyncio.sleep(delay(FIRST_PAUSE, LONGEST_PAUSE, failures, random.random()))  # noqa: S311
        self._given_up(f"{target.name}: {why}, {TRIES} times; lost: {message.title}")
