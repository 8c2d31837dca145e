"""One job on several kinds of nodes: the loss of a pod beside the tier is no failure of the tier."""

from __future__ import annotations

from tests.e2e.kube import Object
from tests.e2e.world import E2eCluster

STEPS = 300


def data_pods(e2e: E2eCluster) -> list[Object]:
    """The pods of the group beside the tier that run."""
    found = [pod for pod in e2e.pods() if pod["metadata"]["labels"].get("ray.io/group") == "data"]
    return [pod for pod in found if pod.get("status", {}).get("phase") == "Running"]


def test_a_lost_data_worker_is_no_failure_of_the_tier(e2e: E2eCluster) -> None:
    e2e.pool("spot", 2)
    data = e2e.pool("data", 1)
    spec = e2e.ray(f"chain.py --steps {STEPS}")
    group = {"groupName": "data", "replicas": 1, "rayStartParams": {"num-cpus": "0"}}
    spec["rayClusterSpec"]["workerGroupSpecs"].append({**group, "template": {"spec": e2e.pod("512Mi")}})
    tier = {"name": "spot", "maxFailures": 0, "groups": {"data": {"capacityTier": data}}}
    # On a busy machine a new node may take longer than the default.
    e2e.submit(tier, workload={"ray": {"template": {"spec": spec}}}, recoveryTimeout="10m")
    e2e.runs("spot")
    (pod,) = e2e.until("the data worker runs", lambda: data_pods(e2e))
    assert pod["spec"]["nodeName"] in e2e.nodes["data"]
    assert {worker["spec"]["nodeName"] for worker in e2e.pods("worker")} == set(e2e.nodes["spot"])
    e2e.cluster.remove(pod["spec"]["nodeName"])
    e2e.give("data")
    status = e2e.succeeds()
    assert (status["attempt"], status["failures"]) == (1, 0), status.get("attempts")
    e2e.is_the_uninterrupted_result(steps=STEPS)
