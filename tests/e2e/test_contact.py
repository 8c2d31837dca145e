"""Nodes that are silent for a while, and a start that crashes: neither exhausts a tier."""

from __future__ import annotations

import time

from tests.e2e.kube import Object
from tests.e2e.world import HEADS, E2eCluster

SILENCE = 25.0
"""Seconds for which the nodes are cut off; the cluster marks them after 10."""


def tolerant(spec: Object) -> Object:
    """The RayJob with the tolerations that Kubernetes gives pods by default: this cluster evicts after 5 s."""
    cluster = spec["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        group["template"]["spec"]["tolerations"] = [
            {
                "key": f"node.kubernetes.io/{state}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for state in ("not-ready", "unreachable")
        ]
    return spec


def test_all_nodes_of_a_job_are_cut_off_for_a_while(here: E2eCluster) -> None:
    here.heads(1)
    here.pool("spot", 2)
    here.pool("on-demand", 2)
    workload = {"ray": {"template": {"spec": tolerant(here.ray("chain.py --steps 100000"))}}}
    here.submit("spot", "on-demand", workload=workload, contactTimeout="1m")
    here.runs("spot")
    nodes = [*here.nodes[HEADS], *here.nodes["spot"]]
    here.cluster.partition(*nodes)
    cut_off = time.time()
    here.until("the silence is reported", lambda: here.condition("Degraded").get("reason") == "ContactLost", SILENCE)
    time.sleep(max(0.0, cut_off + SILENCE - time.time()))
    here.cluster.heal(*nodes)
    here.until("contact is back", lambda: here.condition("Degraded").get("status") == "False", 60)
    here.runs("spot", past=here.steps())
    status = here.status()
    assert (status["attempt"], status["failures"], here.path()) == (1, 0, [])
    here.suspend()
    here.is_the_uninterrupted_result(steps=here.steps())


def test_a_flag_that_ray_does_not_know_spends_no_tier(here: E2eCluster) -> None:
    here.pool("spot", 2)
    here.pool("on-demand", 0)
    spec = here.ray("chain.py")
    spec["rayClusterSpec"]["headGroupSpec"]["rayStartParams"]["bogus-flag"] = "1"
    here.submit("spot", {"name": "on-demand", "maxFailures": -1}, workload={"ray": {"template": {"spec": spec}}})
    here.until("the second start has crashed", lambda: len(here.path()) >= 2)
    assert set(here.path()) == {("spot", "StartCrashed")}
    status = here.status()
    assert (status["tier"], status["failures"]) == ("spot", 0)
    degraded = here.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "CrashLoop")
    assert "exit code 2" in degraded["message"]
    assert "bogus-flag" in degraded["message"]
