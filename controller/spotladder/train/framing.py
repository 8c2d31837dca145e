"""The framed connection between two ranks: addresses, mutual authentication and message framing.

1. A frame is its length in 4 bytes, its code in 16 bytes, and one JSON object. The frames of the handshake have no
   code; they are short and must arrive in a short time, since any process that reaches the port may send them.
2. The code is an HMAC over the number of the frame and its content. Its key is derived from the token and from the
   fresh challenges of both ends, and differs for the two directions: nothing can be inserted, changed or repeated.
3. The peer's JSON is not trusted: numbers that are not finite and deep nesting are invalid frames.
"""

from __future__ import annotations

import hmac
import json
import math
import resource
import socket
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from spotladder.train.interruption import RankLost

HANDSHAKE_TIMEOUT = 60.0
"""Seconds for which a rank waits for rank 0's side of the handshake: it may be importing a framework, which can hold
the interpreter for seconds."""

STRANGER_TIMEOUT = 5.0
"""Seconds in which a new connection must prove to rank 0 that it is a rank."""

STRANGER_LIMIT = 4096
"""Maximum size in bytes of a frame from a connection that has not proved that it has the token."""
CONNECT_TIMEOUT = 3.0
BACKLOG = 4096
"""Number of connections that wait to be accepted, if the system allows as many: all ranks connect at once, and a
connection that finds no room is repeated only after seconds."""

OTHER_FILES = 1024
"""Number of open files that a program may need beside its connections to other ranks."""
FRAME_LIMIT = 256 * 1024 * 1024
"""Maximum size of one frame of a rank in bytes: a list of a million files fits."""

CODE_SIZE = 16
"""Size of a frame's code in bytes."""

_SILENCE = (
    ("TCP_KEEPIDLE", 3),
    ("TCP_KEEPALIVE", 3),  # the name of TCP_KEEPIDLE on macOS
    ("TCP_KEEPINTVL", 1),
    ("TCP_KEEPCNT", 7),
    ("TCP_USER_TIMEOUT", 10_000),
)
"""A machine that loses power does not close its connections: a peer that answers no keepalive, or acknowledges nothing
that was sent, for 10 s is lost. No keepalives are sent while sent data is not acknowledged, and the kernel alone gives
up after many minutes; where Linux has the option, it replaces the number of keepalives. The kernel answers both, so a
process that is busy is not silent, unless it reads nothing for 10 s while its buffer is full."""


@dataclass(frozen=True, slots=True)
class Address:
    """Rank 0's address and token, stored beside the checkpoints: any process that can read them may join."""

    hosts: tuple[str, ...]
    port: int
    token: str

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> Address:
        return cls(tuple(raw["hosts"]), int(raw["port"]), str(raw["token"]))


class FramedConnection:
    """Frames over one connection. Any thread may send; one thread receives."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._sending = threading.Lock()
        self._keys: tuple[bytes, bytes] | None = None
        self._sent = self._received = 0
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _SILENCE:
            if hasattr(socket, option):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)

    def timeout(self, seconds: float | None) -> None:
        self._socket.settimeout(seconds)

    def secure(self, sending: bytes, receiving: bytes, *, last: dict[str, Any] | None = None) -> None:
        """From now on frames have codes, made with these keys (see `keys_of`). `last` is sent without one before."""
        if last is not None:
            self.send(last)
        self._keys = sending, receiving

    def send(self, frame: dict[str, Any]) -> None:
        data = json.dumps(frame, separators=(",", ":")).encode()
        with self._sending:
            code = code_of(self._keys[0], self._sent, data) if self._keys else b""
            self._sent += bool(self._keys)
            self._socket.sendall(struct.pack(">I", len(data)) + code + data)

    def receive(self, limit: int = FRAME_LIMIT, until: float | None = None) -> dict[str, Any] | None:
        """The next frame; None at the end of the connection. It must be complete at the time `until` of
        `time.monotonic`. Raises ValueError for an invalid frame or one of more than `limit` bytes."""
        head = self._exactly(4, until)
        if head is None:
            return None
        (length,) = struct.unpack(">I", head)
        if length > limit:
            raise ValueError(
                f"a frame of {length:,} bytes, at most {limit:,} are accepted (no setting raises this limit)"
            )
        code = self._exactly(CODE_SIZE, until) if self._keys else b""
        data = self._exactly(length, until)
        if code is None or data is None:
            return None
        if self._keys:
            if not hmac.compare_digest(code, code_of(self._keys[1], self._received, data)):
                raise ValueError("a frame that was not sent by this rank")
            self._received += 1
        return _parsed(data)

    def close(self, last: dict[str, Any] | None = None) -> None:
        with suppress(OSError):
            if last is not None:
                self.send(last)
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _exactly(self, count: int, until: float | None) -> bytes | None:
        parts = bytearray()
        while len(parts) < count:
            if until is not None:  # Without time left, what has already arrived is still read.
                self._socket.settimeout(max(0.001, until - time.monotonic()))
            part = self._socket.recv(min(count - len(parts), 1 << 20))
            if not part:
                return None
            parts += part
        return bytes(parts)


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        frame = json.loads(data, parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise ValueError("a frame that is nested too deeply") from None
    if not isinstance(frame, dict):
        raise ValueError("a frame that is not a JSON object")  # noqa: TRY004 – the peer's value, not our type
    return frame


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"a frame with the number {text[:20]}")
    return value


def code_of(key: bytes, number: int, data: bytes) -> bytes:
    """The code of a frame, the `number`-th from 0 in its direction."""
    return hmac.digest(key, number.to_bytes(8, "big") + data, "sha256")[:CODE_SIZE]


def keys_of(token: str, asked: str, answered: str, rank: int) -> tuple[bytes, bytes]:
    """The keys of the frames to rank 0 and from rank 0, after a handshake with rank 0's challenge `asked` and the other
    rank's challenge `answered`."""
    about = f"{asked} {answered} rank {rank}"
    to, back = (hmac.digest(token.encode(), f"{about} {which}".encode(), "sha256") for which in ("to", "from"))
    return to, back


def proof_of(token: str, challenge: str, who: str) -> str:
    """The response to this challenge; computing it requires the token."""
    return hmac.new(token.encode(), f"{challenge} {who}".encode(), "sha256").hexdigest()


def listen() -> socket.socket:
    """A socket that listens on all addresses of this machine, at a port that the system chooses."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
    return socket.create_server(("", 0), backlog=BACKLOG)


def allow_connections(count: int) -> None:
    """Raise the limit of open files of this process, if it is too low for this number of connections and the system
    allows it."""
    wanted = count + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def own_hosts() -> tuple[str, ...]:
    """The addresses of this machine; the first is the one that other machines most likely reach. Sends nothing."""
    found = []
    for family, outside in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((outside, 9))
            found.append(str(probe.getsockname()[0]))
    return (*dict.fromkeys(found), "127.0.0.1")


def connect(address: Address) -> socket.socket:
    """A connection to the first host that answers. Raises RankLost if none answers."""
    failure: OSError | None = None
    for host in address.hosts:
        try:
            return socket.create_connection((host, address.port), timeout=CONNECT_TIMEOUT)
        except OSError as error:
            failure = error
    raise RankLost(f"rank 0 cannot be reached at {', '.join(address.hosts)} port {address.port}: {failure}")
