"""Rank 0's end of the channel between the ranks (see `channel`)."""

from __future__ import annotations

import errno
import hmac
import logging
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from spotladder.train.agreement import Agreement
from spotladder.train.channel import Decide
from spotladder.train.framing import (
    STRANGER_LIMIT,
    STRANGER_TIMEOUT,
    Address,
    FramedConnection,
    allow_connections,
    keys_of,
    listen,
    own_hosts,
    proof_of,
)
from spotladder.train.interruption import RankLost
from spotladder.train.rank_errors import described

_log = logging.getLogger("spotladder.train")

ACCEPT_RETRY_INTERVAL = 1.0
"""Seconds until rank 0 accepts connections again after an error, such as too many open files."""

MAX_STRANGERS = 64
"""Number of connections, beyond two of each rank, that may be in the handshake. Another one ends the oldest."""

_TRANSIENT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.ECONNABORTED})


class Hub:
    """Rank 0's end: it listens and has one connection for each other rank."""

    def __init__(
        self,
        size: int,
        agreement: Agreement,
        *,
        group: str = "",
        heard: Callable[[dict[str, Any]], None] = lambda _: None,
        timeout: float = 600.0,
    ) -> None:
        self._size = size
        self._agreement = agreement
        self._group = group
        self._heard = heard
        self._timeout = timeout
        self._token = secrets.token_hex(32)
        self._changed = threading.Condition()
        self._peers: dict[int, FramedConnection] = {}
        self._given: dict[str, dict[int, Any]] = {}
        self._held: dict[int, int] = {}
        self._lost: RankLost | None = None
        self._closed = False
        self._strangers: dict[FramedConnection, None] = {}
        self._refused = 0
        allow_connections(size)
        self._listener = listen()
        self.address = Address(own_hosts(), self._listener.getsockname()[1], self._token)
        threading.Thread(target=self._accept, name="spotladder-hub", daemon=True).start()

    def exchange(self, topic: str, mine: Any, decide: Decide, *, patient: bool = False) -> Any:
        timeout = None if patient else self._timeout
        self._wait(lambda: len(self._given.get(topic, {})) == self._size - 1, f"'{topic}'", timeout)
        with self._changed:
            given = self._given.pop(topic, {})
        try:
            value = decide([mine, *(given[rank] for rank in range(1, self._size))])
        except Exception as error:
            self._send_all({"say": "decided", "topic": topic, "error": described(error)})
            raise
        self._send_all({"say": "decided", "topic": topic, "value": value})
        return value

    def announce(self, topic: str, value: Any) -> None:
        self._send_all({"say": "decided", "topic": topic, "value": value})

    def announced(self, topic: str) -> Any:
        raise AssertionError(f"rank 0 announces {topic!r} itself")

    def agree(self, step: int, *, stop: bool, leaving: tuple[str, ...] = ()) -> None:
        with self._changed:
            self._held.clear()
        self.complete()
        self._send_all({"say": "hold"})
        self._wait(lambda: len(self._held) == self._size - 1, "the step of the next commit", self._timeout)
        with self._changed:
            agreed = max([step, *self._held.values()]) + 1
        self._send_all({"say": "agreed", "step": agreed, "stop": stop, "leaving": leaving})
        self._agreement.set_step(agreed, stop, leaving)

    def complete(self) -> None:
        """Wait until every rank is connected. Raises RankLost.

        Rank 0 must not continue alone. The next call of its program may wait for the other ranks while it holds the
        interpreter (TensorFlow's MultiWorkerMirroredStrategy does), and then no other rank could join.
        """
        self._wait(lambda: len(self._peers) == self._size - 1, "joining", self._timeout)

    def report(self, notice: dict[str, Any]) -> None:
        self._heard(notice)

    @property
    def connected(self) -> bool:
        return self._lost is None

    def close(self) -> None:
        with self._changed:
            self._closed = True
            peers = list(self._peers.values())
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for peer in peers:
            peer.close({"say": "bye"})

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._listener.accept()
            except OSError as error:
                if self._closed or error.errno not in _TRANSIENT:
                    return
                _log.warning("rank 0 cannot accept a connection: %s", error)
                time.sleep(ACCEPT_RETRY_INTERVAL)
                continue
            with suppress(OSError):  # It has ended already.
                link = FramedConnection(connection)
                self._make_room(link)
                threading.Thread(target=self._serve, args=(link,), name="spotladder-peer", daemon=True).start()

    def _make_room(self, link: FramedConnection) -> None:
        """Note a new connection; ends the oldest one in the handshake if there are too many."""
        with self._changed:
            full = len(self._strangers) >= 2 * self._size + MAX_STRANGERS
            oldest = next(iter(self._strangers)) if full else None
            if oldest is not None:
                del self._strangers[oldest]
            self._strangers[link] = None
        if oldest is not None:
            oldest.close()

    def _serve(self, link: FramedConnection) -> None:
        rank = self._admit(link)
        with self._changed:
            self._strangers.pop(link, None)
        if rank is None:
            link.close()
            return
        try:
            while (frame := link.receive()) is not None:
                if not self._take(rank, frame):
                    return
        except OSError:
            pass  # Handle it like a connection that ended.
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            _log.warning("rank 0 ends the connection of rank %d, which sent an invalid frame: %r", rank, error)
            link.close()
        self._lose(rank)

    def _refuse(self, error: Exception) -> None:
        """Log that a connection was refused: of many, the first, the second, the fourth and so on."""
        with self._changed:
            self._refused += 1
            count = self._refused
        if count.bit_count() == 1:
            _log.warning("rank 0 refused a connection that is not of a rank (%d so far): %r", count, error)

    def _admit(self, link: FramedConnection) -> int | None:
        """Authenticate a new connection; returns its rank, or None if it is refused."""
        challenge = secrets.token_hex(16)
        until = time.monotonic() + STRANGER_TIMEOUT
        try:
            link.timeout(STRANGER_TIMEOUT)
            link.send({"challenge": challenge})
            hello = link.receive(STRANGER_LIMIT, until) or {}
            rank, answered = int(hello["rank"]), str(hello["challenge"])
            if not hmac.compare_digest(str(hello["proof"]), proof_of(self._token, challenge, f"rank {rank}")):
                raise ValueError("it does not know the token")  # noqa: TRY301 – logged below
            refusal = ""
            welcome = {"proof": proof_of(self._token, answered, "hub")}
            with self._changed:
                if self._closed or not 0 < rank < self._size or rank in self._peers:
                    refusal = "no such rank, or this rank has already joined"
                elif (hello["size"], hello["group"]) != (self._size, self._group):
                    refusal = "this process belongs to another group"
                to_hub, to_rank = keys_of(self._token, challenge, answered, rank)
                # Under the lock, so that no other frame precedes the answer, which fits into any socket's buffer.
                link.secure(to_rank, to_hub, last={**welcome, "refusal": refusal})
                if not refusal:
                    self._peers[rank] = link
            link.timeout(None)
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._refuse(error)
            return None
        if refusal:
            return None
        with self._changed:
            self._changed.notify_all()
        return rank

    def _take(self, rank: int, frame: dict[str, Any]) -> bool:
        """Handle one frame; returns False for the last frame of the connection."""
        match frame["say"]:
            case "give":
                with self._changed:
                    self._given.setdefault(frame["topic"], {})[rank] = frame["value"]
                    self._changed.notify_all()
            case "held":
                with self._changed:
                    self._held[rank] = int(frame["asked"])
                    self._changed.notify_all()
            case "notice":
                self._heard(frame["notice"])
            case "bye":
                with self._changed:
                    self._peers.pop(rank, None)
                    self._lost = self._lost or RankLost(f"rank {rank} left while this exchange was still open")
                    self._changed.notify_all()
                return False
        return True

    def _lose(self, rank: int) -> None:
        with self._changed:
            if self._closed or rank not in self._peers:
                return
            self._lost = RankLost(f"rank {rank} is lost: its connection to rank 0 ended")
            peers = list(self._peers.values())
            self._peers.clear()
            self._changed.notify_all()
        for peer in peers:
            peer.close({"say": "lost", "message": str(self._lost)})

    def _wait(self, ready: Callable[[], bool], what: str, timeout: float | None) -> None:
        with self._changed:
            self._changed.wait_for(lambda: ready() or self._lost is not None, timeout)
            if ready():
                return
            if self._lost is not None:
                raise self._lost
            missing = sorted(set(range(1, self._size)) - self._peers.keys())
            raise RankLost(
                f"{what}: not all ranks answered within {self._timeout:.0f} s"
                + (f" (never seen: {missing}; does every rank call train.current()?)" if missing else "")
            )

    def _send_all(self, frame: dict[str, Any]) -> None:
        with self._changed:
            peers = list(self._peers.items())
        for rank, peer in peers:
            try:
                peer.send(frame)
            except OSError:
                self._lose(rank)
