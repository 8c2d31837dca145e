"""The reconciler from the first tier to the end of a job, against a fake API server in memory."""

from __future__ import annotations

import random
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
from spotladder.custom_resources import FINALIZER
from spotladder.resources import DISRUPTION_BUDGETS, NETWORK_POLICIES, PODS, TIEREDJOBS
from spotladder.workloads.rayjob.records import RAYJOBS
from tests.kube.world import KubeWorld, eventually
from tests.operator.memory_world import NAMESPACE, filled_world


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


def server_of(kube: KubeWorld) -> FakeApiServer:
    assert isinstance(kube.client, FakeClient)
    return kube.client.server


async def failures_are(kube: KubeWorld, number: int) -> bool:
    return (await kube.status()).get("failures") == number


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


async def reason_is(kube: KubeWorld, kind: str, reason: str) -> bool:
    return (await kube.condition(kind)).get("reason") == reason


async def stage_is(kube: KubeWorld, stage: Stage) -> bool:
    return load_state((await kube.status())["state"]).stage is stage


def trains_with(kube: KubeWorld, workers: int) -> None:
    """The program starts with this number of workers."""
    CommitLog(kube.bucket.store, "digits", namespace=NAMESPACE).start(1, "spot-a", hands_over=True, workers=workers)
