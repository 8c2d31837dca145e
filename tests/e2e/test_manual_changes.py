"""User actions on a running job: deleted objects and changed specs."""

from __future__ import annotations

from tests.e2e.world import SECRET, E2eCluster


def test_a_job_survives_manual_deletions_and_changes_of_its_spec(e2e: E2eCluster) -> None:
    e2e.pool("spot", 2)
    e2e.pool("on-demand", 2)
    e2e.submit({"name": "spot", "maxFailures": 1}, "on-demand", program="chain.py --steps 100000")
    e2e.runs("spot")

    e2e.kube.delete("rayjob", "job-a001", "--wait=false")
    e2e.runs("spot", past=e2e.steps())
    assert e2e.status()["attempt"] == 2
    assert e2e.status()["failures"] == 1

    e2e.kube.patch(
        "tieredjob", "job", {"spec": {"tiers": [e2e.tier({"name": "spot", "maxFailures": 0}), e2e.tier("on-demand")]}}
    )
    e2e.kube.delete("secret", SECRET)
    e2e.until(
        "the missing Secret is reported",
        lambda: e2e.condition("Checkpointing").get("reason") == "CheckpointsUnreadable",
    )
    assert e2e.status()["phase"] == "Running"
    e2e.prepare()

    worker = e2e.pods("worker")[0]["metadata"]["name"]
    e2e.kube.delete("pod", worker, "--wait=false")
    e2e.runs("on-demand", past=e2e.steps())
    first, second = e2e.path()
    assert first in (("spot", "Vanished"), ("spot", "HeadLost"))  # Its pods are deleted before it, or after.
    assert second == ("spot", "MaxFailuresExceeded")
    e2e.suspend()
    e2e.is_the_uninterrupted_result(steps=e2e.steps())
    e2e.kube.delete("tieredjob", "job")
    assert e2e.kube.list("rayjobs,rayclusters,poddisruptionbudgets,networkpolicies") == []


def test_two_jobs_compete_for_one_pool(e2e: E2eCluster) -> None:
    """The first job keeps the pool; the other falls back when its own provisionTimeout expires."""
    e2e.pool("spot", 2)
    e2e.pool("on-demand", 2)
    wants = {"requests": {"cpu": "1200m"}}  # of two CPUs: a machine to itself
    for name, patience in (("first", "3m"), ("second", "20s")):
        spec = e2e.ray("chain.py --steps 60")
        for group in spec["rayClusterSpec"]["workerGroupSpecs"]:
            group["template"]["spec"]["containers"][0]["resources"] = wants
        e2e.submit(
            {"name": "spot", "provisionTimeout": patience, "maxFailures": 3},
            {"name": "on-demand", "maxFailures": 3},
            name=name,
            workload={"ray": {"template": {"spec": spec}}},
        )
        if name == "first":
            e2e.until("the first has the pool", lambda: len(e2e.pods("worker", "first")) == 2)
    for name, path in (
        ("first", [("spot", "Completed")]),
        ("second", [("spot", "InsufficientCapacity"), ("on-demand", "Completed")]),
    ):
        e2e.succeeds(name)
        assert e2e.last_on_each_tier(name) == path
        e2e.is_the_uninterrupted_result(name, steps=60)
