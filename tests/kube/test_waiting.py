"""The reason why a job waits, with the messages of the scheduler, Karpenter and Kueue, and the running timer."""

from __future__ import annotations

import json
from typing import Any

from spotladder.workloads.rayjob.records import RAYJOBS
from spotladder.workloads.records import QUEUE
from tests.kube.apiserver import ApiServer
from tests.kube.commands import Cli
from tests.kube.world import KubeWorld, eventually, ray_spec, world

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


async def test_an_attempt_that_kueue_holds_waits_without_a_limit(api_server: ApiServer, cli: Cli) -> None:
    async with world(api_server) as kube, kube.operator():
        template = {"metadata": {"labels": {QUEUE: "team"}}, "spec": ray_spec()}
        await kube.submit(tiers=limited(kube), workload={"ray": {"template": template}})
        made = (await eventually(lambda: kube.rayjob(1)))["metadata"]
        assert made["labels"][QUEUE] == "team"
        await kube.client.merge(RAYJOBS, made["name"], kube.namespace, body={"spec": {"suspend": True}})
        await kube.report(1, jobDeploymentStatus="Suspended")
        workload = {"name": f"rayjob-{made['name']}-1f2e3", "namespace": kube.namespace, "uid": "w"}
        words = "couldn't assign flavors to pod set workers: insufficient unused quota for cpu in flavor spot"
        await kube.record_event(
            "Pending", words, about={"kind": "Workload", "metadata": workload}, source="kueue-admission"
        )

        async def waits() -> bool:
            return words in (await kube.condition("Provisioned")).get("message", "")

        await eventually(waits)
        await kube.pass_time(3600)
        status = await kube.status()
        assert (status["phase"], status["attempt"], status["failures"]) == ("Pending", 1, 0)
        assert "until" not in status["waiting"]
        assert status["waiting"]["reason"] == "WaitingForQuota"
        assert (await kube.condition("Degraded"))["status"] == "False"
        found = json.loads((await cli("get", "digits", "-n", kube.namespace, "-o", "json")).out)
        assert found["status"]["waiting"]["message"] == f"Kueue holds the attempt in queue team: {words}"

        await kube.client.merge(RAYJOBS, made["name"], kube.namespace, body={"spec": {"suspend": False}})
        await kube.report(1, jobDeploymentStatus="Initializing")
        await kube.run(1)
        await eventually(lambda: kube.has_phase("Running"))
        assert (await kube.status())["failures"] == 0
