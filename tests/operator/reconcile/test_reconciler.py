"""The reconciler from the first tier to the end of a job, against a fake API server in memory."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from spotladder.checkpoints.log import CommitLog
from spotladder.clusters.errors import Conflict
from spotladder.clusters.fake import FakeApiServer, FakeClient
from spotladder.core.codec import load_state
from spotladder.core.elastic import BEGIN_DELAY
from spotladder.core.model import Stage
from spotladder.core.situation import REMOVAL_DELAY
from spotladder.custom_resources import FINALIZER
from spotladder.operator.reconcile import reconciler
from spotladder.resources import DISRUPTION_BUDGETS, NETWORK_POLICIES, PODS, TIEREDJOBS
from spotladder.workloads import names
from spotladder.workloads.rayjob.records import RAYJOBS
from tests.kube.world import KubeWorld, eventually
from tests.operator.memory_world import NAMESPACE, filled_world, world_in_memory


@asynccontextmanager
async def memory() -> AsyncIterator[KubeWorld]:
    """A namespace on an API server in memory. Only the operator runs; the test does the rest."""
    async with filled_world() as kube, kube.operator():
        yield kube


async def running(kube: KubeWorld) -> None:
    """A job whose first attempt is ready."""
    await kube.submit()
    await eventually(lambda: kube.is_on("spot-a", 1))
    await kube.run(1)
    await eventually(lambda: kube.has_phase("Running"))


async def test_a_job_that_loses_its_workers_falls_back_and_completes() -> None:
    async with memory() as kube:
        await running(kube)
        kube.bucket.commit(NAMESPACE, "digits", attempt=1, step=40)
        await kube.kill_worker(1)
        await kube.kill_worker(1)
        await eventually(lambda: kube.is_on("spot-b", 2))
        await kube.collect(1)
        await kube.run(2)
        await eventually(lambda: kube.has_phase("Running"))
        await kube.report(2, jobDeploymentStatus="Complete", jobStatus="SUCCEEDED")
        await eventually(lambda: kube.has_phase("Succeeded"))
        status = await kube.status()
        assert (status["attempts"][0]["reason"], status["failures"]) == ("MaxFailuresExceeded", 2)
        assert (await kube.condition("Completed"))["status"] == "True"

        async def recorded() -> bool:  # Events are written after the jobs that wait.
            events = set(await kube.events())
            return {"FellBack", "Completed"} <= events and kube.bucket.ended == [("digits", "Succeeded")]

        await eventually(recorded)
        assert server_of(kube).objects(DISRUPTION_BUDGETS) == server_of(kube).objects(NETWORK_POLICIES) == {}
        applied = [kind for verb, kind in server_of(kube).writes if verb == "apply"]
        assert applied.count(DISRUPTION_BUDGETS.plural) == applied.count(NETWORK_POLICIES.plural) == 1


async def test_an_unchanged_job_is_not_written() -> None:
    async with memory() as kube:
        await running(kube)
        await kube.pass_time(15)
        before = server_of(kube).writes[:]
        await kube.pass_time(20)
        assert [write for write in server_of(kube).writes[len(before) :] if write[1] == TIEREDJOBS.plural] == []


async def test_an_attempt_is_persisted_before_its_objects_are_created_once() -> None:
    async with memory() as kube:
        await running(kube)
        writes = server_of(kube).writes
        guards = [("apply", DISRUPTION_BUDGETS.plural), ("apply", NETWORK_POLICIES.plural)]
        made = [*guards, ("create", RAYJOBS.plural)]
        assert ("patch status", TIEREDJOBS.plural) in writes[: writes.index(made[0])]
        assert [write for write in writes if write in made] == made


async def test_the_next_leader_continues_the_same_attempt() -> None:
    async with memory() as kube:
        await running(kube)
        status = await kube.status()
        async with kube.operator():
            await kube.idle()
            await kube.pass_time(5)
            assert (await kube.rayjobs(), (await kube.status())["attempt"]) == (["digits-a001"], 1)
            assert (await kube.status())["state"] == status["state"]


async def test_a_write_with_a_stale_resource_version_conflicts_and_the_job_is_reconciled_again() -> None:
    async with memory() as kube:
        await running(kube)
        assert kube.runtime
        old = kube.runtime.jobs.get("digits", NAMESPACE)
        assert old is not None
        await kube.client.merge(TIEREDJOBS, "digits", NAMESPACE, body={"metadata": {"annotations": {"by": "a user"}}})
        with pytest.raises(Conflict):
            await kube.runtime.reconcile._persistence.finalize(old)
        await kube.kill_worker(1)
        await eventually(lambda: failures_are(kube, 1))
        job = await kube.job()
        assert (job["metadata"]["annotations"]["by"], FINALIZER in job["metadata"]["finalizers"]) == ("a user", True)


async def test_a_job_with_a_missing_capacitytier_starts_once_the_capacitytier_exists() -> None:
    async with memory() as kube:
        await kube.submit(tiers=[{"name": "late", "capacityTier": f"{NAMESPACE}-late"}])
        await eventually(lambda: reason_is(kube, "Valid", "UnknownCapacityTier"))
        assert await kube.rayjobs() == []
        await kube.capacity("late")
        await eventually(lambda: kube.is_on("late", 1))
        assert (await kube.condition("Valid"))["status"] == "True"


async def test_a_job_whose_stored_state_cannot_be_read_is_held_and_keeps_its_attempt() -> None:
    async with filled_world() as kube:
        async with kube.operator():
            await running(kube)
        status = {"state": '{"version":2}'}
        await kube.client.merge(TIEREDJOBS, "digits", NAMESPACE, body={"status": status}, subresource="status")
        async with kube.operator():
            await eventually(lambda: reason_is(kube, "Valid", "StateUnreadable"))
            await kube.pass_time(300)
            assert (await kube.rayjobs(), (await kube.status())["state"]) == (["digits-a001"], '{"version":2}')


async def test_every_job_is_reconciled_again_within_a_minute_of_the_resync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "random", lambda: 0.5)
    async with memory() as kube:
        await running(kube)
        assert kube.runtime
        added: list[Any] = []
        monkeypatch.setattr(kube.runtime.queue, "add_at", lambda key, seconds: added.append((key, seconds)))
        await kube.clock.advance(kube.runtime._settings.resync)
        assert ((NAMESPACE, "digits"), 30.0) in added


async def test_an_outage_of_the_api_server_does_not_end_the_attempt() -> None:
    async with memory() as kube:
        await running(kube)
        server_of(kube).down = True
        await kube.clock.advance(120)
        server_of(kube).down = False
        await kube.pass_time(30)
        assert (await kube.status())["attempt"] == 1
        await kube.kill_worker(1)
        await eventually(lambda: failures_are(kube, 1))


async def test_a_deleted_job_is_drained_before_its_objects_are_deleted() -> None:
    async with memory() as kube:
        await running(kube)
        await kube.delete()
        await eventually(lambda: is_noticed(kube))
        assert "deletionTimestamp" in (await kube.job())["metadata"]
        message = "Job entrypoint command failed with exit code 75"
        await kube.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", message=message)

        async def gone() -> bool:
            await kube.collect(1)
            await kube.clock.advance(1.0)
            return not server_of(kube).objects(TIEREDJOBS)

        await eventually(gone)
        assert (await kube.rayjobs(), server_of(kube).objects(DISRUPTION_BUDGETS)) == ([], {})
        assert server_of(kube).objects(NETWORK_POLICIES) == {}


def server_of(kube: KubeWorld) -> FakeApiServer:
    assert isinstance(kube.client, FakeClient)
    return kube.client.server


async def failures_are(kube: KubeWorld, number: int) -> bool:
    return (await kube.status()).get("failures") == number


async def reason_is(kube: KubeWorld, kind: str, reason: str) -> bool:
    return (await kube.condition(kind)).get("reason") == reason


async def is_noticed(kube: KubeWorld) -> bool:
    pods: list[dict[str, Any]] = await kube.pods(1)
    return bool(pods) and all(names.NOTICE in (pod["metadata"].get("annotations") or {}) for pod in pods)


async def test_an_elastic_job_continues_without_a_lost_worker_and_grows_again() -> None:
    async with memory() as kube:
        await kube.submit(elastic={"min": 1})
        await eventually(lambda: kube.is_on("spot-a", 1))
        assert variables_of(await eventually(lambda: kube.rayjob(1)))["SPOTLADDER_SIZES"] == "1,2"
        await kube.pod(1, "head", 0)
        await kube.pod(1, "worker", 0)
        await kube.report(1, jobDeploymentStatus="Initializing")
        await kube.pass_time(15)
        assert await kube.has_phase("Pending"), "KubeRay submits the program when all pods are ready"
        await kube.pod(1, "worker", 1)
        await eventually(lambda: kube.has_phase("Running"))
        await kube.report(1, jobDeploymentStatus="Running", jobStatus="RUNNING")
        trains_with(kube, 2)
        await kube.pass_time(15)

        await kube.kill_worker(1)
        await eventually(lambda: stage_is(kube, Stage.RECOVERING))
        await kube.pass_time(15)
        assert await stage_is(kube, Stage.RECOVERING), "its ranks have not started again"
        trains_with(kube, 1)
        await eventually(lambda: stage_is(kube, Stage.RUNNING))
        assert load_state((await kube.status())["state"]).message == "1 of 2 workers"

        await kube.pod(1, "worker", 2)
        trains_with(kube, 2)
        await kube.pass_time(15)
        status = await kube.status()
        assert await stage_is(kube, Stage.RUNNING)
        assert (status["attempt"], status["failures"]) == (1, 1)


async def test_an_elastic_job_begins_without_the_workers_that_have_no_node() -> None:
    async with memory() as kube:
        await kube.submit(elastic={"min": 1})
        await eventually(lambda: kube.is_on("spot-a", 1))
        await kube.pod(1, "head", 0)
        await kube.pod(1, "worker", 0)
        left_out = await kube.pod(1, "worker", 1, run=False)
        await kube.raycluster(1)
        await kube.report(1, jobDeploymentStatus="Initializing")
        await kube.pass_time(BEGIN_DELAY / 2)
        status = await kube.status()
        assert (status["phase"], (await kube.worker_group(1))["replicas"]) == ("Pending", 2)
        assert (status["waiting"]["timer"], status["waiting"]["then"]) == (
            "elastic.min",
            "the program begins with fewer workers",
        )
        await kube.pass_time(BEGIN_DELAY / 2)
        group = await kube.worker_group(1)
        assert (group["replicas"], group["scaleStrategy"]) == (1, {"workersToDelete": [left_out]})

        await kube.client.delete(PODS, left_out, NAMESPACE, grace=0)
        await kube.report(1, jobDeploymentStatus="Running", jobStatus="RUNNING")
        await eventually(lambda: kube.has_phase("Running"))
        await eventually(lambda: asks_for(kube, 2))
        await kube.pod(1, "worker", 2, run=False)
        trains_with(kube, 1)
        await kube.pass_time(600)
        status = await kube.status()
        assert await stage_is(kube, Stage.RUNNING)
        assert (status["attempt"], status["failures"]) == (1, 0)
        assert load_state(status["state"]).message == "1 of 2 workers"


async def asks_for(kube: KubeWorld, workers: int) -> bool:
    return bool((await kube.worker_group(1))["replicas"] == workers)


async def stage_is(kube: KubeWorld, stage: Stage) -> bool:
    return load_state((await kube.status())["state"]).stage is stage


def trains_with(kube: KubeWorld, workers: int) -> None:
    """The program starts with this number of workers."""
    CommitLog(kube.bucket.store, "digits", namespace=NAMESPACE).start(1, "spot-a", hands_over=True, workers=workers)


def variables_of(rayjob: dict[str, Any]) -> dict[str, str]:
    (group,) = rayjob["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    return {entry["name"]: entry.get("value", "") for entry in group["template"]["spec"]["containers"][0]["env"]}


@pytest.mark.parametrize("restarts", [False, True], ids=["one controller", "a new controller at every step"])
async def test_a_worker_with_a_notice_is_replaced_within_the_attempt(restarts: bool) -> None:
    kube = world_in_memory()
    await kube.make_namespace()
    for tier in ("spot-a", "spot-b", "on-demand"):
        await kube.capacity(tier, notice="60s")

    async def notice() -> None:
        await running(kube)
        await kube.raycluster(1)
        CommitLog(kube.bucket.store, "digits", namespace=NAMESPACE).start(1, "spot-a", hands_over=True)
        going["name"] = await kube.announce(1)
        await eventually(lambda: replicas(3))
        assert (await kube.worker_group(1))["scaleStrategy"]["workersToDelete"] == []

    async def come() -> None:
        await kube.pod(1, "worker", 2)
        await eventually(reported)
        assert await replicas(3), "a pod that is being deleted would not receive the notice"

    async def remove() -> None:
        await kube.clock.advance(REMOVAL_DELAY)
        await eventually(lambda: replicas(2))
        assert (await kube.worker_group(1))["scaleStrategy"]["workersToDelete"] == [going["name"]]

    async def gone() -> None:
        await kube.client.delete(PODS, going["name"], NAMESPACE, grace=0)
        await eventually(handed_over)
        assert await kube.rayjobs() == ["digits-a001"]

    async def replicas(number: int) -> bool:
        return bool((await kube.worker_group(1))["replicas"] == number)

    async def reported() -> bool:
        found = {pod["metadata"]["name"]: pod["metadata"].get("annotations") or {} for pod in await kube.pods(1)}
        return [name for name, one in found.items() if '"handover"' in one.get(names.NOTICE, "")] == [going["name"]]

    async def handed_over() -> bool:
        state = load_state((await kube.status())["state"])
        assert (state.stage, state.last_number, state.failures) in ((Stage.REPLACING, 1, 1), (Stage.RUNNING, 1, 1))
        return state.stage is Stage.RUNNING and state.attempt is not None and not state.attempt.leaving

    going: dict[str, str] = {}
    if restarts:
        for step in (notice, come, remove, gone):
            async with kube.operator():
                await step()
        return
    async with kube.operator():
        for step in (notice, come, remove, gone):
            await step()


class Defect(Exception):
    """An exception that no code expects."""


async def test_an_unexpected_error_is_a_condition_until_a_reconcile_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    async with memory() as kube:
        failures = []

        def fails(*_: object) -> None:
            failures.append(kube.clock.ticks())
            raise Defect(f"no {object()!r}, secret_key=hunter2hunter2 " + "x" * 1000)

        with monkeypatch.context() as broken, capture_logs():  # The log shows the whole error each time.
            broken.setattr(reconciler, "decide", fails)
            await kube.submit()
            await eventually(lambda: kube.has_phase("Pending"))
            condition = await kube.condition("Degraded")
            assert (condition["status"], condition["reason"]) == ("True", "ReconcileError")
            assert "unexpected error and retries: Defect: no <object object at 0x…>" in condition["message"]
            assert "hunter2" not in condition["message"]
            assert len(condition["message"]) < 400
            await kube.pass_time(600)
            writes = [write for write in server_of(kube).writes if write == ("patch status", TIEREDJOBS.plural)]
            assert len(writes) == 1, "the error is the same each time"
            assert 10 <= len(failures) <= 30, "the retries are delayed"
        await kube.pass_time(60)
        await eventually(lambda: kube.rayjob(1))
        assert (await kube.condition("Degraded"))["reason"] != "ReconcileError"
