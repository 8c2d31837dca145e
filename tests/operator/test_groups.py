"""Losses of pods beside the tier: on an API server in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from spotladder.resources import NODES, PODS
from tests.kube.world import KubeWorld, eventually, ray_spec
from tests.operator.memory_world import filled_world


@pytest.fixture
async def kube() -> AsyncIterator[KubeWorld]:
    async with filled_world() as found, found.operator():
        yield found


def with_data_workers() -> dict[str, Any]:
    spec = ray_spec()
    (trainers,) = spec["rayClusterSpec"]["workerGroupSpecs"]
    gpu = {"name": "ray", "image": "rayproject/ray:2.58.1", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    cpu = {"name": "ray", "image": "rayproject/ray:2.58.1"}
    spec["rayClusterSpec"]["workerGroupSpecs"] = [
        {**trainers, "template": {"spec": {"containers": [gpu]}}},
        {**trainers, "groupName": "data", "template": {"spec": {"containers": [cpu], "nodeSelector": {"pool": "cpu"}}}},
    ]
    return {"ray": {"template": {"spec": spec}}}


async def test_a_group_runs_on_the_capacity_that_the_tier_names_for_it(kube: KubeWorld) -> None:
    data = await kube.capacity("cpu", extraSelectors={"disk": "fast"})
    tier = {"name": "spot-a", "capacityTier": f"{kube.namespace}-spot-a", "groups": {"data": {"capacityTier": data}}}
    await kube.submit(tiers=[tier], workload=with_data_workers())
    await kube.run(1)
    await eventually(lambda: kube.has_phase("Running"))
    groups = (await kube.rayjob(1))["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    assert [group["template"]["spec"].get("nodeSelector", {}).get("disk") for group in groups] == [None, "fast"]


async def test_data_workers_that_are_lost_exhaust_no_tier(kube: KubeWorld) -> None:
    tiers = [
        {"name": name, "capacityTier": f"{kube.namespace}-{name}", "maxFailures": 0} for name in ("spot-a", "on-demand")
    ]
    await kube.submit(tiers=tiers, workload=with_data_workers())
    data = await kube.pod(1, "auxiliary", 0)
    await kube.run(1)
    await eventually(lambda: kube.has_phase("Running"))
    await kube.program_starts(1)
    for index in range(1, 4):
        node = (await kube.client.get(PODS, data, kube.namespace))["spec"]["nodeName"]
        await kube.set_pod(data, phase="Failed", conditions=[])
        await kube.idle()
        await kube.client.delete(PODS, data, kube.namespace, grace=0)
        await kube.client.delete(NODES, node)
        data = await kube.pod(1, "auxiliary", index)
        await kube.pass_time(5)
    status = await kube.status()
    assert (status["tier"], status["attempt"], status["failures"]) == ("spot-a", 1, 0)
    await kube.kill_worker(1)
    await eventually(lambda: kube.is_on("on-demand", 2))
