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
