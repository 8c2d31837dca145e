"""The second operator: a plain program under JobSet."""

from __future__ import annotations

from tests.e2e.world import E2eCluster


def test_a_jobset_restarts_on_its_tier_and_then_moves_on(here: E2eCluster) -> None:
    """The first dead machine is JobSet's own to recover from, inside the attempt; the second one is too many."""
    here.pool("spot", 2)
    here.pool("on-demand", 1)
    pod = here.pod("256Mi", command=["python", "/programs/plain.py", "--steps", "300"])
    job = {"parallelism": 1, "completions": 1, "template": {"spec": pod}}
    replicated = [{"name": "workers", "replicas": 1, "template": {"spec": job}}]
    here.submit(
        {"name": "spot", "maxFailures": 1},
        "on-demand",
        workload={"jobSet": {"template": {"spec": {"replicatedJobs": replicated}}}},
    )
    here.runs("spot")
    here.cluster.kill(here.worker_node())
    here.until("the first loss is counted", lambda: here.status()["failures"] == 1)
    here.runs("spot", past=here.steps())
    assert here.status()["attempt"] == 1
    (jobset,) = here.kube.list("jobsets")
    assert jobset["status"]["restarts"] == 1
    here.cluster.kill(here.worker_node())
    here.succeeds()
    assert here.path() == [("spot", "MaxFailuresExceeded"), ("on-demand", "Completed")]
    assert here.status()["failures"] == 2
    here.is_the_uninterrupted_result(steps=300)
    here.until("what its last attempt printed is kept", lambda: here.printed(2))
    assert here.printed(2)["workers-0-0"].splitlines()[-1].endswith(" of 300 steps")
