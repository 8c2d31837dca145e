"""Heartbeats that have stopped: only changes count, and only reads that succeed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.checkpoints.heartbeat import StoredHeartbeat
from spotladder.operator.storage.pulse import SHORTEST_STOP, Pulse

BEAT = StoredHeartbeat(0, 12, 100, beat=7, every=5.0)
OTHER = replace(BEAT, beat=8)
SLOW = replace(BEAT, every=10.0)
OLD = StoredHeartbeat(0, 12, 100)
"""A heartbeat of a library that names no interval."""

Reads = list[tuple[float, StoredHeartbeat | None]]


def pulse_of(reads: Reads) -> Pulse:
    pulse = Pulse()
    for at, found in reads:
        pulse.read(found, at, at)
    return pulse


@pytest.mark.parametrize(
    ("reads", "stopped"),
    [
        pytest.param([(0, BEAT)], False, id="one read"),
        pytest.param([(0, BEAT), (14, BEAT)], False, id="two beats missing"),
        pytest.param([(0, BEAT), (15, BEAT)], True, id="three beats missing"),
        pytest.param([(0, BEAT), (100, OTHER)], False, id="a new beat"),
        pytest.param([(0, BEAT), (20, BEAT), (22, OTHER)], False, id="a new beat after the stop"),
        pytest.param([(0, BEAT), (20, OTHER), (35, OTHER)], True, id="no beat after the second"),
        pytest.param([(0, SLOW), (29, SLOW)], False, id="a longer interval"),
        pytest.param([(0, SLOW), (30, SLOW)], True, id="three beats of a longer interval missing"),
        pytest.param([(0, OLD), (100, OLD)], False, id="a library that names no interval"),
        pytest.param([(0, BEAT), (14, None), (16, BEAT), (30, BEAT)], False, id="a read failed"),
        pytest.param([(0, BEAT), (14, None), (16, BEAT), (31, BEAT)], True, id="three beats missing after it"),
        pytest.param([(0, BEAT), (40, None)], False, id="the store is away"),
        pytest.param([], False, id="no read"),
    ],
)
def test_heartbeats_stop(reads: Reads, stopped: bool) -> None:
    assert pulse_of(reads).has_stopped() is stopped


def test_a_stop_can_be_announced() -> None:
    pulse = pulse_of([(0, BEAT), (SHORTEST_STOP - 2.0, BEAT)])
    assert pulse.has_stopped(ahead=2.0)
    assert not pulse.has_stopped(ahead=1.9)
    assert not Pulse().has_stopped(ahead=100.0)
