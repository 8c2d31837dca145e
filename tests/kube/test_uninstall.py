"""Uninstalling the charts while a job runs, in the orders that docs/runbook.md describes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from spotladder.clusters.errors import ApiError, NotFound
from spotladder.custom_resources import FINALIZER
from spotladder.workloads import names
from tests.kube.apiserver import ApiServer
from tests.kube.world import CRDS, KubeWorld, eventually, install_kinds, world


async def running(here: KubeWorld) -> None:
    """Start a job on the current controller."""
    await here.submit()
    await here.run(1)
    await eventually(lambda: here.has_phase("Running"))


async def test_without_a_controller_a_job_continues_and_the_next_controller_takes_it_over(
    api_server: ApiServer,
) -> None:
    async with world(api_server) as here:
        async with here.operator():
            await running(here)
        pods = [pod["metadata"]["uid"] for pod in await here.pods(1)]
        here.bucket.commit(here.namespace, "digits", attempt=1, step=40)
        await here.clock.advance(3600)
        assert await here.rayjobs() == [names.attempt_name("digits", 1)]
        async with here.operator():
            await eventually(lambda: has_committed(here, 40))
            await here.idle()
            assert await here.is_on("spot-a", 1)
            assert await here.has_phase("Running")
            assert [pod["metadata"]["uid"] for pod in await here.pods(1)] == pods
            assert await here.rayjobs() == [names.attempt_name("digits", 1)]


async def test_without_a_controller_a_deleted_job_waits_for_the_next_one_to_drain_it(api_server: ApiServer) -> None:
    async with world(api_server) as here:
        async with here.operator():
            await running(here)
        await here.delete()
        job = await here.job()
        assert FINALIZER in job["metadata"]["finalizers"]
        assert await here.rayjobs() == [names.attempt_name("digits", 1)]
        async with here.operator():
            await ends_after_a_notice(here)


@pytest.fixture
def own_server(api_server: ApiServer) -> Iterator[ApiServer]:
    """A separate API server, because deleting the CRD deletes the jobs of all namespaces."""
    del api_server  # `api_server` skips the test without an API server.
    with ApiServer() as server:
        asyncio.run(install_kinds(server))
        yield server


CRD_NAME = "tieredjobs.spotladder.io"


async def test_deleting_the_crd_drains_all_jobs_and_it_can_be_installed_again(own_server: ApiServer) -> None:
    async with world(own_server) as here, here.operator():
        await running(here)
        await here.client.delete(CRDS, CRD_NAME)
        await ends_after_a_notice(here)
        await eventually(lambda: crd_is_gone(here))
        assert await here.rayjobs() == []
        await here.idle()

        async def waits_for_the_crd() -> bool:
            await here.clock.advance(1)
            return here.runtime is not None and "the cluster does not have the kind" in here.runtime.health.cause

        await eventually(waits_for_the_crd)
        await install_kinds(own_server)
        await here.clock.advance(60)
        await here.submit("again")
        await here.run(1, "again")
        await eventually(lambda: here.has_phase("Running", "again"))


async def test_without_a_controller_a_deleted_crd_waits_for_the_next_one(own_server: ApiServer) -> None:
    async with world(own_server) as here:
        async with here.operator():
            await running(here)
        await here.client.delete(CRDS, CRD_NAME)
        await eventually(lambda: has_deletion_timestamp(here))
        with pytest.raises(ApiError, match="create not allowed while custom resource definition is terminating"):
            await here.submit("late")
        assert not await crd_is_gone(here)
        assert await here.rayjobs() == [names.attempt_name("digits", 1)]
        assert await has_no_notice(here)
        async with here.operator():
            await ends_after_a_notice(here)
            await eventually(lambda: crd_is_gone(here))
        assert await here.rayjobs() == []


async def test_deleting_the_crd_of_rayjobs_deletes_attempts_without_a_notice(own_server: ApiServer) -> None:
    """The loss is one failure, and no attempt starts until the CRD exists again."""
    async with world(own_server) as here, here.operator():
        await running(here)
        await here.client.delete(CRDS, "rayjobs.ray.io")
        await eventually(lambda: crd_is_gone(here, "rayjobs.ray.io"))
        await here.idle()
        assert await has_no_notice(here)
        await here.collect(1)
        await here.pass_time(60)

        async def not_installed() -> bool:
            found = await here.condition("Degraded")
            return (found["status"], found["reason"]) == ("True", "NotInstalled")

        await eventually(not_installed)
        await install_kinds(own_server)
        await here.pass_time(60)
        await eventually(lambda: here.rayjob(2))
        assert (await here.status())["failures"] == 1


async def crd_is_gone(here: KubeWorld, name: str = CRD_NAME) -> bool:
    try:
        await here.client.get(CRDS, name)
    except NotFound:
        return True
    return False


async def has_deletion_timestamp(here: KubeWorld) -> bool:
    return "deletionTimestamp" in (await here.job())["metadata"]


async def has_no_notice(here: KubeWorld) -> bool:
    return not any(names.NOTICE in pod["metadata"].get("annotations", {}) for pod in await here.pods(1))


async def ends_after_a_notice(here: KubeWorld) -> None:
    """Assert that the program gets a notice before its attempt is removed and the job is gone."""

    async def notified() -> bool:
        return all(names.NOTICE in pod["metadata"].get("annotations", {}) for pod in await here.pods(1))

    await eventually(notified)
    assert await here.rayjobs() == [names.attempt_name("digits", 1)]
    here.bucket.commit(here.namespace, "digits", attempt=1, step=50)
    await here.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed",
                      message="Job entrypoint command failed with exit code 75")  # fmt: skip
    await eventually(lambda: removed(here))
    await here.collect(1)
    await eventually(lambda: gone(here))


async def removed(here: KubeWorld) -> bool:
    return not await here.rayjobs()


async def has_committed(here: KubeWorld, step: int) -> bool:
    return bool((await here.status()).get("progress", {}).get("step") == step)


async def gone(here: KubeWorld) -> bool:
    try:
        await here.job()
    except NotFound:
        return True
    return False
