"""The commands of a cluster, on a real API server, as a user types them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from spotladder.clusters.client import Client
from spotladder.clusters.connection import connect
from spotladder.custom_resources import FINALIZER
from spotladder.resources import CAPACITYTIERS, PODS, TIEREDJOBS
from spotladder.workloads.records import COMPLETION_INDEX, JOB_INDEX
from tests.charts.helm import objects, rendered
from tests.cli.terminal import Answer
from tests.kube.apiserver import ApiServer
from tests.kube.commands import Cli, set_status
from tests.kube.kubelet import dashboard, kubelet, ray_pod
from tests.kube.test_chart import KINDS
from tests.kube.world import World, eventually, ray_spec, world


def job_file(folder: Path, here: World, *, name: str = "digits", **metadata: str) -> Path:
    job = {
        "apiVersion": TIEREDJOBS.api_version,
        "kind": "TieredJob",
        "metadata": {"name": name, **metadata},
        "spec": {
            "tiers": [{"name": "spot-a", "capacityTier": f"{here.namespace}-spot-a", "maxFailures": 1}],
            "checkpoints": {"uri": "s3://bucket/prefix", "credentials": {"secretName": "bucket"}},
            "workload": {"ray": {"template": {"spec": ray_spec()}}},
        },
    }
    return written(folder / f"{name}.yaml", job)


def written(path: Path, *documents: Any) -> Path:
    with path.open("w", encoding="utf-8") as stream:
        YAML(typ="safe", pure=True).dump_all(list(documents), stream)
    return path


async def test_a_job_is_submitted_shown_and_deleted(api_server: ApiServer, cli: Cli, tmp_path: Path) -> None:
    async with world(api_server) as here:
        file = job_file(tmp_path, here)
        answer = await cli("submit", file, "-n", here.namespace)
        assert answer == Answer(0, "tieredjob.spotladder.io/digits created\n", "")

        again = await cli("submit", file, "-n", here.namespace)
        assert (again.code, again.out) == (2, "")
        assert (
            f"error: tieredjob digits already exists in namespace {here.namespace}: use --update to change it"
            in again.err
        )
        assert (await cli("submit", file, "--update", "-n", here.namespace)).out.endswith("unchanged\n")

        table = (await cli("get", "-n", here.namespace)).out.splitlines()
        assert table[0].split()[:2] == ["NAME", "PHASE"]
        assert [line.split()[0] for line in table[1:]] == ["digits"]
        assert here.namespace in (await cli("get", "-A")).out
        one = json.loads((await cli("get", "digits", "-n", here.namespace, "-o", "json")).out)
        assert (one["kind"], one["metadata"]["name"]) == ("TieredJob", "digits")
        assert "managedFields" not in one["metadata"]
        several = json.loads((await cli("get", "-n", here.namespace, "-o", "json")).out)
        assert [(item["kind"], item["metadata"]["name"]) for item in several["items"]] == [("TieredJob", "digits")]

        answer = await cli("delete", "digits", "-n", here.namespace)
        assert answer == Answer(0, "tieredjob.spotladder.io/digits deleted\n", "")
        empty = await cli("get", "-n", here.namespace)
        assert empty == Answer(0, "", f"No TieredJobs found in namespace {here.namespace}.\n")


async def test_what_is_accepted_is_sent_as_the_schema_wants_it(api_server: ApiServer, cli: Cli, tmp_path: Path) -> None:
    async with world(api_server) as here:
        name = f"{here.namespace}-cheap"
        price = {"perNodeHour": 0.42, "onDemandPerNodeHour": 1}
        capacity = {
            "apiVersion": TIEREDJOBS.api_version, "kind": "CapacityTier", "metadata": {"name": name},
            "spec": {"capacityType": "spot", "price": price},
        }  # fmt: skip
        credentials = {"secretName": "bucket"}
        checkpoints = {"uri": "s3://bucket/prefix", "interval": "50 Steps", "credentials": credentials}
        job = {
            "apiVersion": TIEREDJOBS.api_version, "kind": "TieredJob", "metadata": {"name": "digits"},
            "spec": {
                "tiers": [{"name": "spot", "capacityTier": name}], "budget": 250, "checkpoints": checkpoints,
                "stallTimeout": None, "workload": {"ray": {"template": {"spec": ray_spec()}}},
            },
        }  # fmt: skip
        try:
            answer = await cli("submit", written(tmp_path / "job.yaml", job, capacity), "-n", here.namespace)
            assert (answer.code, answer.err) == (0, "")
            spec = (await here.job())["spec"]
            assert (spec["budget"], spec["checkpoints"]["interval"]) == ("250", "50steps")
            assert "stallTimeout" not in spec
        finally:
            await here.client.delete(CAPACITYTIERS, name)


async def test_the_namespace_is_that_of_the_flag_or_of_the_file(
    api_server: ApiServer, cli: Cli, tmp_path: Path
) -> None:
    async with world(api_server) as here:
        file = job_file(tmp_path, here, namespace=here.namespace)
        refused = await cli("submit", file, "-n", "elsewhere")
        assert refused.code == 2
        assert f"the file has namespace {here.namespace}, but --namespace is elsewhere" in refused.err
        assert (await cli("submit", file)).code == 0
        assert (await here.job())["metadata"]["namespace"] == here.namespace


async def test_capacity_comes_before_the_jobs_and_what_is_missing_is_told(
    api_server: ApiServer, cli: Cli, tmp_path: Path
) -> None:
    async with world(api_server, tiers=()) as here:
        warned = await cli("submit", job_file(tmp_path, here), "-n", here.namespace)
        assert warned.code == 0
        assert (
            f"CapacityTier {here.namespace}-spot-a does not exist in this cluster; the job waits for it" in warned.err
        )
        tier = {
            "apiVersion": TIEREDJOBS.api_version,
            "kind": "CapacityTier",
            "metadata": {"name": f"{here.namespace}-spot-a"},
            "spec": {"capacityType": "spot"},
        }
        here._tiers.append(f"{here.namespace}-spot-a")
        both = await cli(
            "submit",
            job_file(tmp_path, here, name="other"),
            written(tmp_path / "tier.yaml", tier),
            "-n",
            here.namespace,
        )
        assert (both.code, both.err) == (0, "")
        assert both.out.splitlines() == [
            f"capacitytier.spotladder.io/{here.namespace}-spot-a created",
            "tieredjob.spotladder.io/other created",
        ]


@pytest.mark.parametrize("created_by", ["this version", "an earlier version"])
async def test_an_update_removes_what_the_file_has_no_longer(
    created_by: str, api_server: ApiServer, cli: Cli, tmp_path: Path
) -> None:
    async with world(api_server) as here:
        file = job_file(tmp_path, here)
        job = YAML(typ="safe").load(file)
        second = {"name": "spot-b", "capacityTier": f"{here.namespace}-spot-b"}
        more = {"budget": "20", "grace": "3m", "tiers": [*job["spec"]["tiers"], second]}
        full = {**job, "spec": {**job["spec"], **more}}
        if created_by == "this version":
            assert (await cli("submit", written(tmp_path / "full.yaml", full), "-n", here.namespace)).code == 0
        else:  # it created with POST
            full["metadata"]["namespace"] = here.namespace
            async with Client(connect(str(api_server.kubeconfig)), manager="spotladder-cli") as older:
                await older.create(TIEREDJOBS, full)
        assert (await cli("suspend", "digits", "-n", here.namespace)).code == 0
        answer = await cli("submit", file, "--update", "-n", here.namespace)
        assert answer.code == 0
        assert answer.out.splitlines()[0] == "tieredjob.spotladder.io/digits configured"
        assert "  -  budget: '20'" in answer.out.splitlines()
        spec = (await here.job())["spec"]
        assert "budget" not in spec
        assert spec["grace"] == "1m30s"
        assert [tier["name"] for tier in spec["tiers"]] == ["spot-a"]
        assert spec["suspend"] is True
        managers = [(entry["manager"], entry["operation"]) for entry in (await here.job())["metadata"]["managedFields"]]
        assert sorted(managers) == [("spotladder-cli", "Apply"), ("spotladder-cli", "Update")]
        again = await cli("submit", file, "--update", "-n", here.namespace)
        assert again.out == "tieredjob.spotladder.io/digits unchanged\n"


async def test_a_team_submits_jobs_and_an_administrator_makes_their_capacity(
    api_server: ApiServer, cli: Cli, tmp_path: Path
) -> None:
    """With the chart's role for `edit`, bound in the team's namespace, as a user without any other right has it."""
    async with world(api_server) as here:
        roles = [
            body for body in objects(rendered(tmp_path, namespace=here.namespace)) if body["kind"] == "ClusterRole"
        ]
        (role,) = [body for body in roles if body["metadata"]["name"].endswith("-edit")]
        role = {**role, "metadata": {"name": f"{here.namespace}-edit"}}
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "team", "namespace": here.namespace},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": f"{here.namespace}-edit",
            },
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "rightless"}],
        }
        await here.client.apply(KINDS["ClusterRole"], role)
        await here.client.apply(KINDS["RoleBinding"], binding)
        try:
            team = ("--kubeconfig", api_server.kubeconfig_of("rightless", "rightless"), "-n", here.namespace)
            name = f"{here.namespace}-own"
            tier = {
                "apiVersion": TIEREDJOBS.api_version,
                "kind": "CapacityTier",
                "metadata": {"name": name},
                "spec": {},
            }
            files = job_file(tmp_path, here), written(tmp_path / "tier.yaml", tier)
            refused = await cli("submit", *files, *team)
            assert (refused.code, refused.out) == (5, "")
            assert f"you may not write CapacityTiers ({name})" in refused.err
            assert "nothing was sent" in refused.err
            assert (await cli("submit", files[0], *team)).out == "tieredjob.spotladder.io/digits created\n"
            elsewhere = await cli("submit", files[0], *team[:2], "-n", "default")
            assert elsewhere.code == 5
            assert "you may not create TieredJobs in namespace default" in elsewhere.err
        finally:
            await here.client.delete(KINDS["ClusterRole"], f"{here.namespace}-edit")


async def test_nothing_is_sent_when_anything_is_wrong(api_server: ApiServer, cli: Cli, tmp_path: Path) -> None:
    async with world(api_server) as here:
        good, bad = job_file(tmp_path, here), tmp_path / "bad.yaml"
        bad.write_text("apiVersion: spotladder.io/v1alpha1\nkind: TieredJob\nmetadata: {name: x}\nspec: {}\n")
        worldly = tmp_path / "world.yaml"
        worldly.write_text("pools:\n  a: {capacityType: spot, nodes: 1, cpusPerNode: 1}\n")
        answer = await cli("submit", good, bad, worldly, "-n", here.namespace)
        assert (answer.code, answer.out) == (2, "")
        assert f"{bad}:4:" in answer.err
        assert f"{worldly}:1:1: is a world file, and a cluster is one: leave it out" in answer.err
        assert (await cli("get", "-n", here.namespace)).out == ""


async def test_a_job_is_followed_through_its_attempts(api_server: ApiServer, cli: Cli) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit()
        await here.begin(1, "spot-a")
        here.bucket.commit(here.namespace, "digits", attempt=1, step=40)
        watching = asyncio.create_task(cli("watch", "digits", "-n", here.namespace))
        await here.patch(budget="100")
        await here.fall_back()
        await here.succeed(2)

        seen = await asyncio.wait_for(watching, 30)
        assert (seen.code, seen.err) == (0, "")
        assert "FellBack: attempt 2 on spot-b" in seen.out
        assert seen.out.count("digits begins: 2 workers on spot-a → ") == 1, "a change of the spec is not a new job"
        assert seen.out.splitlines()[-1] == "tieredjob digits is Succeeded: Completed"

        events = (await cli("events", "digits", "-n", here.namespace)).out.splitlines()
        reasons = [line.split()[-6:] for line in events]
        assert reasons
        told = [line for line in events if "FellBack" in line]
        assert len(told) == 1
        assert "tieredjob/digits" in told[0]

        report = (await cli("report", "digits", "-n", here.namespace)).out
        assert "MaxFailuresExceeded" in report
        assert f"{here.namespace}/digits: Succeeded, attempt 2 on spot-b" in report
        plain = json.loads((await cli("report", "digits", "-n", here.namespace, "-o", "json")).out)
        assert plain["attempts"][0]["reason"] == "MaxFailuresExceeded"
        assert "state" not in plain

        over = await cli("suspend", "digits", "-n", here.namespace)
        assert (over.code, over.err) == (2, "error: tieredjob digits is Succeeded: it cannot be suspended\n")


async def test_a_failed_job_ends_the_watching_with_its_own_code(api_server: ApiServer, cli: Cli) -> None:
    async with world(api_server) as here, here.operator():
        tier = {"name": "spot-a", "capacityTier": f"{here.namespace}-spot-a", "provisionTimeout": "2h"}
        await here.submit(tiers=[tier], maxDuration="1h")
        await eventually(lambda: here.is_on("spot-a", 1))
        await here.pass_time(3700)
        await eventually(lambda: here.has_phase("Failed"))
        assert (await cli("watch", "digits", "-n", here.namespace)).code == 4


async def test_a_stopped_job_holds_nothing_and_goes_on(api_server: ApiServer, cli: Cli) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit()
        await here.begin(1, "spot-a")
        stopping = asyncio.create_task(cli("stop", "digits", "-n", here.namespace))
        await eventually(lambda: here.has_phase("Draining"))
        assert not stopping.done()
        await here.report(
            1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed",
            message="Job entrypoint command failed with exit code 75",
        )  # fmt: skip
        await eventually(lambda: without_rayjobs(here))
        await here.collect(1)
        await eventually(lambda: here.has_phase("Suspended"))
        stopped = await asyncio.wait_for(stopping, 30)
        assert stopped.code == 0
        assert stopped.out.splitlines() == [
            "tieredjob.spotladder.io/digits suspended",
            "tieredjob digits is Suspended, nothing committed",
        ]
        assert (await cli("suspend", "digits", "-n", here.namespace)).out.endswith("already suspended\n")
        assert (await cli("resume", "digits", "-n", here.namespace)).out == "tieredjob.spotladder.io/digits resumed\n"
        await eventually(lambda: here.is_on("spot-a", 2))


async def without_rayjobs(here: World) -> bool:
    return await here.rayjobs() == []


async def test_stopping_without_a_controller_is_told(api_server: ApiServer, cli: Cli) -> None:
    async with world(api_server) as here:
        await here.submit()
        answer = await cli("stop", "digits", "--timeout", "1s", "-n", here.namespace)
        assert answer.code == 5
        assert "no controller has reconciled it" in answer.err


async def test_deleting_without_a_controller_says_what_it_waits_for(
    api_server: ApiServer, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spotladder.cli.cluster.delete.REPORT_DELAY", 0.0)
    async with world(api_server) as here:
        await here.submit()
        kept = {"metadata": {"finalizers": [FINALIZER]}}
        await here.client.merge(TIEREDJOBS, "digits", here.namespace, body=kept)
        deleting = asyncio.create_task(cli("delete", "digits", "-n", here.namespace))
        await asyncio.sleep(1.5)
        assert not deleting.done()
        await here.client.merge(TIEREDJOBS, "digits", here.namespace, body={"metadata": {"finalizers": []}})
        answer = await asyncio.wait_for(deleting, 30)
        assert answer.out == "tieredjob.spotladder.io/digits deleted\n"
        assert "digits is not deleted yet: no controller has seen the deletion" in answer.err
        assert len(answer.err.splitlines()) == 1


async def test_a_plan_on_the_clusters_own_capacity(api_server: ApiServer, cli: Cli, tmp_path: Path) -> None:
    async with world(api_server) as here:
        job = await here.submit()
        file = tmp_path / "job.yaml"
        wanted = {key: job[key] for key in ("apiVersion", "kind", "spec")}
        file.write_text(json.dumps({**wanted, "metadata": {"name": "digits"}}))
        answer = await cli("plan", "-f", file, "--hours", 5, "-o", "json")
        assert answer.code == 0
        found = json.loads(answer.out)
        assert [tier["usdPerNodeHour"] for tier in found["tiers"]] == [1.0, 1.0, 1.0]
        assert found["choices"] == []
        status = {"evictionsPerNodeHour": "0.25", "observedHours": "100.0", "conditions": []}
        for tier in ("spot-a", "spot-b"):
            await here.client.merge(
                CAPACITYTIERS, f"{here.namespace}-{tier}", body={"status": status}, subresource="status"
            )
        found = json.loads((await cli("plan", "-f", file, "--hours", 5, "-o", "json")).out)
        assert found["choices"][0]["spotFraction"] == 1.0  # two failures, one in two hours, on each of two tiers
        assert found["choices"][0]["accountings"]["blended"]["savedPercent"] > 0
        looked_up = {"price": {"source": "aws", "perNodeHour": None, "onDemandPerNodeHour": None}}
        await here.client.merge(CAPACITYTIERS, f"{here.namespace}-spot-a", body={"spec": looked_up})
        status = {**status, "price": "0.5000", "onDemandPrice": "2.0000"}
        await here.client.merge(
            CAPACITYTIERS, f"{here.namespace}-spot-a", body={"status": status}, subresource="status"
        )
        table = await cli("plan", "-f", file, "--hours", 5)
        assert table.out.splitlines()[2].split()[:6] == [
            "spot-a",
            f"{here.namespace}-spot-a",
            "spot",
            "1",
            "0.50",
            "2.00",
        ]
        await here.client.delete(CAPACITYTIERS, f"{here.namespace}-spot-b")
        missing = await cli("plan", "-f", file, "--hours", 5)
        assert (missing.code, missing.out) == (2, "")
        assert "spec.tiers[1].capacityTier" in missing.err


async def test_logs_with_a_submitter_of_its_own(api_server: ApiServer, cli: Cli) -> None:
    """K8sJobMode: a pod that a Job of the RayJob's name has made; it has none of our labels."""
    async with world(api_server) as here, kubelet(here) as (logs, node):
        await here.submit()
        await set_status(here, phase="Running", attempt=1, tier="spot-a", attempts=[])
        head = await ray_pod(here, node, "digits-a001-head", attempt="1", role="head", containers=["ray"])
        for name in ("digits-a001-7xk2l", "digits-b001-7xk2l"):
            metadata = {"name": name, "namespace": here.namespace, "labels": {"job-name": name[:11]}}
            spec = {"nodeName": node, "containers": [{"name": "ray-job-submitter", "image": "ray"}]}
            await here.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
            running = [{"name": "ray-job-submitter", "state": {"running": {"startedAt": "2026-11-21T12:00:00Z"}},
                        "image": "ray", "imageID": "", "ready": True, "restartCount": 0}]  # fmt: skip
            await here.set_pod(name, phase="Running", containerStatuses=running)
        logs.logs = {("digits-a001-7xk2l", "ray-job-submitter"): ["step 1"], (head, "ray"): ["gcs"]}
        assert (await cli("logs", "digits", "-n", here.namespace)).out == "step 1\n"


async def test_logs_of_a_jobset_are_those_of_its_first_process(api_server: ApiServer, cli: Cli) -> None:
    async with world(api_server) as here, kubelet(here) as (logs, node):
        await here.submit()
        await set_status(here, phase="Running", attempt=1, tier="spot-a", attempts=[])
        pods = {}
        for job_index, index in ((0, 0), (0, 1), (1, 0)):
            name = f"digits-a001-workers-{job_index}-{index}"
            labels = {JOB_INDEX: str(job_index), COMPLETION_INDEX: str(index)}
            pods[name] = await ray_pod(here, node, name, attempt="1", role="worker", containers=["train"], more=labels)
            logs.logs[pods[name], "train"] = [f"rank of {name}"]
        answer = await cli("logs", "digits", "-n", here.namespace)
        assert answer.out == "rank of digits-a001-workers-0-0\n"
        everyone = await cli("logs", "digits", "--all-pods", "-n", here.namespace)
        assert len(everyone.out.splitlines()) == 3


async def test_logs_of_all_attempts_in_order(api_server: ApiServer, cli: Cli, tmp_path: Path) -> None:
    async with world(api_server) as here, kubelet(here) as (logs, node):
        await here.submit(checkpoints={"uri": f"file://{tmp_path}"})
        attempts = [{"number": 1, "tier": "spot-a", "reason": "MaxFailuresExceeded", "startStep": 0, "endStep": 40}]
        await set_status(here, phase="Running", attempt=2, tier="spot-b", attempts=attempts)
        head = await ray_pod(here, node, "digits-a002-head", role="head", containers=["ray", "ray-job-submitter"])
        worker = await ray_pod(here, node, "digits-a002-worker", role="worker", containers=["ray"])
        logs.logs = {
            (head, "ray-job-submitter"): ["step 40", "", "step 41"],
            (head, "ray"): ["gcs"],
            (worker, "ray"): ["raylet"],
        }
        answer = await cli("logs", "digits", "-n", here.namespace)
        assert (answer.code, answer.out) == (0, "step 40\n\nstep 41\n")
        assert answer.err.splitlines() == [
            "==> attempt 1 on spot-a: MaxFailuresExceeded, steps 0 → 40 <==",
            "the pods of the attempt are gone",
            f"no stored output found in file://{tmp_path}/digits/outputs",
            "==> attempt 2 on spot-b <==",
        ]
        last = await cli("logs", "digits", "--attempt", 2, "--tail", 1, "-n", here.namespace)
        assert last.out == "step 41\n"
        both = await cli("logs", "digits", "--attempt", 2, "--all-pods", "-n", here.namespace)
        assert sorted(both.out.splitlines()) == [f"[{head}] gcs", f"[{worker}] raylet"]
        missing = await cli("logs", "digits", "--attempt", 7, "-n", here.namespace)
        assert (missing.code, missing.err) == (2, "error: tieredjob digits has no attempt 7: its newest attempt is 2\n")

        following = asyncio.create_task(cli("logs", "digits", "-f", "--attempt", 2, "-n", here.namespace))

        async def followed() -> bool:
            return logs.asked[-1].get("follow") == "true"

        await eventually(followed)
        logs.end.set()
        assert (await asyncio.wait_for(following, 30)).out.endswith("step 41\nthe end\n")


async def test_what_the_dashboard_knows(api_server: ApiServer, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """With HTTPMode, KubeRay's default here, no container prints what the program prints."""
    async with world(api_server) as here, dashboard() as (ray, address, port):
        monkeypatch.setattr("spotladder.cli.cluster.dashboard.PORT", port)
        await here.submit()
        await set_status(here, phase="Running", attempt=2, tier="spot-b", attempts=[])
        node = await here.node(f"{here.namespace}-head")
        head = await ray_pod(here, node, "digits-a002-head", role="head", containers=["ray"])
        await here.set_pod(head, podIP=address, podIPs=[{"ip": address}])
        ray.printed = "step 40\nstep 41\n"
        arguments = ("logs", "digits", "--attempt", 2, "-n", here.namespace)
        assert (await cli(*arguments)).out == "step 40\nstep 41\n"
        assert (await cli(*arguments, "--tail", 1)).out == "step 41\n"

        following = asyncio.create_task(cli(*arguments, "-f"))
        asked = ray.asked

        async def asked_again() -> bool:
            return ray.asked > asked

        await eventually(asked_again)
        ray.printed += "step 42\n"
        ray.status = "SUCCEEDED"
        assert (await asyncio.wait_for(following, 30)).out == "step 40\nstep 41\nstep 42\n"

        monkeypatch.setattr("spotladder.cli.cluster.dashboard.PORT", 1)
        silent = await cli(*arguments)
        assert (silent.code, silent.out) == (0, "")
        assert silent.err.endswith(f"the dashboard of {head} does not answer: it is starting, or its node is lost\n")


async def test_what_does_not_exist_is_said_in_one_line(api_server: ApiServer, cli: Cli) -> None:
    async with world(api_server) as here:
        for command in ("get", "watch", "logs", "events", "report", "suspend", "resume", "stop", "delete"):
            answer = await cli(command, "nothing", "-n", here.namespace)
            assert (answer.code, answer.out) == (2, "")
            assert answer.err == (
                f"error: tieredjob nothing not found in namespace {here.namespace}: "
                f"spotladder get -n {here.namespace} lists all jobs\n"
            )


async def test_rights_and_credentials(api_server: ApiServer, cli: Cli) -> None:
    limited = api_server.kubeconfig_of("rightless", "rightless")
    answer = await cli("get", "--kubeconfig", limited)
    assert answer.code == 5
    assert answer.err.startswith("error: context tests: tieredjobs.spotladder.io is forbidden: User ")
    assert answer.err.endswith("; ask an administrator of the cluster for this permission\n")
    unknown = await cli("get", "digits", "--kubeconfig", api_server.kubeconfig_of("nobody", "nobody"))
    assert unknown == Answer(5, "", "error: context tests: the cluster rejects its credentials: log in again\n")


async def test_a_cluster_without_our_kinds(api_server: ApiServer, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_a_refusal_of_the_cluster_is_passed_on(api_server: ApiServer, cli: Cli, tmp_path: Path) -> None:
    async with world(api_server) as here:
        nowhere = await cli("submit", job_file(tmp_path, here), "-n", f"{here.namespace}-x")
        assert (nowhere.code, nowhere.out) == (2, "")
        assert f'namespaces "{here.namespace}-x" not found' in nowhere.err


async def test_what_is_written_bears_the_name_of_the_commands(api_server: ApiServer, cli: Cli, tmp_path: Path) -> None:
    async with world(api_server) as here, Client(connect(str(api_server.kubeconfig))) as client:
        await cli("submit", job_file(tmp_path, here), "-n", here.namespace)
        await cli("suspend", "digits", "-n", here.namespace)
        found = await client.get(TIEREDJOBS, "digits", here.namespace)
        assert {entry["manager"] for entry in found["metadata"]["managedFields"]} == {"spotladder-cli"}
