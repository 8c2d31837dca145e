"""The real Karpenter buys real nodes: spot until there is none, then on-demand, and no pod on the other's nodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.absent import absent
from tests.e2e.kube import Object
from tests.e2e.provider import program
from tests.e2e.site import installed
from tests.e2e.world import World

TYPE = "karpenter.sh/capacity-type"


def node_pool(kind: str) -> Object:
    """Small machines of one capacity type."""
    requirements = [
        {"key": TYPE, "operator": "In", "values": [kind]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m.medium"]},
    ]
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": kind},
        "spec": {
            "template": {"spec": {"nodeClassRef": reference, "requirements": requirements}},
            "limits": {"nodes": "3"},
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "10s"},
        },
    }


@pytest.fixture
def bought(tag: str) -> Iterator[World]:
    """A cluster whose nodes Karpenter buys, but for the one of the heads."""
    if not program("karpenter").exists():
        absent("not installed: karpenter (`cluster install karpenter`)", "e2e")
    with installed("e2ek", tag, "kuberay", "karpenter") as site, site.world() as here:
        here.kube.apply(node_pool("spot"), node_pool("on-demand"))
        yield here


def test_spot_nodes_go_spot_is_dry_on_demand_is_bought(bought: World) -> None:
    here = bought
    for kind in ("spot", "on-demand"):
        here.pool(kind, 0, provider="aws", extraSelectors={})
    spec = here.ray("chain.py --steps 100000")
    for group in spec["rayClusterSpec"]["workerGroupSpecs"]:
        group["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "700m", "memory": "1Gi"}}
    spot = {"name": "spot", "maxFailures": 5, "onInsufficientCapacity": "fallback"}
    here.submit(spot, "on-demand", workload={"ray": {"template": {"spec": spec}}})
    here.runs("spot")
    assert stands_on(here) == {"spot"}
    here.cluster.capacity("spot", "--limit", "0")
    here.cluster.remove(here.worker_node())
    here.runs("on-demand", past=here.steps(), limit=240)
    assert stands_on(here) == {"on-demand"}
    *noticed, last = here.path()  # Karpenter drains what it takes back: that is a notice
    assert {tier for tier, _ in noticed} <= {"spot"}
    assert last == ("spot", "InsufficientCapacity")
    here.suspend()
    here.is_the_uninterrupted_result(steps=here.steps())


def stands_on(here: World) -> set[str]:
    """Of which capacity type the workers' nodes are."""
    types = {node["metadata"]["name"]: node["metadata"]["labels"].get(TYPE, "") for node in here.kube.list("nodes")}
    return {types[pod["spec"]["nodeName"]] for pod in here.pods("worker")}
