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


def quota(e2e: E2eCluster, memory: str) -> None:
    """A LocalQueue with this much memory and one CPU, and a higher priority."""
    limits = {"cpu": "1", "memory": memory}
    resources = [{"name": name, "nominalQuota": limits[name]} for name in RESOURCES]
    flavor: dict[str, Any] = {"name": "any", "resources": resources}

    def kueue(kind: str, name: str, **more: Any) -> dict[str, Any]:
        return {"apiVersion": QUEUE_API, "kind": kind, "metadata": {"name": name}, **more}

    e2e.kube.apply(
        kueue("ResourceFlavor", "any", spec={}),
        kueue("ClusterQueue", "all", spec={
            "namespaceSelector": {}, "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": list(RESOURCES), "flavors": [flavor]}],
        }),
        {**kueue("LocalQueue", "team", spec={"clusterQueue": "all"}),
         "metadata": {"name": "team", "namespace": e2e.namespace}},
        kueue("WorkloadPriorityClass", "high", value=1000),
    )  # fmt: skip


def submit(e2e: E2eCluster, name: str, *, steps: int, priority: str = "") -> None:
    """A JobSet with one pod in the queue."""
    command = ["python", "/programs/plain.py", "--steps", str(steps)]
    pod = e2e.pod("256Mi", command=command)
    pod["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": "256Mi"}}
    job = {"parallelism": 1, "completions": 1, "template": {"spec": pod}}
    labels = {"kueue.x-k8s.io/priority-class": priority} if priority else {}
    template = {
        "metadata": {"labels": labels},
        "spec": {"replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": job}}]},
    }
    tier = {"name": "spot", "maxFailures": 0, "queue": "team"}
    e2e.submit(tier, name=name, workload={"jobSet": {"template": template}})


def submit_ray(e2e: E2eCluster, name: str, *, steps: int) -> None:
    """A RayJob in the queue: its head and its two workers request 2 GiB."""
    tier = {"name": "spot", "maxFailures": 0, "queue": "team"}
    e2e.submit(tier, name=name, program=f"chain.py --steps {steps} --pace 0.5")


def test_a_preempted_ray_job_commits_nothing_after_its_next_attempt_has_begun(with_kueue: E2eSite) -> None:
    """KubeRay suspends the RayJob at once, and its pods train on for their grace period. What they commit counts until
    the next attempt begins."""
    with with_kueue.world() as e2e:
        quota(e2e, "2Gi")
        e2e.pool("spot", 3)
        submit_ray(e2e, "low", steps=300)
        e2e.runs("spot", name="low", past=10)
        submit(e2e, "high", steps=10, priority="high")
        e2e.until("it is preempted", lambda: e2e.path("low") == [("spot", "Preempted")])
        e2e.succeeds("high")
        e2e.runs("spot", name="low", past=e2e.steps("low"))
        began = min(step.at for step in e2e.done("low") if step.attempt > 1)
        assert not [commit for commit in e2e.commits("low") if commit.attempt == 1 and commit.at > began]
        e2e.succeeds("low")
        assert e2e.path("low") == [("spot", "Preempted"), ("spot", "Completed")]
        assert e2e.status("low")["failures"] == 0
        e2e.is_the_uninterrupted_result("low", steps=300)


def test_a_preempted_job_waits_in_the_queue_and_resumes_from_its_newest_commit(with_kueue: E2eSite) -> None:
    with with_kueue.world() as e2e:
        quota(e2e, "256Mi")
        e2e.pool("spot", 2)
        submit(e2e, "low", steps=200)
        e2e.runs("spot", name="low")
        submit(e2e, "high", steps=30, priority="high")
        e2e.until("it is preempted", lambda: e2e.path("low") == [("spot", "Preempted")])

        def waits() -> bool:
            return e2e.condition("Provisioned", "low").get("reason") == "WaitingForQuota"

        e2e.until("it waits for quota", waits)
        assert "insufficient unused quota" in e2e.condition("Provisioned", "low")["message"]
        assert e2e.condition("Degraded", "low")["status"] == "False"
        e2e.succeeds("high")
        e2e.succeeds("low")
        assert e2e.path("low") == [("spot", "Preempted"), ("spot", "Completed")]
        assert (e2e.status("low")["failures"], e2e.status("high")["failures"]) == (0, 0)
        assert e2e.path("high") == [("spot", "Completed")]
        e2e.is_the_uninterrupted_result("low", steps=200)
        e2e.until("what its last attempt printed is kept", lambda: e2e.printed(2, "low"))
        did = e2e.printed(2, "low")["workers-0-0"].splitlines()[-1]  # "did 150 of 200 steps"
        assert 0 < int(did.split()[1]) < 200, "the job did not resume from its last commit"
