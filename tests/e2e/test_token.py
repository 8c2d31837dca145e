"""The token of Ray's dashboard, and the NetworkPolicy of an attempt, on a real cluster."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.e2e.provider import call
from tests.e2e.world import E2eCluster


def dashboard(e2e: E2eCluster) -> str:
    """The answer of the head's list of jobs to a request without a token."""
    (head,) = e2e.pods("head")
    name = head["metadata"]["name"]
    return e2e.kube.run("get", "--raw", f"/api/v1/namespaces/{e2e.namespace}/pods/{name}:8265/proxy/api/jobs/")


def logs(e2e: E2eCluster) -> str:
    """The output of `spotladder logs` of the live attempt."""
    command = [str(Path(sys.executable).parent / "spotladder"), "logs", "job", "-n", e2e.namespace]
    return call([*command, "--attempt", str(e2e.status()["attempt"])], env=_env(e2e))


def _env(e2e: E2eCluster) -> dict[str, str]:
    return {"KUBECONFIG": str(e2e.kube.kubeconfig), "PATH": os.environ["PATH"]}


def test_the_dashboard_requires_the_token_on_every_tier(e2e: E2eCluster) -> None:
    e2e.pool("spot", 2)
    e2e.pool("on-demand", 2)
    e2e.submit("spot", "on-demand", program="chain.py --steps 300")
    for attempt, tier in ((1, "spot"), (2, "on-demand")):
        e2e.runs(tier, past=e2e.steps())
        with pytest.raises(AssertionError, match="You must be logged in"):
            dashboard(e2e)
        assert "DataParallelTrainer" in logs(e2e) or "TrainController" in logs(e2e)
        isolated = (e2e.kube.get("networkpolicy", "job-attempts") or {})["spec"]["podSelector"]["matchLabels"]
        assert all(isolated.items() <= pod["metadata"]["labels"].items() for pod in e2e.pods())
        if attempt == 1:
            e2e.processes.append(e2e.cluster.notice(e2e.worker_node(), 30))
            e2e.until("it leaves spot", e2e.path)
            e2e.until("its output is kept", lambda: "driver" in e2e.printed(1))
    e2e.succeeds()
    e2e.until("its output is kept", lambda: e2e.printed(2))
    assert len(e2e.printed(2)["driver"].splitlines()) > 10, "Ray's dashboard sends it, not the status of the RayJob"
    e2e.is_the_uninterrupted_result(steps=300)
    e2e.until("no NetworkPolicy is left", lambda: not e2e.kube.list("networkpolicies"))
