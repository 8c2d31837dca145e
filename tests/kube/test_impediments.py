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


async def nodes_of(here: KubeWorld, attempt: int) -> list[str]:
    return [pod["spec"]["nodeName"] for pod in await here.pods(attempt)]


async def renewed(here: KubeWorld, node: str, seconds_ago: float) -> None:
    """Set the time of the last renewal of the kubelet's Lease."""
    at = utc_microseconds(here.clock.now() - seconds_ago)
    body = {
        "apiVersion": LEASES.api_version,
        "kind": "Lease",
        "metadata": {"name": node, "namespace": NODE_LEASES},
        "spec": {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": at},
    }
    await here.client.apply(LEASES, body)


async def lease_namespace(here: KubeWorld) -> None:
    try:
        await here.client.get(NAMESPACES, NODE_LEASES)
    except NotFound:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NODE_LEASES}}
        await here.client.create(NAMESPACES, body)


async def forget_leases(here: KubeWorld, nodes: list[str]) -> None:
    for node in nodes:
        with suppress(NotFound):
            await here.client.delete(LEASES, node, NODE_LEASES)


def limits(here: KubeWorld, max_failures: int = 0) -> list[dict[str, Any]]:
    """Two tiers. With the default, one failure exhausts the first."""
    return [
        {"name": name, "capacityTier": f"{here.namespace}-{name}", "maxFailures": allowed}
        for name, allowed in (("spot-a", max_failures), ("on-demand", -1))
    ]


async def running(here: KubeWorld) -> list[str]:
    await lease_namespace(here)
    await here.submit(tiers=limits(here))
    await here.run(1)
    await eventually(lambda: here.has_phase("Running"))
    return await nodes_of(here, 1)


async def untouched(here: KubeWorld) -> None:
    status = await here.status()
    assert (status["tier"], status["attempt"], status["failures"], status["phase"]) == ("spot-a", 1, 0, "Running")


async def test_a_short_silence_of_all_nodes_counts_no_failure(api_server: ApiServer) -> None:
    """The Leases show the silence of all nodes before the node controller marks the second one."""
    async with world(api_server) as here, here.operator():
        nodes = await running(here)
        for node in nodes:
            await renewed(here, node, seconds_ago=45)
        for node in nodes:
            await here.set_node(node, ready="Unknown")
            message = await message_of(here, "Degraded", "True", "ContactLost")
            assert "silent" in message
            await here.pass_time(3)
        await untouched(here)
        await here.pass_time(25)
        for node in nodes:
            await renewed(here, node, seconds_ago=1)
            await here.set_node(node, ready="True")
            await here.pass_time(1)
        await message_of(here, "Degraded", "False", "AsExpected")
        await untouched(here)
        await forget_leases(here, nodes)


async def test_nodes_that_stay_silent_count_after_contact_timeout(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        nodes = await running(here)
        for node in nodes:
            await renewed(here, node, seconds_ago=45)
        for node in nodes:
            await here.set_node(node, ready="Unknown")
        await message_of(here, "Degraded", "True", "ContactLost")
        await here.pass_time(90)
        await untouched(here)
        await here.pass_time(15)
        await eventually(lambda: here.is_on("on-demand", 2))
        assert (await here.status())["failures"] == len(nodes)
        await forget_leases(here, nodes)


async def test_a_single_silent_node_counts_at_once(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        nodes = await running(here)
        for node in nodes[:-1]:
            await renewed(here, node, seconds_ago=8)
        await renewed(here, nodes[-1], seconds_ago=45)
        await here.set_node(nodes[-1], ready="Unknown")
        await eventually(lambda: here.is_on("on-demand", 2))
        assert (await here.status())["failures"] == 1
        assert "NodeLost" in await here.events()
        await forget_leases(here, nodes)


async def test_a_node_that_is_lost_during_a_start_counts_and_has_an_event(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit(tiers=limits(here, max_failures=3))
        await eventually(lambda: here.rayjob(1))
        await here.pod(1, "head", 0)
        await here.pod(1, "worker", 0, run=False)
        starting = await here.pod(1, "worker", 1)
        await here.set_pod(starting, phase="Pending", conditions=[{"type": "PodScheduled", "status": "True"}])
        await here.idle()
        node = (await here.client.get(PODS, starting, here.namespace))["spec"]["nodeName"]
        await here.set_node(node, ready="Unknown")

        async def counted() -> bool:
            return (await here.status())["failures"] == 1 and "NodeLost" in await here.events()

        await eventually(counted)
        assert await here.is_on("spot-a", 1)


async def crash(here: KubeWorld, attempt: int) -> None:
    """Create the head pod with a container that has ended. The kubelet stored the end of its log."""
    await eventually(lambda: here.rayjob(attempt))
    head = await here.pod(attempt, "head", 0)
    ended = {"exitCode": 2, "reason": "Error", "message": f"Usage: ray start [OPTIONS]\n{BOGUS}\n"}
    container = {"name": "ray", "image": "ray", "imageID": "ray", "ready": False, "restartCount": 0}
    await here.set_pod(head, phase="Failed", containerStatuses=[{**container, "state": {"terminated": ended}}])


async def gone(here: KubeWorld) -> bool:
    return await here.rayjobs() == []


async def test_a_crashing_head_exhausts_no_tier_and_fails_the_job_after_the_crash_limit(
    api_server: ApiServer,
) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit(tiers=limits(here))
        pause = FIRST_BACKOFF
        for attempt in range(1, CRASH_LIMIT):
            await crash(here, attempt)
            message = await message_of(here, "Degraded", "True", "CrashLoop")
            assert "exit code 2" in message
            assert BOGUS in message
            await eventually(lambda: gone(here))
            with suppress(NotFound):
                await here.collect(attempt)
            await here.pass_time(pause - 2)
            assert (await here.status())["attempt"] == attempt, "the next attempt started before the backoff ended"
            await here.pass_time(4)
            pause *= 2
        await crash(here, CRASH_LIMIT)
        await eventually(lambda: here.has_phase("Failed"))
        status = await here.status()
        assert (status["tier"], status["attempt"], status["failures"]) == ("spot-a", CRASH_LIMIT, 0)
        assert [tier.get("spent", "") for tier in status["tiers"]] == [""]
        completed = await here.condition("Completed")
        assert completed["reason"] == "CrashLoop"
        assert BOGUS in completed["message"]


async def test_a_slow_start_of_ray_is_not_a_lack_of_capacity(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        tiers = [{**tier, "provisionTimeout": "40s"} for tier in limits(here)]
        await here.submit(tiers=tiers, startTimeout="5m")
        await eventually(lambda: here.rayjob(1))
        for role, index in (("head", 0), ("worker", 0), ("worker", 1)):
            pod = await here.pod(1, role, index)
            await here.set_pod(pod, conditions=[{"type": "Ready", "status": "False"}])

        async def waits() -> bool:
            found = await here.condition("Provisioned")
            return (found["status"], found["reason"]) == ("False", "WaitingForRay")

        await eventually(waits)
        for _ in range(4):
            await here.pass_time(60)
        assert await here.is_on("spot-a", 1)
        await here.pass_time(70)

        async def ended() -> bool:
            return [entry["reason"] for entry in (await here.status())["attempts"]] == ["StartTimeout"]

        await eventually(ended)
        assert (await here.status())["failures"] == 0
        assert names.attempt_name("digits", 1) not in await here.rayjobs()
