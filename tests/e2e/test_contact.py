"""Nodes that are silent for a while exhaust no tier."""

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


def test_all_nodes_of_a_job_are_cut_off_for_a_while(e2e: E2eCluster) -> None:
    e2e.heads(1)
    e2e.pool("spot", 2)
    e2e.pool("on-demand", 2)
    workload = {"ray": {"template": {"spec": tolerant(e2e.ray("chain.py --steps 100000"))}}}
    e2e.submit("spot", "on-demand", workload=workload, contactTimeout="10m")
    e2e.runs("spot")
    nodes = [*e2e.nodes[HEADS], *e2e.nodes["spot"]]
    e2e.cluster.partition(*nodes)
    cut_off = time.time()
    e2e.until("the silence is reported", lambda: e2e.condition("Degraded").get("reason") == "ContactLost")
    time.sleep(max(0.0, cut_off + SILENCE - time.time()))
    e2e.cluster.heal(*nodes)
    e2e.until("contact is back", lambda: e2e.condition("Degraded").get("status") == "False")
    e2e.runs("spot", past=e2e.steps())
    status = e2e.status()
    assert (status["attempt"], status["failures"], e2e.path()) == (1, 0, [])
    e2e.suspend()
    e2e.is_the_uninterrupted_result(steps=e2e.steps())
