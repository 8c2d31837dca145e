"""The output of a program after its pods are gone."""

from __future__ import annotations

from tests.e2e.world import E2eCluster


def test_a_ray_program_that_fails_leaves_its_error_and_its_output(e2e: E2eCluster) -> None:
    e2e.pool("spot", 2)
    spec = e2e.ray("chain.py")
    spec["entrypoint"] = "sh -c 'seq 1 4500; python /programs/none.py'"
    e2e.submit("spot", workload={"ray": {"template": {"spec": spec}}})
    e2e.until("the job fails", lambda: e2e.status().get("phase") == "Failed")
    message = e2e.condition("Completed")["message"]
    assert message.startswith("Job entrypoint command failed with exit code 2: ")
    assert "none.py" in message
    e2e.until("its output is kept", lambda: e2e.printed(1))
    lines = e2e.printed(1)["driver"].splitlines()
    assert lines[-1] in message
    assert "1" in lines  # All of it, from Ray's dashboard: the RayJob's status has only 10 lines.
    e2e.until("its pods are gone", lambda: not e2e.kube.list("pods", "spotladder.io/job=job"))
