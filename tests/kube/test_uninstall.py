"""The charts are uninstalled while a job runs: what docs/runbook.md says about each order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from spotladder.clusters.errors import ApiError, NotFound
from spotladder.custom_resources import FINALIZER
from spotladder.workloads import names
from tests.kube.apiserver import ApiServer
from tests.kube.world import CRDS, World, eventually, install_kinds, world


async def running(here: World) -> None:
    """A job under way, and its controller."""
    await here.submit()
    await here.run(1)
    await eventually(lambda: here.has_phase("Running"))


async def test_without_its_controller_a_job_trains_on_and_the_next_controller_takes_it_over(
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
            await eventually(lambda: shows(here, 40))
            await here.quiet()
            assert await here.is_on("spot-a", 1)
            assert await here.has_phase("Running")
            assert [pod["metadata"]["uid"] for pod in await here.pods(1)] == pods
            assert await here.rayjobs() == [names.attempt_name("digits", 1)]


async def test_without_a_controller_a_deleted_job_waits_for_one_which_lets_it_commit(api_server: ApiServer) -> None:
    async with world(api_server) as here:
        async with here.operator():
            await running(here)
        await here.delete()
        job = await here.job()
        assert FINALIZER in job["metadata"]["finalizers"]
        assert await here.rayjobs() == [names.attempt_name("digits", 1)]
        async with here.operator():
            await ends_after_its_notice(here)


@pytest.fixture
def own_server(api_server: ApiServer) -> Iterator[ApiServer]:
    """A server of this test: the jobs of all namespaces go with their definition."""
    del api_server  # which has found out whether there is one
    with ApiServer() as server:
        asyncio.run(install_kinds(server))
        yield server


DEFINITION = "tieredjobs.spotladder.io"


async def test_with_their_definition_all_jobs_end_in_good_order_and_it_can_be_made_again(own_server: ApiServer) -> None:
    async with world(own_server) as here, here.operator():
        await running(here)
        await here.client.delete(CRDS, DEFINITION)
        await ends_after_its_notice(here)
        await eventually(lambda: without_definition(here))
        assert await here.rayjobs() == []
        await here.quiet()

        async def waits_for_it() -> bool:
            await here.clock.advance(1)
            return here.session is not None and "the kind is not known" in here.session.health.cause

        await eventually(waits_for_it)
        await install_kinds(own_server)
        await here.clock.advance(60)
        await here.submit("again")
        await here.run(1, "again")
        await eventually(lambda: here.has_phase("Running", "again"))


async def test_without_a_controller_the_definition_waits_and_the_next_one_ends_all_jobs(own_server: ApiServer) -> None:
    async with world(own_server) as here:
        async with here.operator():
            await running(here)
        await here.client.delete(CRDS, DEFINITION)
        await eventually(lambda: is_being_deleted(here))
        with pytest.raises(ApiError, match="create not allowed while custom resource definition is terminating"):
            await here.submit("late")
        assert not await without_definition(here)
        assert await here.rayjobs() == [names.attempt_name("digits", 1)]
        assert await shows_no_notice(here)
        async with here.operator():
            await ends_after_its_notice(here)
            await eventually(lambda: without_definition(here))
        assert await here.rayjobs() == []


async def test_the_attempts_of_jobs_go_with_the_definition_of_rayjobs_without_a_notice(own_server: ApiServer) -> None:
    """What is lost is one failure, and no attempt is launched until the kind is there again."""
    async with world(own_server) as here, here.operator():
        await running(here)
        await here.client.delete(CRDS, "rayjobs.ray.io")
        await eventually(lambda: without_definition(here, "rayjobs.ray.io"))
        await here.quiet()
        assert await shows_no_notice(here)
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


async def without_definition(here: World, name: str = DEFINITION) -> bool:
    try:
        await here.client.get(CRDS, name)
    except NotFound:
        return True
    return False


async def is_being_deleted(here: World) -> bool:
    return "deletionTimestamp" in (await here.job())["metadata"]


async def shows_no_notice(here: World) -> bool:
    return not any(names.NOTICE in pod["metadata"].get("annotations", {}) for pod in await here.pods(1))


async def ends_after_its_notice(here: World) -> None:
    """The program is asked to commit, and only then its attempt is removed, and the job let go."""

    async def told() -> bool:
        return all(names.NOTICE in pod["metadata"].get("annotations", {}) for pod in await here.pods(1))

    await eventually(told)
    assert await here.rayjobs() == [names.attempt_name("digits", 1)]
    here.bucket.commit(here.namespace, "digits", attempt=1, step=50)
    await here.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed",
                      message="Job entrypoint command failed with exit code 75")  # fmt: skip
    await eventually(lambda: removed(here))
    await here.collect(1)
    await eventually(lambda: gone(here))


async def removed(here: World) -> bool:
    return not await here.rayjobs()


async def shows(here: World, step: int) -> bool:
    return (await here.status()).get("progress", {}).get("step") == step


async def gone(here: World) -> bool:
    try:
        await here.job()
    except NotFound:
        return True
    return False
