"""What jobs have observed, in the status of their CapacityTier."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from spotladder.api.tier_history import TierHistory, history_in
from spotladder.clusters.transport import Object
from spotladder.core.model import KnownCapacity, PricePoint
from spotladder.operator.reporting.tier_status import WRITE_INTERVAL
from spotladder.resources import CAPACITYTIERS
from tests.kube.world import WORKERS, KubeWorld, eventually
from tests.operator.memory_world import NAMESPACE
from tests.operator.reconcile.test_reconciler import memory

HALF_AN_HOUR = 1800.0
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()


async def use_spot_for_half_an_hour(kube: KubeWorld) -> None:
    """A job gets the capacity of spot-a, loses a worker after half an hour, and gets no replacement."""
    tiers = [
        {"name": tier, "capacityTier": f"{NAMESPACE}-{tier}", "maxFailures": 5, "provisionTimeout": "10m"}
        for tier in ("spot-a", "on-demand")
    ]
    await kube.submit(tiers=tiers, stallTimeout="10h")
    await kube.run(1)
    await eventually(lambda: kube.has_phase("Running"))
    await kube.pass_time(HALF_AN_HOUR)
    status = (await kube.client.get(CAPACITYTIERS, f"{NAMESPACE}-spot-a"))["status"]
    assert (status["jobsInUse"], status["nodesInUse"]) == (1, WORKERS)
    await kube.kill_worker(1)
    await kube.idle()
    waits = await kube.pod(1, "worker", 9, run=False)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    await kube.set_pod(waits, conditions=[condition])
    await kube.pass_time(605)
    await eventually(lambda: _left(kube))


async def _left(kube: KubeWorld) -> bool:
    await kube.collect(1)
    return await kube.is_on("on-demand", 2)


async def test_the_next_controller_counts_nothing_twice() -> None:
    async with memory() as kube:

        async def counts() -> dict[str, Any]:
            status = (await kube.client.get(CAPACITYTIERS, f"{NAMESPACE}-spot-a"))["status"]
            return {name: status[name] for name in ("attempts", "refusals", "evictions", "observedHours")}

        async def written() -> bool:
            await kube.clock.advance(WRITE_INTERVAL)
            return bool((await counts())["refusals"])

        await use_spot_for_half_an_hour(kube)
        await eventually(written)
        found = await counts()
        assert (found["attempts"], found["refusals"], found["evictions"]) == (2, 1, 1), (
            "its nodes, then their replacement"
        )
        assert float(found["observedHours"]) > WORKERS * HALF_AN_HOUR / 3600
        async with kube.operator():
            await kube.pass_time(2 * WRITE_INTERVAL)
            assert await counts() == found


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, TierHistory(), id="no status"),
        pytest.param(
            {"waits": [{"upTo": "30s", "count": 3}, {"upTo": "1h", "count": 1}]},
            TierHistory(wait=30.0, known=KnownCapacity(ready_after=30.0)),
            id="waits",
        ),
        pytest.param(
            {"evictionsPerNodeHour": "often", "observedHours": "-"}, TierHistory(), id="numbers that are damaged"
        ),
        pytest.param({"waits": [{"upTo": "7s", "count": 3}]}, TierHistory(), id="a wait of another version"),
        pytest.param(
            {"prices": [{"since": "2026-11-21T12:00:00Z", "price": "0.3120"}]},
            TierHistory(prices=(PricePoint(NOON, 0.312),)),
            id="prices",
        ),
        pytest.param({"lastAvailableAt": "2026-11-21T12:00:00Z"}, TierHistory(granted_at=NOON), id="a grant"),
        pytest.param(
            {"lastAvailableAt": "2026-11-21T12:00:00Z", "lastUnavailableAt": "2026-11-21T11:00:00Z"},
            TierHistory(granted_at=NOON),
            id="a grant after a refusal",
        ),
        pytest.param(
            {"lastAvailableAt": "2026-11-21T12:00:00Z", "lastUnavailableAt": "2026-11-21T12:00:00Z"},
            TierHistory(),
            id="a refusal after a grant",
        ),
    ],
)
def test_the_waits_the_prices_and_the_newest_grant_are_read(status: Object, expected: TierHistory) -> None:
    assert history_in(json.dumps(status).encode()) == expected
