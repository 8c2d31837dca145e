"""The commands for a job whose attempts ran in another cluster than the job's own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.kube.apiserver import ApiServer
from tests.kube.commands import Cli, set_status
from tests.kube.kubelet import kubelet, ray_pod
from tests.kube.second_cluster import second_cluster
from tests.kube.world import KubeWorld, world

ATTEMPT = {"number": 1, "tier": "spot-east", "cluster": "east", "reason": "MaxFailuresExceeded", "endStep": 40}
TITLE = "==> attempt 1 on spot-east in cluster east: MaxFailuresExceeded, steps 0 → 40 <=="


def context(server: ApiServer, name: str, folder: Path) -> Path:
    """A kubeconfig with one context of that name."""
    text = server.kubeconfig.read_text(encoding="utf-8").replace('"tests"', json.dumps(name))
    file = folder / f"kubeconfig-{name}"
    file.write_text(text, encoding="utf-8")
    return file


def use(monkeypatch: pytest.MonkeyPatch, *files: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, files)))


async def left_east(kube: KubeWorld) -> str:
    """A job whose first attempt was in east, and whose second is in the home cluster. Returns its uid."""
    job = await kube.submit()
    await set_status(kube, phase="Running", attempt=2, tier="spot-b", cluster="home", attempts=[ATTEMPT])
    return str(job["metadata"]["uid"])


async def test_logs_are_read_where_each_attempt_ran(
    api_server: ApiServer, second_server: ApiServer, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, api_server.kubeconfig, context(second_server, "east", tmp_path))
    async with world(api_server) as kube, second_cluster(second_server, kube) as east:
        uid = await left_east(kube)
        async with kubelet(kube) as (logs, node), kubelet(east) as (far_logs, far_node):
            head = await ray_pod(kube, node, "digits-a002-head", role="head", containers=["ray", "ray-job-submitter"])
            far: dict[str, Any] = {"attempt": "1", "role": "head", "containers": ["ray", "ray-job-submitter"]}
            before = await ray_pod(east, far_node, "digits-a001-head", **far, job_uid=uid)
            other = await ray_pod(east, far_node, "digits-a001-head-of-another", **far, job_uid="of-another-home")
            logs.logs = {(head, "ray-job-submitter"): ["step 41"]}
            far_logs.logs = {(before, "ray-job-submitter"): ["step 1"], (other, "ray-job-submitter"): ["foreign"]}
            answer = await cli("logs", "digits", "-n", kube.namespace)
            assert (answer.code, answer.out) == (0, "step 1\nstep 41\n")
            assert answer.err.splitlines() == [TITLE, "==> attempt 2 on spot-b <=="]

            use(monkeypatch, api_server.kubeconfig, context(second_server, "prod-east", tmp_path))
            options = ("--context-for", "east=prod-east")
            assert (await cli("logs", "digits", "-n", kube.namespace, *options)).out == "step 1\nstep 41\n"

            unknown = await cli("logs", "digits", "-n", kube.namespace)
            assert (unknown.code, unknown.out) == (0, "step 41\n")
            why = (
                "cluster east has no context of the same name: set --context-for east=CONTEXT "
                "(contexts: tests, prod-east)"
            )
            assert unknown.err.splitlines() == [TITLE, why, "==> attempt 2 on spot-b <=="]
            alone = await cli("logs", "digits", "--attempt", 1, "-n", kube.namespace)
            assert (alone.code, alone.out, alone.err) == (5, "", f"error: {why}\n")

            wrong = await cli("logs", "digits", "-n", kube.namespace, "--context-for", "east=tests")
            assert wrong.err.splitlines()[1] == "the pods of the attempt are gone in its cluster (context tests)"


async def test_events_of_all_clusters(
    api_server: ApiServer, second_server: ApiServer, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, api_server.kubeconfig, context(second_server, "east", tmp_path))
    async with world(api_server) as kube, second_cluster(second_server, kube) as east:
        await left_east(kube)
        await kube.record_event("FellBack", "attempt 2 on spot-b", about=await kube.job())
        for cluster, name in ((east, "digits-a001-worker"), (kube, "digits-a002-worker"), (east, "other-a001-worker")):
            about = {"kind": "Pod", "metadata": {"name": name, "namespace": kube.namespace}}
            await cluster.record_event("FailedScheduling", f"no node for {name}", about=about, source="scheduler")
        found = await cli("events", "digits", "--all", "-n", kube.namespace, "-o", "json")
        assert (found.code, found.err) == (0, "")
        messages = {item["message"] for item in json.loads(found.out)["items"]}
        assert messages == {"attempt 2 on spot-b", "no node for digits-a001-worker", "no node for digits-a002-worker"}
        table = (await cli("events", "digits", "--all", "-n", kube.namespace)).out.splitlines()
        assert table[0].split()[:2] == ["AGE", "CLUSTER"]
        where = {line.split()[-1]: line.split()[1] for line in table if "no node for" in line}
        assert where == {"digits-a001-worker": "east", "digits-a002-worker": "–"}
        assert "CLUSTER" not in (await cli("events", "digits", "-n", kube.namespace)).out.splitlines()[0]
        own = await cli("events", "digits", "-n", kube.namespace, "-o", "json")
        assert [item["message"] for item in json.loads(own.out)["items"]] == ["attempt 2 on spot-b"]
