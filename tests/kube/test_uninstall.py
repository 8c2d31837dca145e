"""Uninstalling the charts while a job runs, in the orders that docs/runbook.md describes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from spotladder.api.stored import FINALIZER
from spotladder.clusters.errors import NotFound
from spotladder.workloads import names
from tests.kube.apiserver import ApiServer
from tests.kube.world import CRDS, KubeWorld, eventually, install_kinds, world


async def running(kube: KubeWorld) -> None:
    """Start a job on the current controller."""
    await kube.submit()
    await kube.run(1)
    await eventually(lambda: kube.has_phase("Running"))


async def test_without_a_controller_a_deleted_job_waits_for_the_next_one_to_drain_it(api_server: ApiServer) -> None:
    async with world(api_server) as kube:
        async with kube.operator():
            await running(kube)
        await kube.delete()
        job = await kube.job()
        assert FINALIZER in job["metadata"]["finalizers"]
        assert await kube.rayjobs() == [names.attempt_name("digits", 1)]
        async with kube.operator():
            await ends_after_a_notice(kube)


@pytest.fixture
def own_server(api_server: ApiServer) -> Iterator[ApiServer]:
    """A separate API server, because deleting the CRD deletes the jobs of all namespaces."""
    del api_server  # `api_server` skips the test without an API server.
    with ApiServer() as server:
        asyncio.run(install_kinds(server))
        yield server


CRD_NAME = "tieredjobs.spotladder.io"


async def test_deleting_the_crd_drains_all_jobs_and_it_can_be_installed_again(own_server: ApiServer) -> None:
    async with world(own_server) as kube, kube.operator():
        await running(kube)
        await kube.client.delete(CRDS, CRD_NAME)
        await ends_after_a_notice(kube)
        await eventually(lambda: crd_is_gone(kube))
        assert await kube.rayjobs() == []
        await kube.idle()

        async def waits_for_the_crd() -> bool:
            await kube.clock.advance(1)
            return kube.runtime is not None and "the cluster does not have the kind" in kube.runtime.health.cause

        await eventually(waits_for_the_crd)
        await install_kinds(own_server)
        await kube.clock.advance(60)
        await kube.submit("again")
        await kube.run(1, "again")
        await eventually(lambda: kube.has_phase("Running", "again"))


async def test_deleting_the_crd_of_rayjobs_deletes_attempts_without_a_notice(own_server: ApiServer) -> None:
    """The loss is one failure, and no attempt starts until the CRD exists again."""
    async with world(own_server) as kube, kube.operator():
        await running(kube)
        await kube.client.delete(CRDS, "rayjobs.ray.io")
        await eventually(lambda: crd_is_gone(kube, "rayjobs.ray.io"))
        await kube.idle()
        assert await has_no_notice(kube)
        await kube.collect(1)
        await kube.pass_time(60)

        async def not_installed() -> bool:
            found = await kube.condition("Degraded")
            return (found["status"], found["reason"]) == ("True", "NotInstalled")

        await eventually(not_installed)
        assert "KubeRay is not installed" in (await kube.condition("Degraded"))["message"]
        await kube.pass_time(3600)  # Longer than any provisionTimeout: no tier is exhausted.
        assert await kube.is_on("spot-a", 2)
        await install_kinds(own_server)
        await kube.pass_time(60)

        async def launched() -> bool:
            await kube.clock.advance(5)
            return bool(await kube.rayjob(2))

        await eventually(launched)
        assert (await kube.status())["failures"] == 1


async def crd_is_gone(kube: KubeWorld, name: str = CRD_NAME) -> bool:
    try:
        await kube.client.get(CRDS, name)
    except NotFound:
        return True
    return False


async def has_no_notice(kube: KubeWorld) -> bool:
    return not any(names.NOTICE in pod["metadata"].get("annotations", {}) for pod in await kube.pods(1))


async def ends_after_a_notice(kube: KubeWorld) -> None:
    """Assert that the program gets a notice before its attempt is removed and the job is gone."""

    async def notified() -> bool:
        return all(names.NOTICE in pod["metadata"].get("annotations", {}) for pod in await kube.pods(1))

    await eventually(notified)
    assert await kube.rayjobs() == [names.attempt_name("digits", 1)]
    kube.bucket.commit(kube.namespace, "digits", attempt=1, step=50)
    await kube.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed",
                      message="Job entrypoint command failed with exit code 75")  # fmt: skip
    await eventually(lambda: removed(kube))
    await kube.collect(1)
    await eventually(kube.is_gone)


async def removed(kube: KubeWorld) -> bool:
    return not await kube.rayjobs()
