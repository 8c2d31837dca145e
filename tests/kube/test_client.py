"""The Python client, on a real API server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from spotladder.client import AsyncJobs, Jobs
from spotladder.errors import EnvironmentFailure, Refused
from spotladder.workloads.rayjob.records import SUBMITTER
from tests.kube.apiserver import ApiServer
from tests.kube.commands import set_status
from tests.kube.job_files import job_file
from tests.kube.kubelet import kubelet, ray_pod
from tests.kube.world import KubeWorld, world

CAPACITY = {
    "apiVersion": "spotladder.io/v1alpha1",
    "kind": "CapacityTier",
    "metadata": {"name": "spot"},
    "spec": {"capacityType": "spot", "price": {"perNodeHour": "1", "onDemandPerNodeHour": "4"}},
}


def submitted(kube: KubeWorld, server: ApiServer, file: Path) -> str:
    """Submit, refuse to submit again, update, and read the job, from a program without an event loop."""
    with Jobs(kube.namespace, kubeconfig=str(server.kubeconfig)) as jobs:
        name = jobs.submit(file)
        with pytest.raises(Refused, match="tieredjob digits already exists"):
            jobs.submit(file)
        jobs.submit(job_body(file), update=True)
        assert "managedFields" not in jobs.get(name)["metadata"]
        with pytest.raises(Refused, match="tieredjob other not found"):
            jobs.wait("other")
        with pytest.raises(TimeoutError):
            jobs.wait(name, timeout=0.2)
        with pytest.raises(ValueError, match="expected one TieredJob, got 0"):
            jobs.submit(CAPACITY)
        with (
            Jobs(kube.namespace, kubeconfig=str(server.kubeconfig_of("expired", "expired"))) as expired,
            pytest.raises(EnvironmentFailure, match="context tests: the cluster rejects its credentials: log in again"),
        ):
            expired.wait(name)
        jobs.delete(name)
        with pytest.raises(Refused, match="tieredjob digits not found"):
            jobs.delete(name)
        return jobs.submit(file)


def job_body(file: Path) -> dict[str, object]:
    found: dict[str, object] = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
    return found


async def test_a_job_is_submitted_followed_and_waited_for(api_server: ApiServer, tmp_path: Path) -> None:
    async with world(api_server) as kube, kubelet(kube) as (logs, node):
        assert await asyncio.to_thread(submitted, kube, api_server, job_file(tmp_path, kube)) == "digits"
        await set_status(kube, phase="Running", attempt=1, tier="spot-a", attempts=[])
        head = await ray_pod(kube, node, "digits-a001-head", attempt="1", role="head", containers=[SUBMITTER])
        logs.logs = {(head, SUBMITTER): ["step 1", "", "step 2"]}
        async with AsyncJobs(kube.namespace, kubeconfig=str(api_server.kubeconfig)) as jobs:
            assert [line async for line in jobs.logs("digits")] == ["step 1", "", "step 2"]
            completed = {"type": "Completed", "status": "True", "reason": "TiersExhausted", "message": "none is left"}
            completed["lastTransitionTime"] = "2026-11-21T12:00:00Z"
            await set_status(
                kube, phase="Failed", message="no tier is left", conditions=[completed],
                progress={"step": 40, "total": 100}, cost={"spent": "1.20"},
            )  # fmt: skip
            outcome = await jobs.wait("digits")
        assert (outcome.phase, outcome.reason, outcome.exit_code) == ("Failed", "TiersExhausted", 3)
        assert (outcome.succeeded, outcome.step, outcome.spent_usd) == (False, 40, "1.20")
        assert outcome.message == "no tier is left"
