"""The reconciler from the first tier to the end of a job, against a fake API server in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from spotladder.checkpoints.log import CommitLog
from spotladder.clusters.errors import Conflict
from spotladder.clusters.fake import FakeApiServer, FakeClient
from spotladder.core.codec import load_state
from spotladder.core.elastic import BEGIN_DELAY
from spotladder.core.model import Stage
from spotladder.core.situation import REMOVAL_DELAY
from spotladder.custom_resources import FINALIZER
from spotladder.operator import leader
from spotladder.resources import DISRUPTION_BUDGETS, NETWORK_POLICIES, PODS, TIEREDJOBS
from spotladder.workloads import names
from spotladder.workloads.rayjob.records import RAYJOBS
from tests.kube.world import KubeWorld, eventually
from tests.operator.memory_world import NAMESPACE, filled_world, world_in_memory


@asynccontextmanager
async def memory() -> AsyncIterator[KubeWorld]:
    """A namespace on an API server in memory. Only the operator runs; the test does the rest."""
    async with filled_world() as here, here.operator():
        yield here


async def running(here: KubeWorld) -> None:
    """A job whose first attempt is ready."""
    await here.submit()
    await eventually(lambda: here.is_on("spot-a", 1))
    await here.run(1)
    await eventually(lambda: here.has_phase("Running"))


async def test_a_job_that_loses_its_workers_falls_back_and_completes() -> None:
    async with memory() as here:
        await running(here)
        here.bucket.commit(NAMESPACE, "digits", attempt=1, step=40)
        await here.kill_worker(1)
        await here.kill_worker(1)
        await eventually(lambda: here.has_phase("Draining"))
        await here.collect(1)
        await eventually(lambda: here.is_on("spot-b", 2))
        await here.run(2)
        await eventually(lambda: here.has_phase("Running"))
        await here.report(2, jobDeploymentStatus="Complete", jobStatus="SUCCEEDED")
        await eventually(lambda: here.has_phase("Succeeded"))
        status = await here.status()
        assert (status["attempts"][0]["reason"], status["failures"]) == ("MaxFailuresExceeded", 2)
        assert (await here.condition("Completed"))["status"] == "True"

        async def recorded() -> bool:  # Events are written after the jobs that wait.
            events = set(await here.events())
            return {"FellBack", "Completed"} <= events and here.bucket.ended == [("digits", "Succeeded")]

        await eventually(recorded)


async def test_an_unchanged_job_is_not_written() -> None:
    async with memory() as here:
        await running(here)
        await here.pass_time(15)
        before = server_of(here).writes[:]
        await here.pass_time(20)
        assert [write for write in server_of(here).writes[len(before) :] if write[1] == TIEREDJOBS.plural] == []


async def test_an_attempt_is_persisted_before_its_objects_are_created_once() -> None:
    async with memory() as here:
        await running(here)
        writes = [write for write in server_of(here).writes if write[0] in ("apply", "patch status")]
        first = next(index for index, write in enumerate(writes) if write[0] == "apply")
        assert ("patch status", TIEREDJOBS.plural) in writes[:first]
        made = [DISRUPTION_BUDGETS.plural, NETWORK_POLICIES.plural, RAYJOBS.plural]
        assert [kind for verb, kind in writes if verb == "apply"] == made


async def test_the_next_leader_continues_the_same_attempt() -> None:
    async with memory() as here:
        await running(here)
        status = await here.status()
        async with here.operator():
            await here.idle()
            await here.pass_time(5)
            assert (await here.rayjobs(), (await here.status())["attempt"]) == (["digits-a001"], 1)
            assert (await here.status())["state"] == status["state"]


async def test_a_write_with_a_stale_resource_version_conflicts_and_the_job_is_reconciled_again() -> None:
    async with memory() as here:
        await running(here)
        assert here.runtime
        old = here.runtime.jobs.get("digits", NAMESPACE)
        assert old is not None
        await here.client.merge(TIEREDJOBS, "digits", NAMESPACE, body={"metadata": {"annotations": {"by": "a user"}}})
        with pytest.raises(Conflict):
            await here.runtime.reconcile._persistence.finalize(old)
        await here.kill_worker(1)
        await eventually(lambda: failures_are(here, 1))
        job = await here.job()
        assert (job["metadata"]["annotations"]["by"], FINALIZER in job["metadata"]["finalizers"]) == ("a user", True)


async def test_a_job_with_a_missing_capacitytier_starts_once_the_capacitytier_exists() -> None:
    async with memory() as here:
        await here.submit(tiers=[{"name": "late", "capacityTier": f"{NAMESPACE}-late"}])
        await eventually(lambda: reason_is(here, "Valid", "UnknownCapacityTier"))
        assert await here.rayjobs() == []
        await here.capacity("late")
        await eventually(lambda: here.is_on("late", 1))
        assert (await here.condition("Valid"))["status"] == "True"


async def test_a_job_whose_stored_state_cannot_be_read_is_held_and_keeps_its_attempt() -> None:
    async with filled_world() as here:
        async with here.operator():
            await running(here)
        status = {"state": '{"version":2}'}
        await here.client.merge(TIEREDJOBS, "digits", NAMESPACE, body={"status": status}, subresource="status")
        async with here.operator():
            await eventually(lambda: reason_is(here, "Valid", "StateUnreadable"))
            await here.pass_time(300)
            assert (await here.rayjobs(), (await here.status())["state"]) == (["digits-a001"], '{"version":2}')


async def test_every_job_is_reconciled_again_within_a_minute_of_the_resync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader.random, "random", lambda: 0.5)
    async with memory() as here:
        await running(here)
        assert here.runtime
        added: list[Any] = []
        monkeypatch.setattr(here.runtime.queue, "add_at", lambda key, seconds: added.append((key, seconds)))
        await here.clock.advance(here.runtime._settings.resync)
        assert ((NAMESPACE, "digits"), 30.0) in added


async def test_an_outage_of_the_api_server_does_not_end_the_attempt() -> None:
    async with memory() as here:
        await running(here)
        server_of(here).down = True
        await here.clock.advance(120)
        server_of(here).down = False
        await here.pass_time(30)
        assert (await here.status())["attempt"] == 1
        await here.kill_worker(1)
        await eventually(lambda: failures_are(here, 1))


async def test_a_deleted_job_is_drained_before_its_objects_are_deleted() -> None:
    async with memory() as here:
        await running(here)
        await here.delete()
        await eventually(lambda: is_noticed(here))
        assert "deletionTimestamp" in (await here.job())["metadata"]
        message = "Job entrypoint command failed with exit code 75"
        await here.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", message=message)

        async def gone() -> bool:
            await here.collect(1)
            await here.clock.advance(1.0)
            return not server_of(here).objects(TIEREDJOBS)

        await eventually(gone)
        assert (await here.rayjobs(), server_of(here).objects(DISRUPTION_BUDGETS)) == ([], {})
        assert server_of(here).objects(NETWORK_POLICIES) == {}


def server_of(here: KubeWorld) -> FakeApiServer:
    assert isinstance(here.client, FakeClient)
    return here.client.server


async def failures_are(here: KubeWorld, number: int) -> bool:
    return (await here.status()).get("failures") == number


async def reason_is(here: KubeWorld, kind: str, reason: str) -> bool:
    return (await here.condition(kind)).get("reason") == reason


async def is_noticed(here: KubeWorld) -> bool:
    pods: list[dict[str, Any]] = await here.pods(1)
    return bool(pods) and all(names.NOTICE in (pod["metadata"].get("annotations") or {}) for pod in pods)


async def test_an_elastic_job_continues_without_a_lost_worker_and_grows_again() -> None:
    async with memory() as here:
        await here.submit(elastic={"min": 1})
        await eventually(lambda: here.is_on("spot-a", 1))
        assert variables_of(await here.rayjob(1))["SPOTLADDER_SIZES"] == "1,2"
        await here.pod(1, "head", 0)
        await here.pod(1, "worker", 0)
        await here.report(1, jobDeploymentStatus="Initializing")
        await here.pass_time(15)
        assert await here.has_phase("Pending"), "KubeRay submits the program when all pods are ready"
        await here.pod(1, "worker", 1)
        await eventually(lambda: here.has_phase("Running"))
        await here.report(1, jobDeploymentStatus="Running", jobStatus="RUNNING")
        trains_with(here, 2)
        await here.pass_time(15)

        await here.kill_worker(1)
        await eventually(lambda: stage_is(here, Stage.RECOVERING))
        await here.pass_time(15)
        assert await stage_is(here, Stage.RECOVERING), "its ranks have not started again"
        trains_with(here, 1)
        await eventually(lambda: stage_is(here, Stage.RUNNING))
        assert load_state((await here.status())["state"]).message == "1 of 2 workers"

        await here.pod(1, "worker", 2)
        trains_with(here, 2)
        await here.pass_time(15)
        status = await here.status()
        assert await stage_is(here, Stage.RUNNING)
        assert (status["attempt"], status["failures"]) == (1, 1)


async def test_an_elastic_job_begins_without_the_workers_that_have_no_node() -> None:
    async with memory() as here:
        await here.submit(elastic={"min": 1})
        await eventually(lambda: here.is_on("spot-a", 1))
        await here.pod(1, "head", 0)
        await here.pod(1, "worker", 0)
        left_out = await here.pod(1, "worker", 1, run=False)
        await here.raycluster(1)
        await here.report(1, jobDeploymentStatus="Initializing")
        await here.pass_time(BEGIN_DELAY / 2)
        status = await here.status()
        assert (status["phase"], (await here.worker_group(1))["replicas"]) == ("Pending", 2)
        assert (status["waiting"]["timer"], status["waiting"]["then"]) == (
            "elastic.min",
            "the program begins with fewer workers",
        )
        await here.pass_time(BEGIN_DELAY / 2)
        group = await here.worker_group(1)
        assert (group["replicas"], group["scaleStrategy"]) == (1, {"workersToDelete": [left_out]})

        await here.client.delete(PODS, left_out, NAMESPACE, grace=0)
        await here.report(1, jobDeploymentStatus="Running", jobStatus="RUNNING")
        await eventually(lambda: here.has_phase("Running"))
        await eventually(lambda: asks_for(here, 2))
        await here.pod(1, "worker", 2, run=False)
        trains_with(here, 1)
        await here.pass_time(600)
        status = await here.status()
        assert await stage_is(here, Stage.RUNNING)
        assert (status["attempt"], status["failures"]) == (1, 0)
        assert load_state(status["state"]).message == "1 of 2 workers"


async def asks_for(here: KubeWorld, workers: int) -> bool:
    return bool((await here.worker_group(1))["replicas"] == workers)


async def stage_is(here: KubeWorld, stage: Stage) -> bool:
    return load_state((await here.status())["state"]).stage is stage


def trains_with(here: KubeWorld, workers: int) -> None:
    """The program starts with this number of workers."""
    CommitLog(here.bucket.store, "digits", namespace=NAMESPACE).start(1, "spot-a", hands_over=True, workers=workers)


def variables_of(rayjob: dict[str, Any]) -> dict[str, str]:
    (group,) = rayjob["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    return {entry["name"]: entry.get("value", "") for entry in group["template"]["spec"]["containers"][0]["env"]}


@pytest.mark.parametrize("restarts", [False, True], ids=["one controller", "a new controller at every step"])
async def test_a_worker_with_a_notice_is_replaced_within_the_attempt(restarts: bool) -> None:
    here = world_in_memory()
    await here.make_namespace()
    for tier in ("spot-a", "spot-b", "on-demand"):
        await here.capacity(tier, notice="60s")

    async def notice() -> None:
        await running(here)
        await here.raycluster(1)
        CommitLog(here.bucket.store, "digits", namespace=NAMESPACE).start(1, "spot-a", hands_over=True)
        going["name"] = await here.announce(1)
        await eventually(lambda: replicas(3))
        assert (await here.worker_group(1))["scaleStrategy"]["workersToDelete"] == []

    async def come() -> None:
        await here.pod(1, "worker", 2)
        await eventually(reported)
        assert await replicas(3), "a pod that is being deleted would not receive the notice"

    async def remove() -> None:
        await here.clock.advance(REMOVAL_DELAY)
        await eventually(lambda: replicas(2))
        assert (await here.worker_group(1))["scaleStrategy"]["workersToDelete"] == [going["name"]]

    async def gone() -> None:
        await here.client.delete(PODS, going["name"], NAMESPACE, grace=0)
        await eventually(handed_over)
        assert await here.rayjobs() == ["digits-a001"]

    async def replicas(number: int) -> bool:
        return bool((await here.worker_group(1))["replicas"] == number)

    async def reported() -> bool:
        found = {pod["metadata"]["name"]: pod["metadata"].get("annotations") or {} for pod in await here.pods(1)}
        heard = [name for name, annotations in found.items() if names.NOTICE in annotations]
        return heard == [going["name"]] and '"handover"' in found[going["name"]][names.NOTICE]

    async def handed_over() -> bool:
        state = load_state((await here.status())["state"])
        assert (state.stage, state.last_number, state.failures) in ((Stage.REPLACING, 1, 1), (Stage.RUNNING, 1, 1))
        return state.stage is Stage.RUNNING and state.attempt is not None and not state.attempt.leaving

    going: dict[str, str] = {}
    if restarts:
        for step in (notice, come, remove, gone):
            async with here.operator():
                await step()
        return
    async with here.operator():
        for step in (notice, come, remove, gone):
            await step()
