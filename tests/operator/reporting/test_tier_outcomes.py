"""The outcomes of jobs in the status of their CapacityTier."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from spotladder.api.tier_history import TierHistory, history_in
from spotladder.clusters.transport import Object
from spotladder.core.model import NO_OUTCOMES, AgeCounts, KnownCapacity, Outcomes, PricePoint
from spotladder.operator.reporting.tier_status import WRITE_INTERVAL
from spotladder.resources import CAPACITYTIERS
from tests.kube.world import WORKERS, KubeWorld, eventually
from tests.operator.memory_world import NAMESPACE
from tests.operator.reconcile.test_reconciler import memory

HALF_AN_HOUR = 1800.0
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()


async def outcomes(kube: KubeWorld, tier: str) -> Outcomes:
    status: Object = (await kube.client.get(CAPACITYTIERS, f"{NAMESPACE}-{tier}")).get("status") or {}
    return history_in(json.dumps(status).encode()).known.outcomes


async def ended(kube: KubeWorld, spells: int) -> Outcomes:
    """The outcomes on spot-a, once so many spells with capacity have ended."""

    async def written() -> Outcomes | None:
        await kube.clock.advance(WRITE_INTERVAL)
        found = await outcomes(kube, "spot-a")
        return found if sum(found.capacity.ended) == spells else None

    found: Outcomes = await eventually(written)
    return found


async def use_spot_for_half_an_hour(kube: KubeWorld, name: str) -> None:
    """A job gets the capacity of spot-a, loses a worker after half an hour, and gets no replacement."""
    tiers = [
        {"name": tier, "capacityTier": f"{NAMESPACE}-{tier}", "maxFailures": 5, "provisionTimeout": "10m"}
        for tier in ("spot-a", "on-demand")
    ]
    await kube.submit(name, tiers=tiers, stallTimeout="10h")
    await kube.run(1, name)
    await eventually(lambda: kube.has_phase("Running", name))
    await kube.pass_time(HALF_AN_HOUR)
    status = (await kube.client.get(CAPACITYTIERS, f"{NAMESPACE}-spot-a"))["status"]
    assert (status["jobsInUse"], status["nodesInUse"]) == (1, WORKERS)
    await kube.kill_worker(1, name)
    await kube.idle()
    waits = await kube.pod(1, "worker", 9, name=name, run=False)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    await kube.set_pod(waits, conditions=[condition])
    await kube.pass_time(605)
    await eventually(lambda: _left(kube, name))


async def _left(kube: KubeWorld, name: str) -> bool:
    await kube.collect(1, name)
    return await kube.is_on("on-demand", 2, name)


async def test_outcomes_add_up_over_jobs_and_controllers() -> None:
    async with memory() as kube:
        await use_spot_for_half_an_hour(kube, "first")
        one = await ended(kube, 1)
        await use_spot_for_half_an_hour(kube, "second")
        two = await ended(kube, 2)
        assert (sum(one.capacity.ended), sum(two.capacity.ended)) == (1, 2), "each job has lost its capacity once"
        assert sum(two.capacity.survived) > sum(one.capacity.survived) > 0
        async with kube.operator():
            await kube.pass_time(2 * WRITE_INTERVAL)
            assert await outcomes(kube, "spot-a") == two, "the next controller counts nothing twice"
            assert await outcomes(kube, "spot-b") == NO_OUTCOMES, "no job has used it"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, NO_OUTCOMES, id="no status"),
        pytest.param({"lifetimes": "x"}, NO_OUTCOMES, id="damaged"),
        pytest.param({"lifetimes": [{"age": "10m", "ended": -1}]}, NO_OUTCOMES, id="negative"),
        pytest.param({"lifetimes": [{"age": "7m", "ended": 1}]}, NO_OUTCOMES, id="an age of another version"),
        pytest.param(
            {"outages": [{"age": "20m", "survived": 3}]},
            Outcomes(outages=AgeCounts((0, 3, 0, 0, 0, 0, 0, 0), (0,) * 8)),
            id="one age",
        ),
    ],
)
def test_the_status_is_read(status: Object, expected: Outcomes) -> None:
    assert history_in(json.dumps(status).encode()).known.outcomes == expected


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
