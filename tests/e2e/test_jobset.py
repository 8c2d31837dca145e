"""The second operator: a plain program under JobSet."""

from __future__ import annotations

import time

import pytest

from tests.e2e.kube import Object
from tests.e2e.world import E2eCluster

NAME = "train-resnet-on-imagenet-with-42-letters-x"
"""As long a name as Kubernetes accepts for a RayJob: JobSet derives longer labels from the attempt's name."""

PROVISION_TIMEOUT = 20.0
"""provisionTimeout of the tier on which JobSet's controller hangs, in seconds."""


def workload(e2e: E2eCluster, workers: int, steps: int = 400) -> Object:
    alone = {"requests": {"cpu": "1200m", "memory": "256Mi"}}  # of two CPUs: a machine to itself
    pod = e2e.pod("256Mi", command=["python", "/programs/plain.py", "--steps", str(steps)], resources=alone)
    job = {"parallelism": workers, "completions": workers, "template": {"spec": pod}}
    replicated = [{"name": "workers", "replicas": 1, "template": {"spec": job}}]
    return {"jobSet": {"template": {"spec": {"replicatedJobs": replicated}}}}


@pytest.mark.smoke
def test_a_jobset_restarts_on_its_tier_and_then_falls_back(e2e: E2eCluster) -> None:
    """JobSet recovers from the first dead machine inside the attempt. More workers apply to the next attempt. The
    second dead machine exceeds maxFailures. Meanwhile JobSet's controller hangs, which exhausts no tier."""
    assert len(NAME) == 42
    e2e.pool("spot", 3)
    e2e.pool("on-demand", 2)
    tiers = ({"name": "spot", "maxFailures": 1}, {"name": "on-demand", "provisionTimeout": f"{PROVISION_TIMEOUT:g}s"})
    e2e.submit(*tiers, name=NAME, workload=workload(e2e, 1))
    e2e.runs("spot", NAME)
    e2e.cluster.kill(e2e.worker_node(NAME))
    e2e.until("the first loss is counted", lambda: e2e.status(NAME)["failures"] == 1)
    e2e.runs("spot", NAME, past=e2e.steps(NAME))
    assert e2e.status(NAME)["attempt"] == 1
    (jobset,) = e2e.kube.list("jobsets")
    assert jobset["status"]["restarts"] == 1

    e2e.submit(*tiers, name=NAME, workload=workload(e2e, 2))
    e2e.until("the next attempt starts", lambda: e2e.status(NAME)["attempt"] == 2)
    e2e.runs("spot", NAME, past=e2e.steps(NAME))
    assert e2e.path(NAME) == [("spot", "SpecUpdated")]
    assert len(e2e.pods("worker", NAME)) == 2

    with e2e.cluster.stopped("jobset"):
        e2e.cluster.kill(e2e.worker_node(NAME))
        e2e.until("JobSet does not act", lambda: e2e.condition("Degraded", NAME).get("reason") == "OperatorSilent")
        time.sleep(PROVISION_TIMEOUT + 5)
        assert (e2e.status(NAME)["tier"], e2e.status(NAME)["attempt"]) == ("on-demand", 3)
    e2e.succeeds(NAME)
    assert e2e.path(NAME) == [("spot", "SpecUpdated"), ("spot", "MaxFailuresExceeded"), ("on-demand", "Completed")]
    assert e2e.status(NAME)["failures"] == 2
    e2e.is_the_uninterrupted_result(NAME, steps=400)
    e2e.until("the output of its last attempt is kept", lambda: e2e.printed(3, NAME))
    assert e2e.printed(3, NAME)["workers-0-0"].splitlines()[-1].endswith(" of 400 steps")


def test_a_rank_that_fails_before_its_peer_has_a_node_starts_again(e2e: E2eCluster) -> None:
    """The address of a peer without a node does not exist, so that most programs fail at once."""
    e2e.pool("spot", 1)
    described = workload(e2e, 2, steps=100)
    pod = described["jobSet"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    peer = "$(hostname | sed 's/[0-9]*$/1/').$(hostname | sed 's/-workers.*//')"
    script = f"sleep 3; getent hosts {peer} || exit 1; exec python /programs/plain.py --steps 100"
    pod["containers"][0]["command"] = ["sh", "-c", script]
    e2e.submit({"name": "spot", "maxFailures": 0, "provisionTimeout": "30m"}, workload=described)
    e2e.until("its start has failed", lambda: ("spot", "StartCrashed") in e2e.path())
    e2e.give("spot")
    status = e2e.succeeds()
    assert status.get("failures", 0) == 0
    assert set(e2e.path()[:-1]) == {("spot", "StartCrashed")}
    assert e2e.path()[-1] == ("spot", "Completed")
