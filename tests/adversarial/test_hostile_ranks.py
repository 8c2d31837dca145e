"""Any pod that reaches rank 0's port may connect to it. It gets neither memory nor time, and no rank is lost by it."""

from __future__ import annotations

import json
import logging
import resource
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from spotladder.train import hub as hub_module
from spotladder.train.agreement import Agreement
from spotladder.train.framing import CODE_SIZE, STRANGER_LIMIT, FramedConnection, code_of
from spotladder.train.hub import MAX_STRANGERS, Hub
from spotladder.train.interruption import RankLost
from spotladder.train.spoke import Spoke
from tests.waiting import until


@contextmanager
def pair() -> Iterator[tuple[Hub, Spoke]]:
    hub = Hub(2, Agreement(), timeout=60)
    spoke = Spoke(hub.address, 1, 2, Agreement())
    until(lambda: 1 in hub._peers)
    try:
        yield hub, spoke
    finally:
        spoke.close()
        hub.close()


def stranger(hub: Hub) -> socket.socket:
    return socket.create_connection(("127.0.0.1", hub.address.port), timeout=60)


def received(connection: socket.socket) -> bytes:
    """All bytes until the other end closes the connection."""
    parts = bytearray()
    try:
        while part := connection.recv(1 << 16):
            parts += part
    except ConnectionError:
        pass
    return bytes(parts)


def works(hub: Hub, spoke: Spoke, topic: str) -> None:
    """The honest rank and rank 0 still exchange values."""
    given = threading.Thread(target=spoke.exchange, args=(topic, 2, sum))
    given.start()
    assert hub.exchange(topic, 40, sum) == 42
    given.join()


@pytest.mark.parametrize("length", [STRANGER_LIMIT + 1, 256 << 20, 0xFFFFFFFF])
def test_a_large_frame_before_authentication_ends_its_connection_at_once(length: int) -> None:
    with pair() as (hub, spoke):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(4):
            with stranger(hub) as connection:
                connection.sendall(struct.pack(">I", length))
                assert len(received(connection)) < 200
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 << 10
        works(hub, spoke, "t")


def test_a_stranger_that_sends_slowly_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "STRANGER_TIMEOUT", 0.2)
    with pair() as (hub, spoke), stranger(hub) as connection:
        connection.sendall(struct.pack(">I", STRANGER_LIMIT))
        over = threading.Event()

        def drip() -> None:  # Each byte comes within a timeout of the last one.
            try:
                while not over.wait(0.02):
                    connection.sendall(b" ")
            except OSError:
                pass

        dripping = threading.Thread(target=drip)
        dripping.start()
        received(connection)
        over.set()
        dripping.join()
        works(hub, spoke, "t")


def test_strangers_that_send_nothing_do_not_keep_ranks_out() -> None:
    hub = Hub(3, Agreement(), timeout=60)
    first = Spoke(hub.address, 1, 3, Agreement())
    strangers = []
    try:
        strangers = [stranger(hub) for _ in range(MAX_STRANGERS + 50)]
        received(strangers[0])
        second = Spoke(hub.address, 2, 3, Agreement())
        assert len(hub._strangers) <= MAX_STRANGERS + 6
        second.close()
    finally:
        for connection in strangers:
            connection.close()
        first.close()
        hub.close()


@pytest.mark.parametrize(
    "hello",
    [b'{"rank":1e999}', b"[" * 4000, b'{"rank":NaN}', b"[]", b"{}", b'{"rank":1,"challenge":"","proof":"\xc3\xa9"}'],
)
def test_an_invalid_introduction_is_refused_with_a_log_line(hello: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "spotladder.train"), pair() as (hub, spoke):
        with stranger(hub) as connection:
            connection.sendall(struct.pack(">I", len(hello)) + hello)
            received(connection)
        works(hub, spoke, "t")
    assert any("refused a connection that is not of a rank (1 so far)" in message for message in caplog.messages)


def sent_raw(link: FramedConnection, data: bytes, code: bytes | None = None) -> None:
    assert link._keys is not None
    right = code_of(link._keys[0], link._sent, data)
    link._sent += 1
    link._socket.sendall(struct.pack(">I", len(data)) + (right if code is None else code) + data)


INVALID: dict[str, Callable[[FramedConnection], None]] = {
    "infinite": lambda link: sent_raw(link, b'{"say":"held","asked":1e999}'),
    "no number": lambda link: sent_raw(link, b'{"say":"held","asked":NaN}'),
    "deep": lambda link: sent_raw(link, b'{"say":' + b"[" * 200_000 + b"]" * 200_000 + b"}"),
    "no fields": lambda link: sent_raw(link, b'{"say":"give"}'),
    "nothing to say": lambda link: sent_raw(link, b"{}"),
    "list as topic": lambda link: sent_raw(link, b'{"say":"give","topic":[],"value":1}'),
    "no object": lambda link: sent_raw(link, b"[1]"),
    "wrong code": lambda link: sent_raw(link, b'{"say":"held","asked":1}', bytes(CODE_SIZE)),
    "too long": lambda link: link._socket.sendall(b"\xff" * 4),
}


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_frame_of_a_rank_loses_that_rank_with_a_log_line(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "spotladder.train"), pair() as (hub, spoke):
        INVALID[name](spoke._link)
        with pytest.raises(RankLost, match="rank 1 is lost"):
            hub.exchange("t", 40, sum)
    assert any(message.startswith("rank 0 ends the connection of rank 1") for message in caplog.messages)


@pytest.mark.parametrize("name", sorted(INVALID.keys() - {"no fields", "list as topic"}))
def test_an_invalid_frame_of_rank_0_loses_the_channel_with_a_log_line(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "spotladder.train"), pair() as (hub, spoke):
        INVALID[name](hub._peers[1])
        with pytest.raises(RankLost, match="rank 0 is lost"):
            spoke.announced("t")
    assert any("ends its connection to rank 0, which sent an invalid frame" in line for line in caplog.messages)


def test_a_repeated_frame_is_not_accepted() -> None:
    with pair() as (hub, spoke):
        data = json.dumps({"say": "notice", "notice": {}}).encode()
        assert spoke._link._keys is not None
        frame: Any = struct.pack(">I", len(data)) + code_of(spoke._link._keys[0], 0, data) + data
        spoke._link._socket.sendall(frame + frame)
        with pytest.raises(RankLost, match="rank 1 is lost"):
            hub.exchange("t", 40, sum)
