"""The reason why a job waits, with the messages of the scheduler, Karpenter and Kueue, and the running timer."""

from __future__ import annotations

from typing import Any

from tests.kube.apiserver import ApiServer
from tests.kube.commands import Cli
from tests.kube.world import KubeWorld, eventually, world

SCHEDULER = "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint."
KARPENTER = "Failed to schedule pod, no instance type has the required offering"


async def unschedulable(kube: KubeWorld) -> dict[str, Any]:
    """Mark all pods of the first attempt as unschedulable. Returns the first pod."""
    pods = await kube.waiting(1)
    for pod in pods:
        said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": SCHEDULER}
        await kube.set_pod(pod["metadata"]["name"], phase="Pending", conditions=[said])
    return dict(min(pods, key=lambda pod: str(pod["metadata"]["name"])))


def limited(kube: KubeWorld) -> list[dict[str, Any]]:
    return [{"name": "spot-a", "capacityTier": f"{kube.namespace}-spot-a", "provisionTimeout": "10m"}]


async def test_the_messages_of_the_scheduler_and_karpenter_are_shown(api_server: ApiServer, cli: Cli) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit(tiers=limited(kube))
        pod = await unschedulable(kube)

        async def found(text: str) -> bool:
            return text in (await kube.condition("Provisioned")).get("message", "")

        await eventually(lambda: found(SCHEDULER))
        condition = await kube.condition("Provisioned")
        assert (condition["status"], condition["reason"]) == ("False", "WaitingForCapacity")
        assert "; provisionTimeout ends 20" in condition["message"]
        await kube.record_event("FailedScheduling", KARPENTER, about={"kind": "Pod", **pod})
        await eventually(lambda: found(f"karpenter: {KARPENTER}"))
        waiting = (await kube.status())["waiting"]
        assert (waiting["reason"], waiting["timer"]) == ("WaitingForCapacity", "provisionTimeout")

        table = (await cli("get", "-n", kube.namespace)).out.splitlines()
        assert table[0].endswith("MESSAGE")
        assert SCHEDULER in table[1]
        assert "; provisionTimeout in " in table[1]
        await kube.report(1, jobDeploymentStatus="Complete", jobStatus="SUCCEEDED")
        await eventually(lambda: kube.has_phase("Succeeded"))
        assert "waiting" not in await kube.status()
        after = (await cli("get", "-n", kube.namespace)).out
        assert SCHEDULER not in after
        assert KARPENTER not in after
