"""Probes on an API server: the scheduling gates of the workers are removed one before the others."""

from __future__ import annotations

from spotladder.resources import PODS, APIResource
from tests.kube.apiserver import ApiServer
from tests.kube.world import KubeWorld, eventually, world

BINDINGS = APIResource("", "v1", "bindings", "Binding")


async def gates(kube: KubeWorld, attempt: int) -> list[int]:
    """The numbers of scheduling gates of the workers, by name."""
    pods = sorted(await kube.pods(attempt), key=lambda pod: str(pod["metadata"]["name"]))
    return [len(pod["spec"].get("schedulingGates") or []) for pod in pods if "-worker-" in pod["metadata"]["name"]]


async def bind(kube: KubeWorld, pod: str) -> None:
    """The scheduler finds a new node for the pod."""
    node = {"apiVersion": "v1", "kind": "Node", "name": await kube.node(f"{kube.namespace}-{pod}")}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod, "namespace": kube.namespace}}
    await kube.client.create(BINDINGS, {**body, "target": node})


async def test_a_worker_gets_its_node_before_the_others_ask_for_theirs(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        spot = {"name": "spot-a", "capacityTier": f"{kube.namespace}-spot-a", "probe": 1}
        await kube.submit(tiers=[spot, {"name": "on-demand", "capacityTier": f"{kube.namespace}-on-demand"}])
        await eventually(lambda: kube.rayjob(1))
        await kube.pod(1, "head", 0)
        await kube.raycluster(1)
        first, _ = [await kube.pod(1, "worker", index, run=False) for index in range(2)]

        async def probing() -> bool:
            return await gates(kube, 1) == [0, 1]

        async def asking() -> bool:
            return await gates(kube, 1) == [0, 0]

        await eventually(probing)
        refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}
        await kube.set_pod(first, conditions=[refused])
        await kube.pass_time(60)
        said = (await kube.condition("Provisioned"))["message"]
        assert "(1 of 2 workers ask for a node after the probe): no node" in said
        assert await probing(), "the probe has no node yet"
        await bind(kube, first)
        await eventually(asking)
        replacement = await kube.pod(1, "worker", 2, run=False)

        async def replaced() -> bool:
            found = await kube.client.get(PODS, replacement, kube.namespace)
            return not found["spec"].get("schedulingGates")

        await eventually(replaced)
