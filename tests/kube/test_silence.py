"""A machine stops: its worker is replaced before Kubernetes marks the node, on a real API server."""

from __future__ import annotations

import asyncio

from spotladder.checkpoints.log import CommitLog
from spotladder.operator.inventory.silence import POLL_INTERVAL
from spotladder.resources import NODES, PODS
from spotladder.workloads import names
from tests.kube.apiserver import ApiServer
from tests.kube.test_impediments import forget_leases, lease_namespace, renewed
from tests.kube.world import WORKERS, KubeWorld, eventually, world


async def pass_time(kube: KubeWorld, seconds: float, alive: list[str]) -> None:
    """Time passes; the kubelets of these nodes renew their Leases."""
    for _ in range(int(seconds / POLL_INTERVAL)):
        for node in alive:
            await renewed(kube, node, seconds_ago=0)
        await kube.pass_time(POLL_INTERVAL)
        await asyncio.sleep(0.3)  # The Leases are listed beside the reconciles.


async def test_a_worker_on_a_silent_node_is_replaced_before_the_node_is_marked(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await lease_namespace(kube)
        await kube.submit()
        await kube.run(1)
        for pod in await kube.pods(1):
            running = {"name": "ray", "image": "ray", "imageID": "", "ready": True, "restartCount": 0,
                       "state": {"running": {"startedAt": "2026-11-21T12:00:00Z"}}}  # fmt: skip
            await kube.set_pod(pod["metadata"]["name"], containerStatuses=[running])
        await kube.raycluster(1)
        await eventually(lambda: kube.has_phase("Running"))
        CommitLog(kube.bucket.store, "digits", namespace=kube.namespace).start(1, "", hands_over=True)
        pods = await kube.pods(1)
        nodes = [pod["spec"]["nodeName"] for pod in pods]
        lost = next(pod for pod in pods if pod["metadata"]["labels"][names.ROLE] == "worker")
        silent = lost["spec"]["nodeName"]
        await pass_time(kube, 20, nodes)
        await pass_time(kube, 20, [node for node in nodes if node != silent])
        status = await kube.status()
        assert (status["failures"], (await kube.worker_group(1))["replicas"]) == (0, WORKERS)

        await pass_time(kube, 15, [node for node in nodes if node != silent])
        ready = (await kube.client.get(NODES, silent))["status"]["conditions"][0]["status"]
        assert ready == "True", "Kubernetes has not marked it"

        async def requested() -> bool:
            group = await kube.worker_group(1)
            return bool(group["replicas"] == WORKERS + 1 and (await kube.status())["failures"] == 1)

        await eventually(requested)
        assert "NodeLost" in await kube.events()
        assert await kube.client.get(PODS, lost["metadata"]["name"], kube.namespace), "it keeps its room"

        fresh = await kube.pod(1, "worker", WORKERS)
        await kube.set_node(silent, ready="Unknown")

        async def removed() -> bool:
            group = await kube.worker_group(1)
            names = [pod["metadata"]["name"] for pod in await kube.pods(1)]
            return bool(group["replicas"] == WORKERS and fresh in names and lost["metadata"]["name"] not in names)

        await eventually(removed)
        status = await kube.status()
        assert (status["attempt"], status["failures"], status["phase"]) == (1, 1, "Running")
        await forget_leases(kube, nodes)
