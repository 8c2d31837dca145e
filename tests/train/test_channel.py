"""The channel between ranks, over real local sockets. Each rank is a thread."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from spotladder.errors import Fenced, SpotladderError
from spotladder.train.agreement import AgreedStep, Agreement
from spotladder.train.framing import FramedConnection
from spotladder.train.hub import Hub
from spotladder.train.interruption import RankLost
from spotladder.train.spoke import Spoke


class Star:
    """A hub and `size` - 1 spokes, each with its own `Agreement`."""

    def __init__(self, size: int) -> None:
        self.agreements = [Agreement() for _ in range(size)]
        self.heard: list[dict[str, Any]] = []
        self.hub = Hub(size, self.agreements[0], heard=self.heard.append, timeout=600)
        self.spokes = [Spoke(self.hub.address, rank, size, self.agreements[rank]) for rank in range(1, size)]
        self.pool = ThreadPoolExecutor(size)

    @property
    def ends(self) -> list[Hub | Spoke]:
        return [self.hub, *self.spokes]

    def on_all(self, do: Callable[[int, Hub | Spoke], Any]) -> list[Any]:
        """Run `do` on all ranks in parallel. Returns the result or the exception of each rank."""

        def guarded(rank: int) -> Any:
            try:
                return do(rank, self.ends[rank])
            except Exception as error:  # noqa: BLE001 – handed to the test
                return error

        return list(self.pool.map(guarded, range(len(self.ends))))

    def close(self) -> None:
        for end in reversed(self.ends):
            end.close()
        self.pool.shutdown()


@contextmanager
def star(size: int) -> Iterator[Star]:
    made = Star(size)
    try:
        yield made
    finally:
        made.close()


def _tens(topic: str, rank: int, end: Any) -> Any:
    return end.exchange(topic, rank * 10, sum)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_every_rank_gets_the_decision_made_from_the_values_of_all(size: int) -> None:
    with star(size) as ranks:
        for topic in ("a", "b"):
            exchange = partial(_tens, topic)
            seen = ranks.on_all(exchange)
            assert seen == [sum(range(0, size * 10, 10))] * size


def test_every_rank_raises_an_error_of_the_decision_with_its_type() -> None:
    def refuse(values: list[Any]) -> None:
        raise Fenced("attempt 3 owns the log")

    with star(3) as ranks:
        seen = ranks.on_all(lambda rank, end: end.exchange("t", None, refuse))
        assert [(type(error), str(error)) for error in seen] == [(Fenced, "attempt 3 owns the log")] * 3


def test_other_ranks_get_a_foreign_error_as_text() -> None:
    with star(2) as ranks:
        mine, other = ranks.on_all(lambda rank, end: end.exchange("t", None, lambda values: values[9]))
        assert isinstance(mine, IndexError)
        assert isinstance(other, SpotladderError)
        assert "on another rank: IndexError" in str(other)


def test_early_values_are_kept_until_their_topic() -> None:
    with star(2) as ranks:
        late = ranks.pool.submit(ranks.spokes[0].exchange, "second", 2, sum)
        first = ranks.pool.submit(ranks.hub.exchange, "second", 40, sum)
        assert (late.result(600), first.result(5)) == (42, 42)


def test_a_lost_rank_ends_the_exchange_on_all_ranks() -> None:
    with star(3) as ranks:
        waiting = [ranks.pool.submit(end.exchange, "t", None, len) for end in (ranks.hub, ranks.spokes[0])]
        ranks.spokes[1]._link._socket.shutdown(socket.SHUT_RDWR)
        for future in waiting:
            with pytest.raises(RankLost, match="rank 2 is lost"):
                future.result(600)


def test_a_rank_that_has_left_is_lost_only_at_the_next_exchange() -> None:
    with star(3) as ranks:
        ranks.on_all(lambda rank, end: end.exchange("last", rank, sum))
        ranks.spokes[1].close()
        with pytest.raises(RankLost, match="rank 2 left while this exchange was still open"):
            ranks.hub.exchange("more", None, len)


def test_the_agreed_step_is_after_the_last_step_of_every_rank() -> None:
    with star(3) as ranks:
        for agreement, asked in zip(ranks.agreements, (4, 4, 9), strict=True):
            agreement.answer(asked)
        ranks.hub.agree(4, stop=True)
        assert [agreement.answer(9) for agreement in ranks.agreements[:2]] == [None, None]
        assert [agreement.answer(10) for agreement in ranks.agreements] == [AgreedStep(10, stop=True)] * 3


def test_a_held_rank_waits_for_the_agreed_step() -> None:
    agreement = Agreement()
    assert agreement.hold() == 0
    answered = threading.Event()

    def ask() -> None:
        agreement.answer(1)
        answered.set()

    asking = threading.Thread(target=ask)
    asking.start()
    assert not answered.wait(0.05)
    agreement.set_step(7, stop=False)
    assert answered.wait(600)
    asking.join()


def test_a_held_rank_raises_when_rank_0_is_lost() -> None:
    with star(2) as ranks:
        ranks.on_all(partial(_tens, "met"))  # Rank 0 knows a peer some time after the peer knows rank 0.
        ranks.agreements[1].hold()
        asking = ranks.pool.submit(ranks.agreements[1].answer, 1)
        next(iter(ranks.hub._peers.values()))._socket.shutdown(socket.SHUT_RDWR)
        with pytest.raises(RankLost):
            asking.result(600)


def test_notices_reach_rank_0() -> None:
    with star(2) as ranks:
        ranks.spokes[0].report({"kind": "notice"})
        ranks.on_all(lambda rank, end: end.exchange("after", None, len))
        assert ranks.heard == [{"kind": "notice"}]


@pytest.mark.parametrize(
    ("name", "rank", "size", "group", "token", "match"),
    [
        ("wrong token", 1, 3, "", "0" * 64, "is not rank 0"),
        ("rank taken", 1, 3, "", None, "has already joined"),
        ("rank 0 again", 0, 3, "", None, "no such rank"),
        ("rank beyond the world size", 3, 3, "", None, "no such rank"),
        ("another world size", 2, 4, "", None, "another group"),
        ("another group", 2, 3, "other", None, "another group"),
    ],
)
def test_the_hub_refuses_invalid_ranks(  # noqa: PLR0917 – a row of the table
    name: str, rank: int, size: int, group: str, token: str | None, match: str
) -> None:
    hub = Hub(3, Agreement(), timeout=1)
    first = Spoke(hub.address, 1, 3, Agreement())
    try:
        address = replace(hub.address, token=token) if token else hub.address
        with pytest.raises(RankLost, match=match):
            Spoke(address, rank, size, Agreement(), group=group)
        Spoke(hub.address, 2, 3, Agreement()).close()
    finally:
        first.close()
        hub.close()


def test_a_spoke_rejects_a_hub_without_the_token() -> None:
    hub, stranger = Hub(2, Agreement()), Hub(2, Agreement())
    try:
        with pytest.raises(RankLost):
            Spoke(replace(hub.address, port=stranger.address.port), 1, 2, Agreement())
    finally:
        hub.close()
        stranger.close()


def test_the_error_names_a_rank_that_never_joined() -> None:
    hub = Hub(3, Agreement(), timeout=0.05)
    spoke = Spoke(hub.address, 1, 3, Agreement())
    try:
        with pytest.raises(RankLost, match=r"never seen: \[2\]"):
            hub.exchange("t", None, len)
    finally:
        spoke.close()
        hub.close()


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system has no such option")
def test_a_peer_whose_machine_lost_power_is_lost_after_10_seconds() -> None:
    """Nothing ends such a connection but keepalives that are not answered, and data that is not acknowledged."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as connection:
        FramedConnection(connection)
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle, interval, count, unacknowledged = (
            connection.getsockopt(socket.IPPROTO_TCP, option)
            for option in (
                socket.TCP_KEEPIDLE,
                socket.TCP_KEEPINTVL,
                socket.TCP_KEEPCNT,
                socket.TCP_USER_TIMEOUT,
            )
        )
        assert idle + interval * count <= 10
        assert unacknowledged <= 10_000
