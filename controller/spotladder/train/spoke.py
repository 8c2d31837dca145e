"""The end of the channel between the ranks (see `channel`) of every rank but rank 0."""

from __future__ import annotations

import hmac
import logging
import secrets
import threading
from contextlib import suppress
from typing import Any

from spotladder.train.agreement import Agreement
from spotladder.train.channel import Decide
from spotladder.train.framing import (
    HANDSHAKE_TIMEOUT,
    STRANGER_LIMIT,
    Address,
    FramedConnection,
    connect,
    keys_of,
    proof_of,
)
from spotladder.train.interruption import RankLost
from spotladder.train.rank_errors import raised

_log = logging.getLogger("spotladder.train")


class Spoke:
    """The end of every other rank: one connection to rank 0."""

    def __init__(self, address: Address, rank: int, size: int, agreement: Agreement, *, group: str = "") -> None:
        self._agreement = agreement
        self._rank = rank
        self._changed = threading.Condition()
        self._decided: dict[str, dict[str, Any]] = {}
        self._lost: RankLost | None = None
        self._closed = False
        self._link = FramedConnection(connect(address))
        try:
            self._introduce(address.token, size, group)
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._link.close()
            raise RankLost(f"rank 0 ended the connection of rank {rank}: {error!r}") from None
        except RankLost:
            self._link.close()
            raise
        threading.Thread(target=self._listen, name="spotladder-spoke", daemon=True).start()

    def exchange(self, topic: str, mine: Any, decide: Decide, *, patient: bool = False) -> Any:  # noqa: ARG002 – for rank 0
        try:
            self._link.send({"say": "give", "topic": topic, "value": mine})
        except OSError:
            self._lose(RankLost("rank 0 is lost"))
        return self.announced(topic)

    def announce(self, topic: str, value: Any) -> None:
        raise AssertionError(f"rank {self._rank} is not rank 0 and cannot announce {topic!r} ({value!r})")

    def announced(self, topic: str) -> Any:
        with self._changed:
            self._changed.wait_for(lambda: topic in self._decided or self._lost is not None)
            if topic not in self._decided:
                raise self._lost or RankLost("rank 0 is lost")
            decided = self._decided.pop(topic)
        if "error" in decided:
            raise raised(decided["error"])
        return decided["value"]

    def agree(self, step: int, *, stop: bool, leaving: tuple[str, ...] = ()) -> None:
        what = f"step {step}, stop {stop}, leaving {leaving}"
        raise AssertionError(f"rank {self._rank} is not rank 0 and cannot agree on a commit ({what})")

    def report(self, notice: dict[str, Any]) -> None:
        with suppress(OSError):
            self._link.send({"say": "notice", "notice": notice})

    @property
    def connected(self) -> bool:
        return self._lost is None

    def close(self) -> None:
        self._closed = True
        self._link.close({"say": "bye"})

    def _introduce(self, token: str, size: int, group: str) -> None:
        self._link.timeout(HANDSHAKE_TIMEOUT)
        challenge = secrets.token_hex(16)
        asked = str((self._link.receive(STRANGER_LIMIT) or {})["challenge"])
        proof = proof_of(token, asked, f"rank {self._rank}")
        self._link.send(
            {"rank": self._rank, "size": size, "group": group, "proof": proof, "challenge": challenge},
        )
        welcome = self._link.receive(STRANGER_LIMIT)
        if welcome is None or not hmac.compare_digest(str(welcome["proof"]), proof_of(token, challenge, "hub")):
            raise RankLost("the process at the address of rank 0 is not rank 0 of this attempt")
        if welcome["refusal"]:
            raise RankLost(f"rank 0 refused rank {self._rank}: {welcome['refusal']}")
        self._link.secure(*keys_of(token, asked, challenge, self._rank))
        self._link.timeout(None)

    def _listen(self) -> None:
        try:
            while (frame := self._link.receive()) is not None:
                match frame["say"]:
                    case "hold":
                        self._link.send({"say": "held", "asked": self._agreement.hold()})
                    case "agreed":
                        leaving = tuple(map(str, frame["leaving"]))
                        self._agreement.set_step(int(frame["step"]), bool(frame["stop"]), leaving)
                    case "decided":
                        with self._changed:
                            self._decided[frame["topic"]] = frame
                            self._changed.notify_all()
                    case "bye":
                        self._lose(RankLost("rank 0 has left"))
                        return
                    case "lost":
                        self._lose(RankLost(frame["message"]))
                        return
        except OSError:
            pass  # Handle it like a connection that ended.
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            _log.warning("rank %d ends its connection to rank 0, which sent an invalid frame: %r", self._rank, error)
            self._link.close()
        self._lose(RankLost("rank 0 is lost: the connection to it ended"))

    def _lose(self, lost: RankLost) -> None:
        with self._changed:
            self._lost = self._lost or lost
            self._changed.notify_all()
        if not self._closed:
            self._agreement.fail(self._lost)
