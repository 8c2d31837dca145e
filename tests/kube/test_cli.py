"""The commands of a cluster, on a real API server, as a user types them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from spotladder.api.stored import FINALIZER
from spotladder.clusters.client import Client
from spotladder.clusters.connection import connect
from spotladder.resources import CAPACITYTIERS, TIEREDJOBS
from tests.cli.terminal import Answer
from tests.kube.apiserver import ApiServer
from tests.kube.commands import Cli
from tests.kube.job_files import job_file
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


async def test_watch_exits_with_the_code_of_a_failed_job(api_server: ApiServer, cli: Cli) -> None:
    async with world(api_server) as kube, kube.operator():
        tier = {"name": "spot-a", "capacityTier": f"{kube.namespace}-spot-a", "provisionTimeout": "2h"}
        await kube.submit(tiers=[tier], maxDuration="1h")
        await eventually(lambda: kube.is_on("spot-a", 1))
        await kube.pass_time(3700)
        await eventually(lambda: kube.has_phase("Failed"))
        assert (await cli("watch", "digits", "-n", kube.namespace)).code == 4


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


async def test_suspend_without_a_controller_is_an_error(api_server: ApiServer, cli: Cli) -> None:
    async with world(api_server) as kube:
        await kube.submit()
        answer = await cli("suspend", "digits", "--wait", "--timeout", "1s", "-n", kube.namespace)
        assert answer.code == 5
        assert "no controller has reconciled it" in answer.err


async def test_delete_without_a_controller_prints_the_reason_of_the_wait(
    api_server: ApiServer, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spotladder.cli.cluster.delete.REPORT_DELAY", 0.0)
    async with world(api_server) as kube:
        await kube.submit()
        kept = {"metadata": {"finalizers": [FINALIZER]}}
        await kube.client.merge(TIEREDJOBS, "digits", kube.namespace, body=kept)
        deleting = asyncio.create_task(cli("delete", "digits", "-n", kube.namespace))
        await asyncio.sleep(1.5)
        assert not deleting.done()
        await kube.client.merge(TIEREDJOBS, "digits", kube.namespace, body={"metadata": {"finalizers": []}})
        answer = await asyncio.wait_for(deleting, 30)
        assert answer.out == "tieredjob.spotladder.io/digits deleted\n"
        assert "digits is not deleted yet: no controller has seen the deletion" in answer.err
        assert len(answer.err.splitlines()) == 1


async def test_a_plan_on_the_clusters_own_capacity(api_server: ApiServer, cli: Cli, tmp_path: Path) -> None:
    async with world(api_server) as kube:
        job = await kube.submit()
        file = tmp_path / "job.yaml"
        wanted = {key: job[key] for key in ("apiVersion", "kind", "spec")}
        file.write_text(json.dumps({**wanted, "metadata": {"name": "digits"}}))
        answer = await cli("plan", file, "--hours", 5, "-o", "json")
        assert answer.code == 0
        found = json.loads(answer.out)
        assert [tier["usdPerNodeHour"] for tier in found["tiers"]] == [1.0, 1.0, 1.0]
        assert found["choices"] == []
        status = {"evictionsPerNodeHour": "0.25", "observedHours": "100.0", "conditions": []}
        for tier in ("spot-a", "spot-b"):
            await kube.client.merge(
                CAPACITYTIERS, f"{kube.namespace}-{tier}", body={"status": status}, subresource="status"
            )
        found = json.loads((await cli("plan", file, "--hours", 5, "-o", "json")).out)
        # Each of the two spot tiers tolerates one failure; one is expected every two hours.
        assert found["choices"][0]["spotFraction"] == 1.0
        assert found["choices"][0]["accountings"]["blended"]["savedPercent"] > 0
        looked_up = {"price": {"source": "aws", "perNodeHour": None, "onDemandPerNodeHour": None}}
        await kube.client.merge(CAPACITYTIERS, f"{kube.namespace}-spot-a", body={"spec": looked_up})
        status = {**status, "price": "0.5000", "onDemandPrice": "2.0000"}
        await kube.client.merge(
            CAPACITYTIERS, f"{kube.namespace}-spot-a", body={"status": status}, subresource="status"
        )
        table = await cli("plan", file, "--hours", 5)
        assert table.out.splitlines()[2].split()[:6] == [
            "spot-a",
            f"{kube.namespace}-spot-a",
            "spot",
            "1",
            "0.50",
            "2.00",
        ]
        await kube.client.delete(CAPACITYTIERS, f"{kube.namespace}-spot-b")
        missing = await cli("plan", file, "--hours", 5)
        assert (missing.code, missing.out) == (2, "")
        assert "spec.tiers[1].capacityTier" in missing.err


async def test_an_unknown_job_is_one_line(api_server: ApiServer, cli: Cli) -> None:
    async with world(api_server) as kube:
        for command in ("get", "watch", "logs", "events", "report", "suspend", "resume", "delete"):
            answer = await cli(command, "nothing", "-n", kube.namespace)
            assert (answer.code, answer.out) == (2, "")
            assert answer.err == (
                f"error: tieredjob nothing not found in namespace {kube.namespace}: "
                f"spotladder get -n {kube.namespace} lists all jobs\n"
            )


async def test_missing_permissions_and_invalid_credentials(api_server: ApiServer, cli: Cli) -> None:
    limited = api_server.kubeconfig_of("rightless", "rightless")
    answer = await cli("get", "--kubeconfig", limited)
    assert answer.code == 5
    assert answer.err.startswith("error: context tests: tieredjobs.spotladder.io is forbidden: User ")
    assert answer.err.endswith("; ask an administrator of the cluster for this permission\n")
    unknown = await cli("get", "digits", "--kubeconfig", api_server.kubeconfig_of("nobody", "nobody"))
    assert unknown == Answer(5, "", "error: context tests: the cluster rejects its credentials: log in again\n")


async def test_a_cluster_without_the_crds(api_server: ApiServer, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from spotladder import resources

    monkeypatch.setattr(
        resources, "TIEREDJOBS", resources.APIResource("spotladder.io", "v1alpha0", "tieredjobs", "TieredJob")
    )
    for arguments in (["get"], ["get", "digits"], ["watch", "digits"]):
        answer = await cli(*arguments)
        assert answer.code == 5
        assert answer.err == (
            "error: context tests: TieredJobs are not installed in this cluster: "
            "helm install spotladder-crds charts/spotladder-crds\n"
        )


async def test_an_error_of_the_api_server_is_printed(api_server: ApiServer, cli: Cli, tmp_path: Path) -> None:
    async with world(api_server) as kube:
        nowhere = await cli("submit", job_file(tmp_path, kube), "-n", f"{kube.namespace}-x")
        assert (nowhere.code, nowhere.out) == (2, "")
        assert f'namespaces "{kube.namespace}-x" not found' in nowhere.err


async def test_the_field_manager_of_the_commands(api_server: ApiServer, cli: Cli, tmp_path: Path) -> None:
    async with world(api_server) as kube, Client(connect(str(api_server.kubeconfig))) as client:
        await cli("submit", job_file(tmp_path, kube), "-n", kube.namespace)
        await cli("suspend", "digits", "-n", kube.namespace)
        found = await client.get(TIEREDJOBS, "digits", kube.namespace)
        assert {entry["manager"] for entry in found["metadata"]["managedFields"]} == {"spotladder-cli"}
