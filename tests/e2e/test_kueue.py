"""The real Kueue: two jobs share a quota, and the one with the higher priority preempts the other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.absent import absent
from tests.e2e.provider import program
from tests.e2e.site import E2eSite, installed
from tests.e2e.world import E2eCluster

QUEUE_API = "kueue.x-k8s.io/v1beta2"
RESOURCES = ("cpu", "memory")


@pytest.fixture(scope="module")
def with_kueue(tag: str) -> Iterator[E2eSite]:
    """A cluster of its own: in a cluster with Kueue, JobSets and RayJobs need Kueue's webhooks. It takes some minutes,
    so the test runs only where it is asked for."""
    if "kueue" not in os.environ.get("SPOTLADDER_REQUIRE", "").split(","):
        pytest.skip("starts a cluster with Kueue: SPOTLADDER_REQUIRE=kueue")
    if not program("kueue").exists():
        absent("not installed: kueue (`cluster install kueue`)", "kueue", in_all=False)
    with installed("kueue", tag, "kuberay", "jobset", "kueue") as made:
        yield made


def quota(here: E2eCluster, pods: int) -> None:
    """A LocalQueue with quota for a number of the pods below, and a higher priority."""
    flavor: dict[str, Any] = {"name": "any", "resources": [
        {"name": "cpu", "nominalQuota": str(pods)}, {"name": "memory", "nominalQuota": f"{pods * 256}Mi"},
    ]}  # fmt: skip

    def kueue(kind: str, name: str, **more: Any) -> dict[str, Any]:
        return {"apiVersion": QUEUE_API, "kind": kind, "metadata": {"name": name}, **more}

    here.kube.apply(
        kueue("ResourceFlavor", "any", spec={}),
        kueue("ClusterQueue", "all", spec={
            "namespaceSelector": {}, "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": list(RESOURCES), "flavors": [flavor]}],
        }),
        {**kueue("LocalQueue", "team", spec={"clusterQueue": "all"}),
         "metadata": {"name": "team", "namespace": here.namespace}},
        kueue("WorkloadPriorityClass", "high", value=1000),
    )  # fmt: skip


def submit(here: E2eCluster, name: str, *, steps: int, priority: str = "") -> None:
    """A JobSet with one pod in the queue."""
    command = ["python", "/programs/plain.py", "--steps", str(steps)]
    pod = here.pod("256Mi", command=command)
    pod["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": "256Mi"}}
    job = {"parallelism": 1, "completions": 1, "template": {"spec": pod}}
    labels = {"kueue.x-k8s.io/priority-class": priority} if priority else {}
    template = {
        "metadata": {"labels": labels},
        "spec": {"replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": job}}]},
    }
    tier = {"name": "spot", "maxFailures": 1, "queue": "team"}
    here.submit(tier, name=name, workload={"jobSet": {"template": template}})


def test_a_preempted_job_waits_in_the_queue_and_goes_on_from_its_newest_commit(with_kueue: E2eSite) -> None:
    with with_kueue.world() as here:
        quota(here, 1)
        here.pool("spot", 2)
        submit(here, "low", steps=200)
        here.runs("spot", name="low")
        submit(here, "high", steps=30, priority="high")
        here.until("it is preempted", lambda: here.path("low") == [("spot", "Preempted")])

        def waits() -> bool:
            return here.condition("Provisioned", "low").get("reason") == "WaitingForQuota"

        here.until("it waits for quota", waits)
        assert "insufficient unused quota" in here.condition("Provisioned", "low")["message"]
        assert here.condition("Degraded", "low")["status"] == "False"
        here.succeeds("high")
        here.succeeds("low")
        assert here.path("low") == [("spot", "Preempted"), ("spot", "Completed")]
        assert (here.status("low")["failures"], here.status("high")["failures"]) == (1, 0)
        assert here.path("high") == [("spot", "Completed")]
        here.is_the_uninterrupted_result("low", steps=200)
        here.until("what its last attempt printed is kept", lambda: here.printed(2, "low"))
        did = here.printed(2, "low")["workers-0-0"].splitlines()[-1]  # "did 150 of 200 steps"
        assert 0 < int(did.split()[1]) < 200, "the job did not resume from its last commit"
