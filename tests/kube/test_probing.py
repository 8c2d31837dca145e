"""Probes on an API server: the scheduling gates of the workers are removed one before the others."""

from __future__ import annotations

from spotladder.resources import PODS, APIResource
from tests.kube.apiserver import ApiServer
from tests.kube.world import KubeWorld, eventually, world

BINDINGS = APIResource("", "v1", "bindings", "Binding")


async def gates(here: KubeWorld, attempt: int) -> list[int]:
    """The numbers of scheduling gates of the workers, by name."""
    pods = sorted(await here.pods(attempt), key=lambda pod: str(pod["metadata"]["name"]))
    return [len(pod["spec"].get("schedulingGates") or []) for pod in pods if "-worker-" in pod["metadata"]["name"]]


async def test_a_worker_gets_its_node_before_the_others_ask_for_theirs(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        spot = {"name": "spot-a", "capacityTier": f"{here.namespace}-spot-a", "probe": 1}
        await here.submit(tiers=[spot, {"name": "on-demand", "capacityTier": f"{here.namespace}-on-demand"}])
        await eventually(lambda: here.rayjob(1))
        await here.pod(1, "head", 0)
        await here.raycluster(1)
        first, _ = [await here.pod(1, "worker", index, run=False) for index in range(2)]

        async def probing() -> bool:
            return await gates(here, 1) == [0, 1]

        async def asking() -> bool:
            return await gates(here, 1) == [0, 0]

        await eventually(probing)
        refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}
        await here.set_pod(first, conditions=[refused])
        await here.pass_time(60)
        said = (await here.condition("Provisioned"))["message"]
        assert "(1 of 2 workers ask for a node after the probe): no node" in said
        assert await probing(), "the probe has no node yet"
        node = {"apiVersion": "v1", "kind": "Node", "name": await here.node(f"{here.namespace}-probe")}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": first}, "target": node}
        await here.client.create(BINDINGS, {**body, "metadata": {"name": first, "namespace": here.namespace}})
        await eventually(asking)
        replacement = await here.pod(1, "worker", 2, run=False)

        async def replaced() -> bool:
            found = await here.client.get(PODS, replacement, here.namespace)
            return not found["spec"].get("schedulingGates")

        await eventually(replaced)
