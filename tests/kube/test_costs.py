"""The costs of a job beside its workers' nodes, from the prices in its spec and its CapacityTiers to its status."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.checkpoints.store import folder_of
from spotladder.records.stored import of_job, read
from tests.kube.apiserver import ApiServer
from tests.kube.world import eventually, world

GIB = 2**30
FILE = b"x" * 1024
BUCKET = {"perGiBMonth": "1000000", "perThousandWrites": "100", "perThousandReads": "10"}


async def test_heads_storage_requests_and_egress(api_server: ApiServer) -> None:
    async with world(api_server, tiers=()) as kube, kube.operator():

        async def has_step(step: int) -> bool:
            return ((await kube.status()).get("progress") or {}).get("step") == step

        price = {"perNodeHour": "1", "onDemandPerNodeHour": "4", "headPerHour": "0.5"}
        near = await kube.capacity("near", price=price)
        far = await kube.capacity("far", price=price, egressPerGiB=str(GIB))
        tiers: list[dict[str, Any]] = [
            {"name": "near", "capacityTier": near, "maxFailures": 1},
            {"name": "far", "capacityTier": far},
        ]
        checkpoints = {"uri": "s3://bucket/prefix", "price": BUCKET}
        await kube.submit(tiers=tiers, checkpoints=checkpoints, stallTimeout="24h")
        await kube.begin(1, "near")
        kube.bucket.commit(kube.namespace, "digits", attempt=1, step=40, files={"model": FILE})
        await kube.pass_time(3600)
        await eventually(lambda: has_step(40))
        await kube.pass_time(3600)
        for _ in range(2):
            await kube.kill_worker(1)
        await eventually(lambda: kube.rayjob(2))
        await kube.collect(1)
        await kube.begin(2, "far")
        kube.bucket.commit(kube.namespace, "digits", attempt=2, step=80, files={"model": FILE})
        await kube.pass_time(60)
        await eventually(lambda: has_step(80))
        await kube.succeed(2)
        await kube.collect(2)
        await kube.pass_time(60)

        cost = (await kube.status())["cost"]
        assert float(cost["heads"]) == pytest.approx(1.0, rel=0.1), "two hours"
        assert float(cost["egress"]) == 2048, "both workers read the only file"
        assert float(cost["requests"]) == pytest.approx(2 * 2 * 0.1 + 2 * 0.01), "two commits, and one start"
        assert float(cost["storage"]) == pytest.approx(3 * 1024 / GIB * 1e6 * 2 / 730, rel=0.1)
        parts = sum(float(cost[name]) for name in ("heads", "storage", "requests", "egress"))
        nodes = sum(float(tier["cost"]) for tier in (await kube.status())["tiers"])
        assert float(cost["spent"]) == pytest.approx(nodes + parts, abs=0.02)

        found = read(of_job(folder_of(kube.bucket.store, "digits"), (await kube.job())["metadata"]["uid"])).state
        assert f"{found.extra.egress:.4f}" == cost["egress"]
        assert found.spent_usd == pytest.approx(float(cost["spent"]), abs=0.01)
