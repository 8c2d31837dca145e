"""Whether the guards that exist are those that an attempt needs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from spotladder.operator.inventory.guards import Guards
from spotladder.resources import DISRUPTION_BUDGETS
from spotladder.workloads import names
from spotladder.workloads.guards import Guarded, budget
from tests.clusters.fake import FakeApiServer, FakeClient
from tests.clusters.stepped_clock import SteppedClock


def wanted(job_uid: str = "u-1") -> dict[str, Any]:
    return budget(Guarded("digits-attempts", "team-a", {names.JOB_UID: job_uid}, "digits-a001"))


def without_a_digest() -> dict[str, Any]:
    guard = wanted()
    del guard["metadata"]["annotations"]
    return guard


@asynccontextmanager
async def synced(*existing: dict[str, Any]) -> AsyncIterator[Guards]:
    """The guards of a new controller."""
    clock = SteppedClock()
    client = FakeClient(FakeApiServer(clock), clock)
    for guard in existing:
        await client.create(DISRUPTION_BUDGETS, guard)
    guards = Guards(
        client, clock=clock, scopes=[""], labels="", wake=lambda _job: None, token_gone=lambda _namespace: None
    )
    assert guards.is_current(DISRUPTION_BUDGETS, wanted()) is False, "nothing is listed yet"
    running = [asyncio.create_task(cache.run()) for cache in guards.caches]
    try:
        await asyncio.gather(*(cache.wait_for_sync() for cache in guards.caches))
        yield guards
    finally:
        for task in running:
            task.cancel()


@pytest.mark.parametrize(
    ("existing", "current"),
    [
        pytest.param([], False, id="none"),
        pytest.param([wanted()], True, id="the same"),
        pytest.param([wanted("u-0")], False, id="of an earlier job with this name"),
        pytest.param([without_a_digest()], False, id="without a digest"),
    ],
)
async def test_a_guard_is_current_if_it_exists_and_was_made_of_the_same(
    existing: list[dict[str, Any]], current: bool
) -> None:
    async with synced(*existing) as guards:
        assert guards.is_current(DISRUPTION_BUDGETS, wanted()) is current


async def test_a_guard_that_is_being_deleted_is_not_current() -> None:
    async with synced(wanted()) as guards:
        ending = wanted()
        ending["metadata"].update(resourceVersion="1000", deletionTimestamp="2026-11-21T12:00:00Z")
        guards.written(DISRUPTION_BUDGETS, ending)
        assert guards.is_current(DISRUPTION_BUDGETS, wanted()) is False
