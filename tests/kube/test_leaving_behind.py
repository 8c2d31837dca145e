"""The next attempt on another tier starts while the ended one is being removed."""

from __future__ import annotations

from spotladder.clusters.transport import Object
from spotladder.core.situation import HANDOVER_GRACE_PERIOD
from spotladder.workloads import names
from spotladder.workloads.rayjob.records import RAYJOBS
from tests.kube.apiserver import ApiServer
from tests.kube.world import KubeWorld, eventually, world


def strict(kube: KubeWorld) -> list[Object]:
    """Tiers that tolerate no failure."""
    return [
        {"name": name, "capacityTier": f"{kube.namespace}-{name}", "maxFailures": 0, "provisionTimeout": "1h"}
        for name in ("spot-a", "on-demand")
    ]


async def keep(kube: KubeWorld, *, kept: bool = True) -> None:
    """Let a finalizer keep the RayJob of attempt 1 after its deletion, or remove the finalizer."""
    body = {"metadata": {"finalizers": ["example.com/slow"] if kept else []}}
    await kube.client.merge(RAYJOBS, names.attempt_name("digits", 1), kube.namespace, body=body)


async def nodes_of_left(kube: KubeWorld) -> list[tuple[int, str, int]]:
    status = await kube.status()
    return [(left["number"], left["tier"], left["nodes"]) for left in status.get("removing") or []]


async def is_being_deleted(kube: KubeWorld) -> bool:
    return "deletionTimestamp" in (await kube.rayjob(1))["metadata"]


async def has_moved(kube: KubeWorld) -> None:
    """A job whose attempt 1 has lost a worker: the RayJob and the other worker still exist."""
    await kube.submit(tiers=strict(kube))
    await kube.begin(1, "spot-a")
    await kube.program_starts(1)
    await keep(kube)
    await kube.kill_worker(1)
    await eventually(lambda: kube.is_on("on-demand", 2))


async def test_the_next_rayjob_exists_while_a_finalizer_keeps_the_ended_one(api_server: ApiServer) -> None:
    async with world(api_server) as kube:
        async with kube.operator():
            await has_moved(kube)
            await eventually(lambda: kube.rayjob(2))
            await eventually(lambda: is_being_deleted(kube))
            assert await nodes_of_left(kube) == [(1, "spot-a", 1)]
            await kube.run(2)
            await eventually(lambda: kube.has_phase("Running"))
            await kube.pass_time(HANDOVER_GRACE_PERIOD)
            status = await kube.status()
            assert (status["failures"], [entry["reason"] for entry in status["attempts"]]) == (
                1,
                ["MaxFailuresExceeded"],
            )
        async with kube.operator():  # a new controller
            await kube.pass_time(1)
            assert [number for number, _, _ in await nodes_of_left(kube)] == [1]
            await kube.collect(1)
            await keep(kube, kept=False)

            async def gone() -> bool:
                await kube.pass_time(15)
                return await nodes_of_left(kube) == [] and await kube.rayjobs() == ["digits-a002"]

            await eventually(gone)
            await kube.succeed(2)
            assert (await kube.status())["failures"] == 1
