"""Silent nodes, slow starts and crashing starts on a real API server, which do not count as losses."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from spotladder.clusters.election import LEASES
from spotladder.clusters.errors import NotFound
from spotladder.core.crashes import CRASH_LIMIT, FIRST_BACKOFF
from spotladder.operator.inventory.heartbeats import NODE_LEASES
from spotladder.resources import PODS, APIResource
from spotladder.timestamps import utc_microseconds
from spotladder.workloads import names
from tests.kube.apiserver import ApiServer
from tests.kube.conditions import message_of
from tests.kube.world import KubeWorld, eventually, world

NAMESPACES = APIResource("", "v1", "namespaces", "Namespace", namespaced=False)
BOGUS = "Error: No such option: --bogus-flag"


async def nodes_of(kube: KubeWorld, attempt: int) -> list[str]:
    return [pod["spec"]["nodeName"] for pod in await kube.pods(attempt)]


async def renewed(kube: KubeWorld, node: str, seconds_ago: float) -> None:
    """Set the time of the last renewal of the kubelet's Lease."""
    at = utc_microseconds(kube.clock.now() - seconds_ago)
    body = {
        "apiVersion": LEASES.api_version,
        "kind": "Lease",
        "metadata": {"name": node, "namespace": NODE_LEASES},
        "spec": {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": at},
    }
    await kube.client.apply(LEASES, body)


async def lease_namespace(kube: KubeWorld) -> None:
    try:
        await kube.client.get(NAMESPACES, NODE_LEASES)
    except NotFound:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NODE_LEASES}}
        await kube.client.create(NAMESPACES, body)


async def forget_leases(kube: KubeWorld, nodes: list[str]) -> None:
    for node in nodes:
        with suppress(NotFound):
            await kube.client.delete(LEASES, node, NODE_LEASES)


def limits(kube: KubeWorld, max_failures: int = 0) -> list[dict[str, Any]]:
    """Two tiers. With the default, one failure exhausts the first."""
    return [
        {"name": name, "capacityTier": f"{kube.namespace}-{name}", "maxFailures": allowed}
        for name, allowed in (("spot-a", max_failures), ("on-demand", -1))
    ]


async def running(kube: KubeWorld) -> list[str]:
    await lease_namespace(kube)
    await kube.submit(tiers=limits(kube))
    await kube.run(1)
    await eventually(lambda: kube.has_phase("Running"))
    return await nodes_of(kube, 1)


async def untouched(kube: KubeWorld) -> None:
    status = await kube.status()
    assert (status["tier"], status["attempt"], status["failures"], status["phase"]) == ("spot-a", 1, 0, "Running")


async def test_a_short_silence_of_all_nodes_counts_no_failure(api_server: ApiServer) -> None:
    """The Leases show the silence of all nodes before the node controller marks the second one."""
    async with world(api_server) as kube, kube.operator():
        nodes = await running(kube)
        for node in nodes:
            await renewed(kube, node, seconds_ago=45)
        for node in nodes:
            await kube.set_node(node, ready="Unknown")
            message = await message_of(kube, "Degraded", "True", "ContactLost")
            assert "silent" in message
            await kube.pass_time(3)
        await untouched(kube)
        await kube.pass_time(25)
        for node in nodes:
            await renewed(kube, node, seconds_ago=1)
            await kube.set_node(node, ready="True")
            await kube.pass_time(1)
        await message_of(kube, "Degraded", "False", "AsExpected")
        await untouched(kube)
        await forget_leases(kube, nodes)


async def test_a_node_that_is_lost_during_a_start_counts_and_has_an_event(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit(tiers=limits(kube, max_failures=3))
        await eventually(lambda: kube.rayjob(1))
        await kube.pod(1, "head", 0)
        await kube.pod(1, "worker", 0, run=False)
        starting = await kube.pod(1, "worker", 1)
        await kube.set_pod(starting, phase="Pending", conditions=[{"type": "PodScheduled", "status": "True"}])
        await kube.idle()
        node = (await kube.client.get(PODS, starting, kube.namespace))["spec"]["nodeName"]
        await kube.set_node(node, ready="Unknown")

        async def counted() -> bool:
            return (await kube.status())["failures"] == 1 and "NodeLost" in await kube.events()

        await eventually(counted)
        assert await kube.is_on("spot-a", 1)


async def crash(kube: KubeWorld, attempt: int) -> None:
    """Create the head pod with a container that has ended. The kubelet stored the end of its log."""
    await eventually(lambda: kube.rayjob(attempt))
    head = await kube.pod(attempt, "head", 0)
    ended = {"exitCode": 2, "reason": "Error", "message": f"Usage: ray start [OPTIONS]\n{BOGUS}\n"}
    container = {"name": "ray", "image": "ray", "imageID": "ray", "ready": False, "restartCount": 0}
    await kube.set_pod(head, phase="Failed", containerStatuses=[{**container, "state": {"terminated": ended}}])


async def gone(kube: KubeWorld) -> bool:
    return await kube.rayjobs() == []


async def test_a_crashing_head_exhausts_no_tier_and_fails_the_job_after_the_crash_limit(
    api_server: ApiServer,
) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit(tiers=limits(kube))
        pause = FIRST_BACKOFF
        for attempt in range(1, CRASH_LIMIT):
            await crash(kube, attempt)
            message = await message_of(kube, "Degraded", "True", "CrashLoop")
            assert "exit code 2" in message
            assert BOGUS in message
            await eventually(lambda: gone(kube))
            with suppress(NotFound):
                await kube.collect(attempt)
            await kube.pass_time(pause - 2)
            assert (await kube.status())["attempt"] == attempt, "the next attempt started before the backoff ended"
            await kube.pass_time(4)
            pause *= 2
        await crash(kube, CRASH_LIMIT)
        await eventually(lambda: kube.has_phase("Failed"))
        status = await kube.status()
        assert (status["tier"], status["attempt"], status["failures"]) == ("spot-a", CRASH_LIMIT, 0)
        assert [tier.get("spent", "") for tier in status["tiers"]] == [""]
        completed = await kube.condition("Completed")
        assert completed["reason"] == "CrashLoop"
        assert BOGUS in completed["message"]


async def test_a_slow_start_of_ray_is_not_a_lack_of_capacity(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        tiers = [{**tier, "provisionTimeout": "40s"} for tier in limits(kube)]
        await kube.submit(tiers=tiers, startTimeout="5m")
        await eventually(lambda: kube.rayjob(1))
        for role, index in (("head", 0), ("worker", 0), ("worker", 1)):
            pod = await kube.pod(1, role, index)
            await kube.set_pod(pod, conditions=[{"type": "Ready", "status": "False"}])

        async def waits() -> bool:
            found = await kube.condition("Provisioned")
            return (found["status"], found["reason"]) == ("False", "WaitingForRay")

        await eventually(waits)
        for _ in range(4):
            await kube.pass_time(60)
        assert await kube.is_on("spot-a", 1)
        await kube.pass_time(70)

        async def ended() -> bool:
            return [entry["reason"] for entry in (await kube.status())["attempts"]] == ["StartTimeout"]

        await eventually(ended)
        assert (await kube.status())["failures"] == 0
        assert names.attempt_name("digits", 1) not in await kube.rayjobs()
