from __future__ import annotations

import asyncio

import pytest
import structlog

from spotladder.clusters.election import DURATION, LEASES, MARGIN, RENEW_INTERVAL, Election, NotLeading
from tests.clusters.fake import FakeApiServer, FakeClient
from tests.clusters.stepped_clock import SteppedClock


def scene() -> tuple[FakeApiServer, SteppedClock]:
    clock = SteppedClock()
    return FakeApiServer(clock), clock


def candidate(server: FakeApiServer, name: str, clock: SteppedClock) -> Election:
    return Election(FakeClient(server, clock), namespace="ns", name="lease", identity=name, clock=clock)


async def test_only_one_of_two_candidates_leads() -> None:
    server, clock = scene()
    a, b = candidate(server, "a", clock), candidate(server, "b", clock)
    assert await a.attempt()
    assert not await b.attempt()
    assert a.fence() == DURATION - MARGIN
    with pytest.raises(NotLeading):
        b.fence()


async def test_a_leader_that_stops_renewing_stops_leading_before_another_candidate_leads() -> None:
    server, clock = scene()
    a, b = candidate(server, "a", clock), candidate(server, "b", clock)
    await a.attempt()
    keeping = asyncio.create_task(a.keep())
    leading = asyncio.create_task(b.lead())
    await clock.advance(10 * DURATION)
    assert a.leading
    assert not leading.done()
    keeping.cancel()  # the leader hangs
    for _ in range(int(DURATION + RENEW_INTERVAL) * 4):
        await clock.advance(0.25)
        assert not (a.leading and b.leading)
    assert leading.done()
    assert b.leading


async def test_a_leader_that_cannot_reach_the_api_server_stops_in_time() -> None:
    server, clock = scene()
    a = candidate(server, "a", clock)
    await a.attempt()
    server.down = True
    keeping = asyncio.create_task(a.keep())
    await clock.advance(DURATION - MARGIN - 0.1)
    assert a.leading
    assert a.fence() <= 0.11
    await clock.advance(0.2)
    assert not a.leading
    assert keeping.done()


async def test_a_failure_to_acquire_the_lease_is_reported_until_it_succeeds() -> None:
    server, clock = scene()
    a, b = candidate(server, "a", clock), candidate(server, "b", clock)
    server.down = True
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            assert not await a.attempt()
            await clock.advance(RENEW_INTERVAL)
    assert [(entry["event"], entry["lease"]) for entry in logs] == [("cannot take the lease", "ns/lease")]
    assert a.problem == logs[0]["error"]
    server.down = False
    assert await a.attempt()
    assert a.problem == ""
    assert not await b.attempt()
    assert b.problem == ""  # another leads: nothing is wrong


async def test_a_wrong_wall_clock_does_not_take_the_lease_from_the_leader() -> None:
    (server, ours), theirs = scene(), SteppedClock(5_000_000_000)
    a, b = candidate(server, "a", ours), candidate(server, "b", theirs)
    await a.attempt()
    ours.step_wall(-86400)
    assert not await b.attempt()
    await theirs.advance(RENEW_INTERVAL)
    assert not await b.attempt()
    assert a.leading


async def test_a_released_lease_is_acquired_at_once() -> None:
    server, clock = scene()
    a, b = candidate(server, "a", clock), candidate(server, "b", clock)
    await a.attempt()
    assert not await b.attempt()
    await a.release()
    assert not a.leading
    assert await b.attempt()
    assert server.find(LEASES, "lease", "ns")["spec"]["leaseTransitions"] == 2


@pytest.mark.parametrize("deleted", [False, True], ids=["changed", "deleted"])
async def test_a_lease_that_a_user_changes_or_deletes_does_not_end_leadership(deleted: bool) -> None:
    server, clock = scene()
    a, user = candidate(server, "a", clock), FakeClient(server, clock)
    await a.attempt()
    if deleted:
        await user.delete(LEASES, "lease", "ns")
    else:
        await user.merge(LEASES, "lease", "ns", body={"metadata": {"annotations": {"by": "a user"}}})
    keeping = asyncio.create_task(a.keep())
    await clock.advance(3 * DURATION)
    assert a.leading
    assert server.find(LEASES, "lease", "ns")
    keeping.cancel()


async def test_a_leader_that_lost_its_lease_stops_at_the_next_renewal() -> None:
    server, clock = scene()
    a, b = candidate(server, "a", clock), candidate(server, "b", clock)
    await a.attempt()
    assert not await b.attempt()
    await clock.advance(DURATION + 0.1)
    assert await b.attempt()
    assert not await a.attempt()
    assert not a.leading
