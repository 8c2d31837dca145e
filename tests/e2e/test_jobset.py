"""The second operator: a plain program under JobSet."""

from __future__ import annotations

from tests.e2e.world import World


def test_a_jobset_moves_on_when_its_machine_dies(here: World) -> None:
    here.pool("spot", 1)
    here.pool("on-demand", 1)
    pod = here.pod("256Mi", command=["python", "/programs/plain.py", "--steps", "150"])
    job = {"parallelism": 1, "completions": 1, "template": {"spec": pod}}
    replicated = [{"name": "workers", "replicas": 1, "template": {"spec": job}}]
    here.submit("spot", "on-demand", workload={"jobSet": {"template": {"spec": {"replicatedJobs": replicated}}}})
    here.runs("spot")
    here.cluster.kill(here.worker_node())
    here.succeeds()
    assert here.path() == [("spot", "MaxFailuresExceeded"), ("on-demand", "Completed")]
    here.is_the_uninterrupted_result(steps=150)
