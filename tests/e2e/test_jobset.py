"""The second operator: a plain program under JobSet."""

from __future__ import annotations

import time

from tests.e2e.kube import Object
from tests.e2e.world import E2eCluster

NAME = "train-resnet-on-imagenet-with-42-letters-x"
"""As long a name as Kubernetes accepts for a RayJob: JobSet derives longer labels from the attempt's name."""

PROVISION_TIMEOUT = 20.0
"""provisionTimeout of the tier on which JobSet's controller hangs, in seconds."""


def workload(here: E2eCluster, workers: int, steps: int = 400) -> Object:
    alone = {"requests": {"cpu": "1200m", "memory": "256Mi"}}  # of two CPUs: a machine to itself
    pod = here.pod("256Mi", command=["python", "/programs/plain.py", "--steps", str(steps)], resources=alone)
    job = {"parallelism": workers, "completions": workers, "template": {"spec": pod}}
    replicated = [{"name": "workers", "replicas": 1, "template": {"spec": job}}]
    return {"jobSet": {"template": {"spec": {"replicatedJobs": replicated}}}}


def test_a_jobset_restarts_on_its_tier_and_then_moves_on(here: E2eCluster) -> None:
    """JobSet recovers from the first dead machine inside the attempt. More workers apply to the next attempt. The
    second dead machine exceeds maxFailures. Meanwhile JobSet's controller hangs, which exhausts no tier."""
    assert len(NAME) == 42
    here.pool("spot", 3)
    here.pool("on-demand", 2)
    tiers = ({"name": "spot", "maxFailures": 1}, {"name": "on-demand", "provisionTimeout": f"{PROVISION_TIMEOUT:g}s"})
    here.submit(*tiers, name=NAME, workload=workload(here, 1))
    here.runs("spot", NAME)
    here.cluster.kill(here.worker_node(NAME))
    here.until("the first loss is counted", lambda: here.status(NAME)["failures"] == 1)
    here.runs("spot", NAME, past=here.steps(NAME))
    assert here.status(NAME)["attempt"] == 1
    (jobset,) = here.kube.list("jobsets")
    assert jobset["status"]["restarts"] == 1

    here.submit(*tiers, name=NAME, workload=workload(here, 2))
    here.until("the next attempt starts", lambda: here.status(NAME)["attempt"] == 2)
    here.runs("spot", NAME, past=here.steps(NAME))
    assert here.path(NAME) == [("spot", "SpecUpdated")]
    assert len(here.pods("worker", NAME)) == 2

    with here.cluster.stopped("jobset"):
        here.cluster.kill(here.worker_node(NAME))
        here.until(
            "JobSet does not act", lambda: here.condition("Degraded", NAME).get("reason") == "OperatorSilent", 120
        )
        time.sleep(PROVISION_TIMEOUT + 5)
        assert (here.status(NAME)["tier"], here.status(NAME)["attempt"]) == ("on-demand", 3)
    here.succeeds(NAME)
    assert here.path(NAME) == [("spot", "SpecUpdated"), ("spot", "MaxFailuresExceeded"), ("on-demand", "Completed")]
    assert here.status(NAME)["failures"] == 2
    here.is_the_uninterrupted_result(NAME, steps=400)
    here.until("the output of its last attempt is kept", lambda: here.printed(3, NAME))
    assert here.printed(3, NAME)["workers-0-0"].splitlines()[-1].endswith(" of 400 steps")
