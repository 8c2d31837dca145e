"""The output of a program after its pods are gone."""

from __future__ import annotations

from tests.e2e.world import E2eCluster


def test_a_ray_program_that_fails_leaves_its_error_and_its_output(here: E2eCluster) -> None:
    here.pool("spot", 2)
    spec = here.ray("chain.py")
    spec["entrypoint"] = "sh -c 'seq 1 4500; python /programs/none.py'"
    here.submit("spot", workload={"ray": {"template": {"spec": spec}}})
    here.until("the job fails", lambda: here.status().get("phase") == "Failed", limit=300.0)
    message = here.condition("Completed")["message"]
    assert message.startswith("Job entrypoint command failed with exit code 2: ")
    assert "none.py" in message
    here.until("its output is kept", lambda: here.printed(1))
    lines = here.printed(1)["driver"].splitlines()
    assert lines[-1] in message
    assert "1" in lines  # All of it, from Ray's dashboard: the RayJob's status has only 10 lines.
    here.until("its pods are gone", lambda: not here.kube.list("pods", "spotladder.io/job=job"))
