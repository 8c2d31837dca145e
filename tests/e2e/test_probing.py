"""A probe on a real cluster: the scheduler sees the other workers once the first one has a node."""

from __future__ import annotations

from spotladder.workloads import names
from tests.e2e.losses import SPOT
from tests.e2e.test_elastic import workload
from tests.e2e.world import E2eCluster


def states(here: E2eCluster) -> list[str]:
    """The state of each worker: "gated" by the probe, "asks" for a node, or "has a node"."""
    found = []
    for pod in here.pods("worker"):
        gated = {"name": names.PROBE_GATE} in pod["spec"].get("schedulingGates", [])
        found.append("gated" if gated else "has a node" if pod["spec"].get("nodeName") else "asks")
    return sorted(found)


def test_a_job_starts_with_all_workers_after_its_probe_has_a_node(here: E2eCluster) -> None:
    here.pool(SPOT, 0)
    tier = {"name": SPOT, "maxFailures": 1, "provisionTimeout": "240s", "probe": 1}
    here.submit(tier, workload=workload(here, 3))
    here.until("one worker asks for a node", lambda: states(here) == ["asks", "gated", "gated"], 60)
    here.give(SPOT)
    here.until("the others ask", lambda: states(here) == ["asks", "asks", "has a node"], 60)
    here.give(SPOT, 2)
    here.runs(SPOT)
    assert (here.status()["attempt"], here.status()["failures"]) == (1, 0)
    here.cluster.kill(here.worker_node())
    here.give(SPOT)
    here.until("the loss is counted", lambda: here.status()["failures"] == 1, 60)
    here.until("the replacement has a node", lambda: states(here) == ["has a node"] * 3, 120)
    here.until("the job runs again", lambda: here.status()["phase"] == "Running", 180)
    assert (here.status()["attempt"], here.status()["failures"]) == (1, 1)
    here.suspend()
    here.is_the_uninterrupted_result(steps=here.steps())
