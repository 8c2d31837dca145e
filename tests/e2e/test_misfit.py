"""A worker that fits no node of its tier: the job says which pod, what it asks for and what there is, and moves on."""

from __future__ import annotations

from tests.e2e.kube import Object
from tests.e2e.world import E2eCluster


def test_a_worker_that_fits_no_node_says_so_and_its_tier_is_left(e2e: E2eCluster) -> None:
    e2e.pool("spot", 2)
    spec = e2e.ray("chain.py --steps 100000")
    spec["rayClusterSpec"]["workerGroupSpecs"][0]["template"]["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "64", "memory": "512Mi"}
    }
    tier: Object = {"name": "spot", "maxFailures": 1, "provisionTimeout": "45s"}
    e2e.submit(tier, workload={"ray": {"template": {"spec": spec}}})

    def said() -> str:
        return str((e2e.status().get("waiting") or {}).get("message") or e2e.condition("Degraded").get("message") or "")

    message = e2e.until("the status names the request", lambda: said() if "64" in said() else "")
    print(message)
    assert "cpu" in message.lower()
    ended = e2e.until("the job has failed", lambda: e2e.condition("Completed").get("message", ""))
    print(ended)
    assert e2e.status()["phase"] == "Failed"
    assert "64" in ended, "the end repeats why no tier could run the job"
