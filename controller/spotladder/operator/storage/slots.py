"""Slots for calls in threads, shared fairly by the namespaces whose jobs need them.

1. A free slot goes to the waiting namespace that has the fewest. A namespace has at most its share.
2. A call that is overdue gives its slot back, so that a store without answers does not stop the others; a thread cannot
   be ended. It stays part of its namespace's share until it ends.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque


class Slots:
    """`total` slots, of which one namespace has at most `share`. Used on one event loop."""

    def __init__(self, total: int, share: int) -> None:
        self._free = total
        self._share = share
        self._used: Counter[str] = Counter()
        self._alive: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[Slot]]] = {}

    async def take(self, namespace: str) -> Slot:
        """A slot for one call; end it when the call has ended."""
        turn: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(namespace, deque()).append(turn)
        self._assign()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                turn.result().end()
            raise

    def release(self, namespace: str, *, used: bool, alive: bool) -> None:
        """Give back a slot, the part of the namespace's share, or both."""
        self._free += used
        self._used[namespace] -= used
        self._alive[namespace] -= alive
        if not self._alive[namespace]:
            del self._used[namespace], self._alive[namespace]
        self._assign()

    def _assign(self) -> None:
        while self._free and (ready := [one for one in list(self._waiting) if self._is_ready(one)]):
            namespace = min(ready, key=lambda one: self._used[one])
            turns = self._waiting.pop(namespace)
            turn = turns.popleft()
            if turns:
                self._waiting[namespace] = turns  # The last one from now on.
            self._free -= 1
            self._used[namespace] += 1
            self._alive[namespace] += 1
            turn.set_result(Slot(self, namespace))

    def _is_ready(self, namespace: str) -> bool:
        turns = self._waiting[namespace]
        while turns and turns[0].done():  # Its call was cancelled.
            turns.popleft()
        if not turns:
            del self._waiting[namespace]
        return bool(turns) and self._alive[namespace] < self._share


class Slot:
    """The slot of one call."""

    def __init__(self, slots: Slots, namespace: str) -> None:
        self._slots = slots
        self._namespace = namespace
        self._used = True

    def overdue(self) -> None:
        """Give the slot back while the call goes on."""
        used, self._used = self._used, False
        self._slots.release(self._namespace, used=used, alive=False)

    def end(self) -> None:
        """The call has ended. Call this once."""
        used, self._used = self._used, False
        self._slots.release(self._namespace, used=used, alive=True)
