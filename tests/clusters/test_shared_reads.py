"""Reads that many jobs share: one call at a time for each key, kept for a time that depends on the value."""

from __future__ import annotations

import asyncio

import pytest

from spotladder.clusters.errors import ClusterUnreachable
from spotladder.clusters.shared_reads import SharedReads
from tests.clusters.stepped_clock import SteppedClock


class Source:
    """Counts its calls; each waits until `go` is set. An exception in `value` is raised."""

    def __init__(self, value: bool | Exception = True) -> None:
        self.value = value
        self.calls = 0
        self.go = asyncio.Event()

    async def __call__(self) -> bool:
        self.calls += 1
        await self.go.wait()
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


def shared(clock: SteppedClock) -> SharedReads[str, bool]:
    return SharedReads(clock, lambda exists: 60.0 if exists else 0.0)


async def test_callers_at_the_same_time_share_a_read_even_if_one_is_cancelled() -> None:
    reads, source = shared(SteppedClock()), Source()
    callers = [asyncio.create_task(reads.get("bucket", source)) for _ in range(5)]
    await asyncio.sleep(0)
    callers[0].cancel()
    source.go.set()
    found = await asyncio.gather(*callers, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert found[1:] == [True] * 4
    assert source.calls == 1


@pytest.mark.parametrize(("value", "after", "calls"), [(True, 59.0, 1), (True, 60.0, 2), (False, 0.0, 2)])
async def test_a_value_is_kept_for_its_time(value: bool, after: float, calls: int) -> None:
    clock = SteppedClock()
    reads, source = shared(clock), Source(value)
    source.go.set()
    assert await reads.get("bucket", source) is value
    await clock.advance(after)
    assert await reads.get("bucket", source) is value
    assert source.calls == calls


async def test_a_failure_is_raised_for_all_that_wait_and_not_kept() -> None:
    reads, source = shared(SteppedClock()), Source(ClusterUnreachable("home", "no answer"))
    source.go.set()
    found = await asyncio.gather(*(reads.get("bucket", source) for _ in range(3)), return_exceptions=True)
    assert [type(error) for error in found] == [ClusterUnreachable] * 3
    source.value = True
    assert await reads.get("bucket", source)
    assert source.calls == 2


@pytest.mark.parametrize("older_ends_first", [True, False])
async def test_a_value_that_is_forgotten_while_it_is_read_is_read_again(older_ends_first: bool) -> None:
    clock, older, newer = SteppedClock(), Source(False), Source()
    reads = shared(clock)
    before = asyncio.create_task(reads.get("bucket", older))
    await clock.advance(0)
    reads.forget("bucket")
    after = asyncio.create_task(reads.get("bucket", newer))
    await clock.advance(0)
    assert newer.calls == 1
    ends = [(older, before), (newer, after)]
    for source, caller in ends if older_ends_first else reversed(ends):
        source.go.set()
        assert await caller is source.value
    assert await reads.get("bucket", newer)
    assert (older.calls, newer.calls) == (1, 1), "the later value is kept"


@pytest.mark.parametrize("forgotten", [False, True])
async def test_the_end_cancels_reads(forgotten: bool) -> None:
    reads, source = shared(clock := SteppedClock()), Source()
    caller = asyncio.create_task(reads.get("bucket", source))
    await clock.advance(0)
    assert source.calls == 1
    if forgotten:
        reads.forget("bucket")
    await reads.aclose()
    with pytest.raises(asyncio.CancelledError):
        await caller


@pytest.mark.parametrize("value", [True, ClusterUnreachable("home", "no answer")], ids=["old", "failed"])
async def test_reads_of_many_keys_do_not_pile_up(value: bool | Exception) -> None:
    """As of the tokens that a stranger invents."""
    reads, source = shared(clock := SteppedClock()), Source(value)
    source.go.set()
    for number in range(100):
        await asyncio.gather(reads.get(str(number), source), return_exceptions=True)
        await clock.advance(60.0)
    assert source.calls == 100
    assert len(reads._reads) < 5
