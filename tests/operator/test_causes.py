"""A cause belongs to what it names: a cloud's quota and a misfit to the tier, a ResourceQuota and a volume to the job.
On an API server in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from spotladder.resources import PODS
from spotladder.workloads.rayjob.records import RAYCLUSTERS
from tests.kube.world import KubeWorld, Object, eventually
from tests.operator.memory_world import filled_world

GCE = "Node scale up in zones us-central1-a associated with this pod failed: {}. Pod is at risk of not being scheduled."
KARPENTER = "Failed to schedule pod, no instance type has enough resources, requirements=x"
TOO_SMALL = (
    "0/4 nodes are available: 4 Insufficient cpu. preemption: 0/4 nodes are available: 4 Preemption is not helpful"
)


@pytest.fixture
async def kube() -> AsyncIterator[KubeWorld]:
    async with filled_world() as found, found.operator():
        yield found


def tiers(kube: KubeWorld, asks: str = "fallback", *names: str) -> list[Object]:
    return [
        {
            "name": name,
            "capacityTier": f"{kube.namespace}-{name}",
            "provisionTimeout": "10m",
            "onInsufficientCapacity": asks,
        }
        for name in names or ("spot-a", "on-demand")
    ]


async def pending(kube: KubeWorld, attempt: int = 1, scheduler: str = "0/1 nodes", claim: str = "") -> list[Object]:
    """The workers of the attempt, which wait for a node. KubeRay has acted on the attempt."""
    pods = await kube.waiting(attempt)
    await kube.report(attempt, jobDeploymentStatus="Initializing")
    for pod in pods:
        name = pod["metadata"]["name"]
        said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": scheduler}
        container: Object = {"name": "ray", "image": "ray", "resources": {"requests": {"cpu": "64"}}}
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
        await kube.client.merge(
            PODS, name, kube.namespace, body={"spec": {"containers": [container], "volumes": volumes}}
        )
        await kube.set_pod(name, conditions=[said])
    await kube.idle()
    return pods


async def say(kube: KubeWorld, pods: list[Object], reason: str, message: str, source: str) -> None:
    for pod in pods:
        await kube.record_event(reason, message, about={"kind": "Pod", **pod}, source=source)
    await kube.idle()


async def waits_for(kube: KubeWorld) -> tuple[str, str]:
    waiting = (await kube.status()).get("waiting") or {}
    return waiting.get("reason", ""), waiting.get("timer", "")


@pytest.mark.parametrize(
    ("reason", "message", "source"),
    [
        ("FailedScaleUp", GCE.format("GCE quota exceeded"), "cluster-autoscaler"),
        ("FailedScaleUp", GCE.format("Quota 'GPUS_ALL_REGIONS' exceeded"), "cluster-autoscaler"),
        ("FailedScaleUp", "exceeding approved LowPriorityCores quota", "cluster-autoscaler"),
        ("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 in backoff after failed scale-up", "cluster-autoscaler"),
    ],
)
async def test_a_quota_of_the_cloud_is_missing_capacity_of_its_tier(
    kube: KubeWorld, reason: str, message: str, source: str
) -> None:
    await kube.submit(tiers=tiers(kube))
    await say(kube, await pending(kube), reason, message, source)
    assert await kube.is_on("on-demand", 2)
    assert [one["reason"] for one in (await kube.status())["attempts"]] == ["InsufficientCapacity"]


async def test_a_quota_in_the_event_of_a_nodeclaim_is_shown(kube: KubeWorld) -> None:
    await kube.submit(tiers=tiers(kube, "wait"))
    pods = await pending(kube)
    await say(kube, pods, "Nominated", "Pod should schedule on: nodeclaim/spot-1", "karpenter")
    claim = {"kind": "NodeClaim", "metadata": {"name": "spot-1", "uid": "c"}}
    refusal = "NodeClaim spot-1 event: insufficient capacity, with fleet error(s), VcpuLimitExceeded: more vCPU"
    await kube.record_event("InsufficientCapacityError", refusal, about=claim)
    await kube.idle()
    assert "VcpuLimitExceeded" in (await kube.condition("Provisioned"))["message"]


async def test_with_wait_a_quota_of_the_cloud_lasts_until_provision_timeout(kube: KubeWorld) -> None:
    await kube.submit(tiers=tiers(kube, "wait"))
    await say(kube, await pending(kube), "FailedScaleUp", GCE.format("GCE quota exceeded"), "cluster-autoscaler")
    assert await waits_for(kube) == ("WaitingForCapacity", "provisionTimeout")
    assert "GCE quota exceeded" in (await kube.condition("Provisioned"))["message"]
    await kube.pass_time(590)
    assert await kube.is_on("spot-a", 1)
    await kube.pass_time(20)
    assert await kube.is_on("on-demand", 2)


async def test_a_resource_quota_of_the_namespace_stops_the_clock(kube: KubeWorld) -> None:
    await kube.submit(tiers=tiers(kube))
    await pending(kube)
    name = await kube.raycluster(1)
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreateWorkerPod"}
    failure["message"] = 'pods "w" is forbidden: exceeded quota: gpu, requested: requests.nvidia.com/gpu=8'
    body = {"status": {"conditions": [failure]}}
    await kube.client.merge(RAYCLUSTERS, name, kube.namespace, body=body, subresource="status")
    for _ in range(6):
        await kube.pass_time(3600)
    assert await waits_for(kube) == ("QuotaExceeded", "")
    assert await kube.is_on("spot-a", 1)


async def test_a_volume_of_another_pod_is_no_lack_of_capacity(kube: KubeWorld) -> None:
    await kube.submit(tiers=tiers(kube))
    pods = await pending(kube, claim="data")
    refusal = 'Multi-Attach error for volume "pvc-8" Volume is already exclusively attached to one node'
    await say(kube, pods, "FailedAttachVolume", refusal, "attachdetach-controller")
    for _ in range(6):
        await kube.pass_time(3600)
    assert await waits_for(kube) == ("VolumeUnavailable", "")
    degraded = await kube.condition("Degraded")
    assert degraded["reason"] == "VolumeUnavailable"
    assert "claim data: Multi-Attach error" in degraded["message"]
    assert "ReadWriteOnce" in degraded["message"]
    for pod in pods:
        mounted = {"type": "PodReadyToStartContainers", "status": "True"}
        await kube.set_pod(pod["metadata"]["name"], conditions=[{"type": "PodScheduled", "status": "True"}, mounted])
    await kube.idle()
    assert (await kube.condition("Degraded"))["status"] == "False"


async def test_a_pod_that_fits_no_node_is_said_at_once_and_fails_the_job_if_no_tier_can_hold_it(
    kube: KubeWorld,
) -> None:
    await kube.submit(tiers=tiers(kube, "wait"))
    for attempt, tier in ((1, "spot-a"), (2, "on-demand")):
        await eventually(partial(kube.is_on, tier, attempt))
        await pending(kube, attempt, TOO_SMALL)
        assert await waits_for(kube) == ("PodDoesNotFit", "provisionTimeout")
        degraded = await kube.condition("Degraded")
        assert degraded["reason"] == "PodDoesNotFit"
        assert f"fits no node of {tier}: it requests cpu 64; scheduler: " in degraded["message"]
        assert "request less" in degraded["message"]
        await kube.pass_time(601)
    await eventually(lambda: kube.has_phase("Failed"))
    completed = await kube.condition("Completed")
    assert completed["reason"] == "PodDoesNotFit"
    assert "spot-a (PodDoesNotFit), on-demand (PodDoesNotFit)" in completed["message"]
    assert "it requests cpu 64" in completed["message"]


async def test_a_misfit_that_the_provisioner_reports_leaves_the_tier_at_once_and_the_next_may_fit(
    kube: KubeWorld,
) -> None:
    await kube.submit(tiers=tiers(kube))
    await say(kube, await pending(kube), "FailedScheduling", KARPENTER, "karpenter")
    assert await kube.is_on("on-demand", 2)
    assert [one["reason"] for one in (await kube.status())["attempts"]] == ["PodDoesNotFit"]
    await kube.run(2)
    await eventually(lambda: kube.has_phase("Running"))
    assert (await kube.condition("Degraded"))["status"] == "False"


async def test_a_job_that_fits_no_tier_does_not_begin_again_at_once(kube: KubeWorld) -> None:
    await kube.submit(tiers=tiers(kube, "fallback", "spot-a"), exhausted="Restart")
    await say(kube, await pending(kube), "FailedScheduling", KARPENTER, "karpenter")
    await kube.collect(1)
    await kube.pass_time(30)
    status: dict[str, Any] = await kube.status()
    assert len(status["attempts"]) == 1
    assert (await waits_for(kube))[0] == "PodDoesNotFit"
    assert (await kube.condition("Degraded"))["reason"] == "PodDoesNotFit"
