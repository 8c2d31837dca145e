"""The reconciler from the first tier to the end of a job, against a fake API server in memory."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from spotladder.api.stored import FINALIZER
from spotladder.clusters.errors import Conflict
from spotladder.errors import StoreUnavailable
from spotladder.operator.reconcile import reconciler
from spotladder.resources import DISRUPTION_BUDGETS, NETWORK_POLICIES, TIEREDJOBS
from spotladder.workloads.rayjob.records import RAYJOBS
from tests.clusters.fake import FakeApiServer, FakeClient
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
            await kube.runtime.reconcile.persistence.finalize(old)
        await kube.kill_worker(1)
        await eventually(lambda: failures_are(kube, 1))
        job = await kube.job()
        assert (job["metadata"]["annotations"]["by"], FINALIZER in job["metadata"]["finalizers"]) == ("a user", True)


async def test_nothing_is_kept_of_a_job_whose_finalizer_a_user_has_removed() -> None:
    async with memory() as kube:
        await running(kube)
        assert kube.runtime is not None
        kept = kube.runtime.reconcile.loader.known_jobs, kube.runtime._streams._streams
        assert all(kept)
        await kube.delete()
        await kube.client.merge(TIEREDJOBS, "digits", kube.namespace, body={"metadata": {"finalizers": []}})
        await eventually(kube.is_gone)
        await kube.idle()
        assert not any(kept)


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


async def test_a_corrected_job_that_waits_for_its_bucket_is_valid() -> None:
    """Flux and Helm count a job with the condition Stalled as failed."""
    async with memory() as kube:
        kube.bucket.broken = StoreUnavailable("s3://bucket: no answer")
        await kube.submit(policy="missing")
        await eventually(lambda: valid_is(kube, "False"))
        assert (await kube.condition("Stalled"))["status"] == "True"
        await kube.patch(policy="ordered")
        await eventually(lambda: valid_is(kube, "True"))
        assert (await kube.condition("Stalled"))["status"] == "False"
        assert (await kube.condition("Degraded"))["reason"] == "StoreUnavailable"


async def valid_is(kube: KubeWorld, status: str) -> bool:
    return (await kube.condition("Valid")).get("status") == status


def server_of(kube: KubeWorld) -> FakeApiServer:
    assert isinstance(kube.client, FakeClient)
    return kube.client.server


async def failures_are(kube: KubeWorld, number: int) -> bool:
    return (await kube.status()).get("failures") == number


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
