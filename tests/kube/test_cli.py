"""The commands of a cluster, on a real API server, as a user types them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from spotladder.cli import get
from spotladder.cli.cluster import watch
from spotladder.jobs import connected_cluster
from spotladder.resources import TIEREDJOBS
from tests.kube.apiserver import ApiServer
from tests.kube.commands import Cli
from tests.kube.world import KubeWorld, eventually, world


async def test_a_job_is_followed_through_its_attempts(api_server: ApiServer, cli: Cli) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit()
        await kube.begin(1, "spot-a")
        kube.bucket.commit(kube.namespace, "digits", attempt=1, step=40)
        watching = asyncio.create_task(cli("watch", "digits", "-n", kube.namespace))
        await kube.patch(budget="100")
        await kube.fall_back()
        await kube.succeed(2)

        seen = await asyncio.wait_for(watching, 30)
        assert (seen.code, seen.err) == (0, "")
        assert "FellBack: attempt 2 on spot-b" in seen.out
        assert seen.out.count("digits begins: 2 workers on spot-a → ") == 1, "a changed spec was shown as a new job"
        assert seen.out.splitlines()[-1] == "tieredjob digits is Succeeded: Completed"

        events = (await cli("events", "digits", "-n", kube.namespace)).out.splitlines()
        reasons = [line.split()[-6:] for line in events]
        assert reasons
        fell_back = [line for line in events if "FellBack" in line]
        assert len(fell_back) == 1
        assert "tieredjob/digits" in fell_back[0]

        over = await cli("suspend", "digits", "-n", kube.namespace)
        assert (over.code, over.err) == (2, "error: tieredjob digits is Succeeded: it cannot be suspended\n")


async def test_a_suspended_job_has_no_attempt_and_can_be_resumed(api_server: ApiServer, cli: Cli) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit()
        await kube.begin(1, "spot-a")
        suspending = asyncio.create_task(cli("suspend", "digits", "--wait", "-n", kube.namespace))
        await eventually(lambda: kube.has_phase("Draining"))
        assert not suspending.done()
        await kube.report(
            1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed",
            message="Job entrypoint command failed with exit code 75",
        )  # fmt: skip
        await eventually(lambda: without_rayjobs(kube))
        await kube.collect(1)
        await eventually(lambda: kube.has_phase("Suspended"))
        suspended = await asyncio.wait_for(suspending, 30)
        assert suspended.code == 0
        assert suspended.out.splitlines() == [
            "tieredjob.spotladder.io/digits suspended",
            "tieredjob digits is Suspended, nothing committed",
        ]
        assert (await cli("suspend", "digits", "-n", kube.namespace)).out.endswith("already suspended\n")
        assert (await cli("resume", "digits", "-n", kube.namespace)).out == "tieredjob.spotladder.io/digits resumed\n"
        await eventually(lambda: kube.is_on("spot-a", 2))


async def without_rayjobs(kube: KubeWorld) -> bool:
    return await kube.rayjobs() == []


async def test_a_cluster_without_the_crds(api_server: ApiServer, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = replace(TIEREDJOBS, version="v1alpha0")
    for module in (get, watch, connected_cluster):
        monkeypatch.setattr(module, "TIEREDJOBS", unknown)
    for arguments in (["get"], ["get", "digits"], ["watch", "digits"]):
        answer = await cli(*arguments)
        assert answer.code == 5
        assert answer.err == (
            "error: context tests: TieredJobs are not installed in this cluster: "
            "helm install spotladder-crds charts/spotladder-crds\n"
        )
