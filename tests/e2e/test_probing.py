"""A probe on a real cluster: the scheduler sees the other workers once the first one has a node."""

from __future__ import annotations

from spotladder.workloads import names
from tests.e2e.losses import SPOT
from tests.e2e.test_elastic import workload
from tests.e2e.world import E2eCluster


def states(e2e: E2eCluster) -> list[str]:
    """The state of each worker: "gated" by the probe, "asks" for a node, or "has a node"."""
    found = []
    for pod in e2e.pods("worker"):
        gated = {"name": names.PROBE_GATE} in pod["spec"].get("schedulingGates", [])
        found.append("gated" if gated else "has a node" if pod["spec"].get("nodeName") else "asks")
    return sorted(found)


def test_a_job_starts_with_all_workers_after_its_probe_has_a_node(e2e: E2eCluster) -> None:
    e2e.pool(SPOT, 0)
    tier = {"name": SPOT, "maxFailures": 1, "provisionTimeout": "240s", "probe": 1}
    e2e.submit(tier, workload=workload(e2e, 3))
    e2e.until("one worker asks for a node", lambda: states(e2e) == ["asks", "gated", "gated"], 60)
    e2e.give(SPOT)
    e2e.until("the others ask", lambda: states(e2e) == ["asks", "asks", "has a node"], 60)
    e2e.give(SPOT, 2)
    e2e.runs(SPOT)
    assert (e2e.status()["attempt"], e2e.status()["failures"]) == (1, 0)
    e2e.cluster.kill(e2e.worker_node())
    e2e.give(SPOT)
    e2e.until("the loss is counted", lambda: e2e.status()["failures"] == 1, 60)
    e2e.until("the replacement has a node", lambda: states(e2e) == ["has a node"] * 3, 120)
    e2e.until("the job runs again", lambda: e2e.status()["phase"] == "Running", 180)
    assert (e2e.status()["attempt"], e2e.status()["failures"]) == (1, 1)
    e2e.suspend()
    e2e.is_the_uninterrupted_result(steps=e2e.steps())
