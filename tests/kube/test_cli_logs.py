"""The logs and the dashboard of a job, on a real API server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from spotladder.resources import PODS, SECRETS
from spotladder.workloads.rayjob.authentication import KEY, TOKEN
from tests.kube.apiserver import ApiServer
from tests.kube.commands import Cli, set_status
from tests.kube.kubelet import dashboard, kubelet, ray_pod
from tests.kube.objects import encoded, make
from tests.kube.test_chart import KINDS
from tests.kube.world import KubeWorld, eventually, world


async def test_logs_are_read_from_the_submitter_pod(api_server: ApiServer, cli: Cli) -> None:
    """With K8sJobMode, a Job with the RayJob's name creates the submitter pod, which has no spotladder labels."""
    async with world(api_server) as kube, kubelet(kube) as (logs, node):
        await kube.submit()
        await set_status(kube, phase="Running", attempt=1, tier="spot-a", attempts=[])
        head = await ray_pod(kube, node, "digits-a001-head", attempt="1", role="head", containers=["ray"])
        for name in ("digits-a001-7xk2l", "digits-b001-7xk2l"):
            metadata = {"name": name, "namespace": kube.namespace, "labels": {"job-name": name[:11]}}
            spec = {"nodeName": node, "containers": [{"name": "ray-job-submitter", "image": "ray"}]}
            await kube.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
            running = [{"name": "ray-job-submitter", "state": {"running": {"startedAt": "2026-11-21T12:00:00Z"}},
                        "image": "ray", "imageID": "", "ready": True, "restartCount": 0}]  # fmt: skip
            await kube.set_pod(name, phase="Running", containerStatuses=running)
        logs.logs = {("digits-a001-7xk2l", "ray-job-submitter"): ["step 1"], (head, "ray"): ["gcs"]}
        assert (await cli("logs", "digits", "-n", kube.namespace)).out == "step 1\n"


async def test_logs_of_all_attempts_in_order(api_server: ApiServer, cli: Cli, tmp_path: Path) -> None:
    async with world(api_server) as kube, kubelet(kube) as (logs, node):
        await kube.submit(checkpoints={"uri": f"file://{tmp_path}"})
        uid = (await kube.job())["metadata"]["uid"]
        attempts = [{"number": 1, "tier": "spot-a", "reason": "MaxFailuresExceeded", "startStep": 0, "endStep": 40}]
        await set_status(kube, phase="Running", attempt=2, tier="spot-b", attempts=attempts)
        head = await ray_pod(kube, node, "digits-a002-head", role="head", containers=["ray", "ray-job-submitter"])
        worker = await ray_pod(kube, node, "digits-a002-worker", role="worker", containers=["ray"])
        logs.logs = {
            (head, "ray-job-submitter"): ["step 40", "", "step 41"],
            (head, "ray"): ["gcs"],
            (worker, "ray"): ["raylet"],
        }
        answer = await cli("logs", "digits", "-n", kube.namespace)
        assert (answer.code, answer.out) == (0, "step 40\n\nstep 41\n")
        assert answer.err.splitlines() == [
            "==> attempt 1 on spot-a: MaxFailuresExceeded, steps 0 → 40 <==",
            "the pods of the attempt are gone",
            f"no stored output found in file://{tmp_path}/digits/outputs/{uid}",
            "==> attempt 2 on spot-b <==",
        ]
        last = await cli("logs", "digits", "--attempt", 2, "--tail", 1, "-n", kube.namespace)
        assert last.out == "step 41\n"
        both = await cli("logs", "digits", "--attempt", 2, "--all-pods", "-n", kube.namespace)
        assert sorted(both.out.splitlines()) == [f"[{head}] gcs", f"[{worker}] raylet"]
        missing = await cli("logs", "digits", "--attempt", 7, "-n", kube.namespace)
        assert (missing.code, missing.err) == (2, "error: tieredjob digits has no attempt 7: its newest attempt is 2\n")

        following = asyncio.create_task(cli("logs", "digits", "--follow", "--attempt", 2, "-n", kube.namespace))

        async def followed() -> bool:
            return logs.asked[-1].get("follow") == "true"

        await eventually(followed)
        await set_status(kube, phase="Succeeded", attempt=2, tier="spot-b")
        logs.end.set()
        assert (await asyncio.wait_for(following, 30)).out.endswith("step 41\nthe end\n")


async def test_logs_are_read_from_the_dashboard_in_http_mode(
    api_server: ApiServer, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With HTTPMode, KubeRay's default kube, no container prints the program's output."""
    async with world(api_server) as kube, dashboard() as (ray, address, port):
        monkeypatch.setattr("spotladder.places.dashboard.PORT", port)
        await kube.submit()
        await set_status(kube, phase="Running", attempt=2, tier="spot-b", attempts=[])
        node = await kube.node(f"{kube.namespace}-head")
        head = await ray_pod(kube, node, "digits-a002-head", role="head", containers=["ray"])
        await kube.set_pod(head, podIP=address, podIPs=[{"ip": address}])
        ray.printed = "step 40\nstep 41\n"
        arguments = ("logs", "digits", "--attempt", 2, "-n", kube.namespace)
        assert (await cli(*arguments)).out == "step 40\nstep 41\n"
        assert (await cli(*arguments, "--tail", 1)).out == "step 41\n"

        following = asyncio.create_task(cli(*arguments, "--follow"))
        asked = ray.asked

        async def requested_again() -> bool:
            return ray.asked > asked

        await eventually(requested_again)
        ray.printed += "step 42\n"
        ray.status = "SUCCEEDED"
        await set_status(kube, phase="Succeeded", attempt=2, tier="spot-b")
        assert (await asyncio.wait_for(following, 30)).out == "step 40\nstep 41\nstep 42\n"

        ray.token = "s3cret"
        await set_status(kube, phase="Running", attempt=3, tier="spot-b", attempts=[])
        source = {"secretKeyRef": {"name": TOKEN, "key": KEY}}
        await make(kube, SECRETS, TOKEN, data=encoded(**{KEY: ray.token}))
        env = [{"name": "RAY_AUTH_TOKEN", "valueFrom": source}]
        head = await ray_pod(kube, node, "digits-a003-head", role="head", containers=["ray"], attempt="3", env=env)
        await kube.set_pod(head, podIP=address, podIPs=[{"ip": address}])
        arguments = ("logs", "digits", "--attempt", 3, "-n", kube.namespace)
        assert (await cli(*arguments)).out == ray.printed

        reader = await reader_without_secrets(kube)
        refused = await cli(*arguments, "--kubeconfig", reader)
        assert (refused.code, refused.out) == (0, "")
        assert refused.err.endswith(
            f"the output of {head} cannot be read: 403 Forbidden: the token of its dashboard is in Secret "
            f"{kube.namespace}/{TOKEN}: allow get on secrets\n"
        ), refused.err

        monkeypatch.setattr("spotladder.places.dashboard.PORT", 1)
        silent = await cli(*arguments)
        assert (silent.code, silent.out) == (0, "")
        assert silent.err.endswith(f"the dashboard of {head} does not answer: it is starting, or its node is lost\n")


async def reader_without_secrets(kube: KubeWorld) -> Path:
    """The kubeconfig of a user who may read pods and their output, but no Secret."""
    name = "reader"
    rules = [
        {"apiGroups": [""], "resources": ["pods", "pods/log", "pods/proxy"], "verbs": ["get", "list"]},
        {"apiGroups": ["spotladder.io"], "resources": ["tieredjobs"], "verbs": ["get"]},
    ]
    role = {"apiVersion": KINDS["Role"].api_version, "metadata": {"name": name, "namespace": kube.namespace}}
    await kube.client.create(KINDS["Role"], {**role, "kind": "Role", "rules": rules})
    reference = {"apiGroup": KINDS["Role"].group, "kind": "Role", "name": name}
    subjects = [{"apiGroup": KINDS["Role"].group, "kind": "User", "name": name}]
    await kube.client.create(
        KINDS["RoleBinding"], {**role, "kind": "RoleBinding", "roleRef": reference, "subjects": subjects}
    )
    return kube.server.kubeconfig_of(name, name)
