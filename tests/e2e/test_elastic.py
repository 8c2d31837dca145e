"""An elastic job on a real cluster: it continues without a lost worker, and with another one when its node comes."""

from __future__ import annotations

from tests.e2e.kube import Object
from tests.e2e.losses import SPOT, handover
from tests.e2e.world import E2eCluster


def workload(here: E2eCluster, workers: int) -> Object:
    spec = here.ray("chain.py --steps 100000")
    (group,) = spec["rayClusterSpec"]["workerGroupSpecs"]
    alone = {"requests": {"cpu": "1200m", "memory": "512Mi"}}  # of two CPUs: a machine to itself
    group |= {"replicas": workers, "template": {"spec": here.pod("512Mi", resources=alone)}}
    return {"ray": {"template": {"spec": spec}}}


def size(here: E2eCluster) -> int:
    """The number of workers with which the program last started."""
    start = here.bucket.log(here.namespace, "job").read().start
    return 0 if start is None else start.workers


def trains_with(here: E2eCluster, workers: int, limit: float) -> None:
    """Wait until the program has made a new step with this number of workers."""
    here.until(f"{workers} workers start", lambda: size(here) == workers, limit)
    before = len(here.done())
    newest = max(step.step for step in here.done())
    here.until("a new step", lambda: any(step.step > newest for step in here.done()[before:]), limit)


def test_an_elastic_job_continues_with_fewer_workers_and_grows_again(here: E2eCluster) -> None:
    here.pool(SPOT, 3)
    tier = {"name": SPOT, "maxFailures": 5}
    here.submit(tier, workload=workload(here, 3), elastic={"min": 2, "growAfter": "5s"})
    here.runs(SPOT)
    assert size(here) == 3
    here.cluster.kill(here.worker_node())
    trains_with(here, 2, 120)
    gap = handover(here.done())
    here.until("the job runs with two workers", lambda: here.status()["phase"] == "Running")
    print(f"elastic: {gap:.1f} s without a step after the loss of one of three workers")
    assert (here.status()["attempt"], here.status()["failures"]) == (1, 1)

    here.give(SPOT)
    trains_with(here, 3, 240)
    print(f"elastic: {handover(here.done()):.1f} s without a step when the third worker joined again")
    here.until("the job runs with three workers", lambda: here.status()["phase"] == "Running")
    assert (here.status()["attempt"], here.status()["failures"]) == (1, 1)
    here.suspend()
    here.is_the_uninterrupted_result(steps=here.steps())


def test_an_elastic_job_begins_without_workers_that_get_no_node_and_grows_later(here: E2eCluster) -> None:
    here.pool(SPOT, 2)
    tier = {"name": SPOT, "maxFailures": 5, "provisionTimeout": "60s"}
    here.submit(tier, workload=workload(here, 3), elastic={"min": 2, "growAfter": "5s"})
    here.runs(SPOT)
    trains_with(here, 2, 60)
    assert (here.status()["attempt"], here.status()["failures"]) == (1, 0)

    here.give(SPOT)
    trains_with(here, 3, 240)
    print(f"elastic: {handover(here.done()):.1f} s without a step when the third worker joined")
    assert (here.status()["attempt"], here.status()["failures"], here.status()["phase"]) == (1, 0, "Running")
    here.suspend()
    here.is_the_uninterrupted_result(steps=here.steps())
