"""User actions on a running job: deleted objects and changed specs."""

from __future__ import annotations

from tests.e2e.world import SECRET, E2eCluster


def test_things_are_deleted_by_hand_and_the_spec_is_changed(here: E2eCluster) -> None:
    here.pool("spot", 2)
    here.pool("on-demand", 2)
    here.submit({"name": "spot", "maxFailures": 1}, "on-demand", program="chain.py --steps 100000")
    here.runs("spot")

    here.kube.delete("rayjob", "job-a001", "--wait=false")
    here.runs("spot", past=here.steps())
    assert here.status()["attempt"] == 2
    assert here.status()["failures"] == 1

    here.kube.patch(
        "tieredjob", "job", {"spec": {"tiers": [here.tier({"name": "spot", "maxFailures": 0}), here.tier("on-demand")]}}
    )
    here.kube.delete("secret", SECRET)
    here.until(
        "the missing Secret is reported",
        lambda: here.condition("Checkpointing").get("reason") == "CheckpointsUnreadable",
    )
    assert here.status()["phase"] == "Running"
    here.prepare()

    worker = here.pods("worker")[0]["metadata"]["name"]
    here.kube.delete("pod", worker, "--wait=false")
    here.runs("on-demand", past=here.steps())
    first, second = here.path()
    assert first in (("spot", "Vanished"), ("spot", "HeadLost"))  # Its pods are deleted before it, or after.
    assert second == ("spot", "MaxFailuresExceeded")
    here.suspend()
    here.is_the_uninterrupted_result(steps=here.steps())
    here.kube.delete("tieredjob", "job")
    assert here.kube.list("rayjobs,rayclusters,poddisruptionbudgets,networkpolicies") == []


def test_two_jobs_want_one_pool(here: E2eCluster) -> None:
    """The first job keeps the pool; the other falls back when its own provisionTimeout expires."""
    here.pool("spot", 2)
    here.pool("on-demand", 2)
    wants = {"requests": {"cpu": "1200m"}}  # of two CPUs: a machine to itself
    for name, patience in (("first", "3m"), ("second", "20s")):
        spec = here.ray("chain.py --steps 60")
        for group in spec["rayClusterSpec"]["workerGroupSpecs"]:
            group["template"]["spec"]["containers"][0]["resources"] = wants
        here.submit(
            {"name": "spot", "provisionTimeout": patience, "maxFailures": 3},
            {"name": "on-demand", "maxFailures": 3},
            name=name,
            workload={"ray": {"template": {"spec": spec}}},
        )
        if name == "first":
            here.until("the first has the pool", lambda: len(here.pods("worker", "first")) == 2)
    for name, path in (
        ("first", [("spot", "Completed")]),
        ("second", [("spot", "InsufficientCapacity"), ("on-demand", "Completed")]),
    ):
        here.succeeds(name)
        assert here.last_on_each_tier(name) == path
        here.is_the_uninterrupted_result(name, steps=60)
