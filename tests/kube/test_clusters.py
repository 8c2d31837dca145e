"""Two clusters: a job moves from one to the other, even if the first one fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from spotladder.api.stored import FORCE_DELETE
from spotladder.operator.leader import LeaderRuntime
from spotladder.resources import DISRUPTION_BUDGETS, NETWORK_POLICIES, TIEREDJOBS
from spotladder.workloads import names
from spotladder.workloads.rayjob.records import RAYJOBS
from tests.kube.apiserver import ApiServer
from tests.kube.second_cluster import SecondCluster, second_cluster
from tests.kube.world import KubeWorld, eventually, world

LIMITS = {"maxFailures": 1, "provisionTimeout": "10m"}


@asynccontextmanager
async def two_clusters(
    api_server: ApiServer, second_server: ApiServer
) -> AsyncIterator[tuple[KubeWorld, SecondCluster]]:
    """The home cluster, and `east` with its own tier `spot-east`."""
    async with world(api_server) as kube, second_cluster(second_server, kube) as east:
        await kube.capacity("spot-east", cluster="east")
        yield kube, east


def tiers(kube: KubeWorld, *order: str) -> list[dict[str, Any]]:
    return [{"name": name, "capacityTier": f"{kube.namespace}-{name}", **LIMITS} for name in order]


async def submit(kube: KubeWorld, name: str = "digits", **spec: Any) -> None:
    await kube.submit(name, tiers=tiers(kube, "spot-east", "on-demand"), **spec)


async def running_in_east(kube: KubeWorld, east: SecondCluster, **spec: Any) -> None:
    await submit(kube, **spec)
    await east.run(1)
    await eventually(lambda: kube.has_phase("Running"))


async def up(runtime: LeaderRuntime, name: str = "east") -> None:
    async def is_up() -> bool:
        return not runtime.clusters.problem(name)

    await eventually(is_up)


async def down(runtime: LeaderRuntime) -> None:
    async def is_down() -> bool:
        return bool(runtime.clusters.problem("east"))

    await eventually(is_down)


async def none_left(cluster: KubeWorld) -> bool:
    others = [
        found
        for kind in (DISRUPTION_BUDGETS, NETWORK_POLICIES)
        async for page in cluster.client.pages(kind, cluster.namespace)
        for found in page.items
    ]
    return await cluster.rayjobs() == [] and not others


async def test_a_job_moves_from_one_cluster_to_the_other(api_server: ApiServer, second_server: ApiServer) -> None:
    async with two_clusters(api_server, second_server) as (kube, east), kube.operator(sources={"east": east.source}):
        await running_in_east(kube, east)
        made = (await east.rayjob(1))["metadata"]
        assert "ownerReferences" not in made
        assert made["labels"][names.JOB_UID] == (await kube.job())["metadata"]["uid"]
        assert made["labels"][names.HOME]
        assert await kube.rayjobs() == []
        kube.bucket.commit(kube.namespace, "digits", attempt=1, step=40)
        await east.kill_worker(1)
        await east.kill_worker(1)
        await eventually(lambda: none_left(east))
        await east.collect(1)
        await kube.run(2)
        await eventually(lambda: kube.has_phase("Running"))
        status = await kube.status()
        assert (status["tier"], status["failures"]) == ("on-demand", 2)
        assert status["attempts"][0]["cluster"] == "east"
        assert names.HOME not in (await kube.rayjob(2))["metadata"]["labels"]
        await kube.succeed(2)


async def test_a_job_leaves_a_lost_cluster_which_is_cleaned_up_after_it_returns(
    api_server: ApiServer, second_server: ApiServer
) -> None:
    async with (
        two_clusters(api_server, second_server) as (kube, east),
        kube.operator(sources={"east": east.source}) as runtime,
    ):
        await running_in_east(kube, east)
        await kube.program_starts(1)
        await east.proxy.cut()
        await down(runtime)
        await eventually(lambda: degraded(kube, "ClusterUnreachable"))
        assert "east" in (await kube.condition("Degraded"))["message"]
        assert await kube.is_on("spot-east", 1)  # The job stays until provisionTimeout.
        await kube.pass_time(601)
        await eventually(lambda: kube.rayjob(2))
        assert await kube.is_on("on-demand", 2)
        await kube.run(2)
        await eventually(lambda: kube.has_phase("Running"))
        assert await east.rayjobs() == ["digits-a001"]
        east.proxy.mend()
        await kube.pass_time(45)  # The backoff between two checks has grown.
        await eventually(lambda: none_left(east))
        await east.collect(1)
        await eventually(lambda: degraded(kube, "AsExpected"))
        assert await kube.rayjobs() == ["digits-a002"]
        assert (await kube.status())["failures"] == 1  # The lost attempt counts once.


async def degraded(kube: KubeWorld, reason: str) -> bool:
    return (await kube.condition("Degraded")).get("reason") == reason


async def test_a_short_outage_ends_no_attempt(api_server: ApiServer, second_server: ApiServer) -> None:
    async with (
        two_clusters(api_server, second_server) as (kube, east),
        kube.operator(sources={"east": east.source}) as runtime,
    ):
        await running_in_east(kube, east)
        await kube.program_starts(1)
        await east.proxy.cut()
        await down(runtime)
        await east.kill_worker(1)  # The controller does not observe this.
        await east.pod(1, "worker", 7)
        east.proxy.mend()
        await up(runtime)

        async def counted() -> bool:
            status = await kube.status()
            return (status["attempt"], status["failures"]) == (1, 1)

        await eventually(counted)
        await eventually(lambda: provisioned(kube))
        assert await east.rayjobs() == ["digits-a001"]


async def provisioned(kube: KubeWorld) -> bool:
    return (await kube.condition("Provisioned")).get("status") == "True"


async def test_a_hanging_cluster_does_not_delay_jobs_of_others(api_server: ApiServer, second_server: ApiServer) -> None:
    async with (
        two_clusters(api_server, second_server) as (kube, east),
        kube.operator(sources={"east": east.source}, workers=4) as runtime,
    ):
        await up(runtime)
        east.proxy.delay = 60.0
        for index in range(8):
            await submit(kube, f"hanging-{index}")
        await kube.submit("at-home")
        await eventually(lambda: kube.rayjob(1, "at-home"), limit=5.0)


async def test_objects_of_a_deleted_job_are_cleaned_up_and_others_are_kept(
    api_server: ApiServer, second_server: ApiServer
) -> None:
    async with (
        two_clusters(api_server, second_server) as (kube, east),
        kube.operator(sources={"east": east.source}) as runtime,
    ):
        await running_in_east(kube, east)
        made = await east.rayjob(1)
        await foreign(east, made, "of-another-home", {names.HOME: "another-home"})
        await foreign(east, made, "without-labels", {names.HOME: None, names.MANAGED_BY: None})
        await east.proxy.cut()
        await down(runtime)
        await kube.delete()
        for _ in range(12):
            await kube.pass_time(20)
        assert not await kube.is_gone()
        assert "1 (east)" in (await kube.condition("Degraded"))["message"]
        body = {"metadata": {"annotations": {FORCE_DELETE: "true"}}}
        await kube.client.merge(TIEREDJOBS, "digits", kube.namespace, body=body)
        await eventually(kube.is_gone)
        east.proxy.mend()
        await kube.pass_time(45)  # The backoff between two checks has grown.

        async def swept() -> bool:
            return await east.rayjobs() == ["of-another-home", "without-labels"]

        await eventually(swept)


async def foreign(east: SecondCluster, like: dict[str, Any], name: str, labels: dict[str, str | None]) -> None:
    """Create a RayJob with the labels of an attempt, changed by `labels`."""
    found = {key: value for key, value in {**like["metadata"]["labels"], **labels}.items() if value is not None}
    metadata = {"name": name, "namespace": east.namespace, "labels": found}
    body = {"apiVersion": RAYJOBS.api_version, "kind": "RayJob", "metadata": metadata, "spec": like["spec"]}
    await east.client.create(RAYJOBS, body)
