"""An elastic job on a real cluster: it begins without a worker, grows, and continues without a lost one."""

from __future__ import annotations

from tests.e2e.kube import Object
from tests.e2e.losses import SPOT, handover
from tests.e2e.world import E2eCluster


def workload(e2e: E2eCluster, workers: int) -> Object:
    spec = e2e.ray("chain.py --steps 100000")
    (group,) = spec["rayClusterSpec"]["workerGroupSpecs"]
    alone = {"requests": {"cpu": "1200m", "memory": "512Mi"}}  # of two CPUs: a machine to itself
    group |= {"replicas": workers, "template": {"spec": e2e.pod("512Mi", resources=alone)}}
    return {"ray": {"template": {"spec": spec}}}


def size(e2e: E2eCluster) -> int:
    """The number of workers with which the program last started."""
    start = e2e.bucket.log(e2e.namespace, "job").read().start
    return 0 if start is None else start.workers


def trains_with(e2e: E2eCluster, workers: int) -> None:
    """Wait until the program has made a new step with this number of workers."""
    e2e.until(f"{workers} workers start", lambda: size(e2e) == workers)
    before = len(e2e.done())
    newest = max(step.step for step in e2e.done())
    e2e.until("a new step", lambda: any(step.step > newest for step in e2e.done()[before:]))


def test_an_elastic_job_begins_with_the_workers_that_get_a_node_grows_and_continues_with_fewer(e2e: E2eCluster) -> None:
    e2e.pool(SPOT, 2)
    grows = {"env": {"SPOTLADDER_GROW_AFTER": "5s"}}
    tier = {"name": SPOT, "maxFailures": 5, "provisionTimeout": "60s", "overrides": grows}
    e2e.submit(tier, workload=workload(e2e, 3), elastic={"min": 2})
    e2e.runs(SPOT)
    trains_with(e2e, 2)
    assert (e2e.status()["attempt"], e2e.status()["failures"]) == (1, 0)

    e2e.give(SPOT)
    trains_with(e2e, 3)
    print(f"elastic: {handover(e2e.done()):.1f} s without a step when the third worker joined")
    assert (e2e.status()["attempt"], e2e.status()["failures"], e2e.status()["phase"]) == (1, 0, "Running")

    e2e.cluster.kill(e2e.worker_node())
    trains_with(e2e, 2)
    print(f"elastic: {handover(e2e.done()):.1f} s without a step after the loss of one of three workers")
    e2e.until("the job runs with two workers", lambda: e2e.status()["phase"] == "Running")
    assert (e2e.status()["attempt"], e2e.status()["failures"]) == (1, 1)
    e2e.suspend()
    e2e.is_the_uninterrupted_result(steps=e2e.steps())
