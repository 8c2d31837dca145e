"""The nodes of the Ray cluster: which ones are silent, and how many have room. Ray is not started."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from spotladder.train.raynodes import HEAD, LONGEST_SILENCE, SilentNodes, places
from tests.train.nodes import node


def test_only_live_worker_nodes_with_room_that_are_not_excluded_count() -> None:
    nodes = [
        node("a"),
        node("b"),
        node("dead", alive=False),
        node("excluded"),
        node("small", CPU=1.0),
        node("head", **cast("Any", {"CPU": 8.0, HEAD: 1.0})),
    ]
    assert places(nodes, {"CPU": 2.0}, {"excluded"}) == 2
    assert places(nodes, {"CPU": 2.0, "GPU": 1.0}, {}) == 0


class Silence:
    """`SilentNodes` by a stepped clock, with one node that answers and one that does not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answering: socket.socket, silent: socket.socket) -> None:
        self.now = 1000.0
        self.nodes = SilentNodes()
        self.answers, self.refuses = _address(answering), _address(silent)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def ask(self, after: float, *, answers: bool = False, **more: Any) -> dict[str, float]:
        """The silent nodes, after this time; `answers`: the node "lost" answers this time."""
        self.now += after
        lost = {**node("lost", **more), **(self.answers if answers else self.refuses)}
        return self.nodes.ask([{**node("live"), **self.answers}, lost])


def _address(listener: socket.socket) -> dict[str, Any]:
    address, port = listener.getsockname()
    return {"NodeManagerAddress": address, "NodeManagerPort": port}


@contextmanager
def _sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # It does not listen, so that it refuses connections.
        yield server, silent


@pytest.fixture
def silence(monkeypatch: pytest.MonkeyPatch) -> Iterator[Silence]:
    with _sockets() as pair:
        yield Silence(monkeypatch, *pair)


def test_a_node_is_silent_since_its_first_refused_connection(silence: Silence) -> None:
    assert silence.ask(0) == {"lost": 0.0}
    assert silence.ask(1.5) == {"lost": 1.5}
    assert silence.ask(1, answers=True) == {}
    assert silence.ask(1) == {"lost": 0.0}


def test_dead_nodes_and_the_head_are_not_asked(silence: Silence) -> None:
    assert silence.ask(0, alive=False) == silence.ask(0, **cast("Any", {HEAD: 1.0})) == {}
    assert silence.nodes.ask([]) == {}


def test_a_node_is_lost_after_its_longest_silence(silence: Silence) -> None:
    lost = {**node("lost"), **silence.refuses}
    assert silence.nodes.lost([lost]) == set()
    silence.now += LONGEST_SILENCE - 0.01
    assert silence.nodes.lost([lost]) == set()
    silence.now += 0.01
    assert silence.nodes.lost([lost]) == {"lost"}
