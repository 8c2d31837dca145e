"""The examples for workflow engines, each run by its real engine against a real API server and a real controller."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from spotladder.checkpoints.open_store import open_store
from spotladder.client import AsyncJobs
from spotladder.resources import PODS
from spotladder.workloads.rayjob.records import SUBMITTER
from tests.kube.apiserver import ApiServer
from tests.kube.commands import set_status
from tests.kube.conftest import api_server
from tests.kube.job_files import job_file, written
from tests.kube.kubelet import Kubelet, kubelet
from tests.kube.test_client import job_body
from tests.kube.world import KubeWorld, eventually, world
from tests.workflows.engines import LIMIT, PROGRAMS, Engine, running, uid_of_job

__all__ = ["api_server"]

pytestmark = pytest.mark.parametrize("engine", sorted(PROGRAMS))


def job_of(folder: Path, kube: KubeWorld) -> Path:
    """A job whose checkpoints are in the folder."""
    body = job_body(job_file(folder, kube))
    body["spec"]["checkpoints"] = {"uri": (folder / "checkpoints").as_uri()}  # type: ignore[index]
    return written(folder / "job.yaml", body)


async def prints(kube: KubeWorld, node: str, logs: Kubelet) -> None:
    """The pod that KubeRay creates for the program of attempt 1, and its output."""
    name = "digits-a001-7xk2l"
    metadata = {"name": name, "namespace": kube.namespace, "labels": {"job-name": "digits-a001"}}
    spec = {"nodeName": node, "containers": [{"name": SUBMITTER, "image": "ray"}]}
    await kube.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    status: dict[str, Any] = {"name": SUBMITTER, "image": "ray", "imageID": "", "ready": True, "restartCount": 0}
    status["state"] = {"running": {"startedAt": "2026-11-21T12:00:00Z"}}
    await kube.set_pod(name, phase="Running", containerStatuses=[status])
    logs.logs = {(name, SUBMITTER): ["step 1", "step 2"]}


async def ended(engine: Engine) -> int:
    """The exit code of the engine."""
    return await asyncio.wait_for(asyncio.to_thread(engine.process.wait), LIMIT)


async def test_a_task_prints_and_reports_its_job_which_a_retry_finds_again(
    api_server: ApiServer, tmp_path: Path, engine: str
) -> None:
    async with world(api_server) as kube, kubelet(kube) as (logs, node):
        kube.bucket.store = open_store((tmp_path / "checkpoints").as_uri())  # type: ignore[assignment]
        job = job_of(tmp_path, kube)
        async with kube.operator():
            with running(engine, job, kube, tmp_path) as lost:
                submitted = await lost.submits(kube)
                await kube.begin(1, "spot-a")
                await prints(kube, node, logs)
                logs.end.set()
            assert lost.process.returncode != 0
            with running(engine, job, kube, tmp_path) as retried:
                await kube.pass_time(300)
                await kube.succeed(1)
                assert await ended(retried) == 0, retried.output()
            assert await uid_of_job(kube) == submitted
        async with AsyncJobs(kube.namespace, kubeconfig=str(api_server.kubeconfig)) as jobs:
            paid = (await jobs.report("digits"))["cost"]["paid"]
        assert paid > 0
        assert "step 2" in retried.output()
        assert str(paid) in retried.output()


async def test_a_cancelled_task_deletes_its_job(api_server: ApiServer, tmp_path: Path, engine: str) -> None:
    async with world(api_server) as kube, kubelet(kube) as (logs, node):
        with running(engine, job_of(tmp_path, kube), kube, tmp_path) as cancelled:
            await cancelled.submits(kube)
            await set_status(kube, phase="Running", attempt=1, tier="spot-a", attempts=[])
            await prints(kube, node, logs)

            async def follows() -> bool:
                return engine == "airflow" or "step 2" in cancelled.output()

            await eventually(follows, LIMIT)
            cancelled.cancel()
            assert await ended(cancelled) != 0
            assert await kube.is_gone(), cancelled.output()


async def test_a_failed_job_fails_the_task_and_is_deleted(api_server: ApiServer, tmp_path: Path, engine: str) -> None:
    async with world(api_server) as kube:
        with running(engine, job_of(tmp_path, kube), kube, tmp_path) as failing:
            failed = await failing.submits(kube)
            completed = {"type": "Completed", "status": "True", "reason": "TiersExhausted", "message": "none is left"}
            completed["lastTransitionTime"] = "2026-11-21T12:00:00Z"
            await set_status(kube, phase="Failed", message="no tier is left", conditions=[completed])

            async def deleted() -> bool:
                return await kube.is_gone() or await uid_of_job(kube) != failed

            await eventually(deleted, LIMIT)

            async def said() -> bool:
                return "digits: TiersExhausted: no tier is left" in failing.output()

            await eventually(said, LIMIT)
