"""A node that fails every pod is avoided by later attempts."""

from __future__ import annotations

import re

from tests.e2e.world import E2eCluster


def fails_on(e2e: E2eCluster, node: str) -> dict[str, object]:
    """A container that fails every pod on this node, as a broken GPU does."""
    return {
        "name": "self-test",
        "image": e2e.image,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", f'test "$NODE" != {node} || {{ echo "no device on $NODE"; exit 3; }}'],
        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
    }


def test_a_node_on_which_pods_fail_twice_is_avoided_by_the_next_attempt(e2e: E2eCluster) -> None:
    e2e.pool("spot", 2)
    bad, good = e2e.nodes["spot"]
    spec = e2e.ray("chain.py --steps 100000")
    pod = spec["rayClusterSpec"]["workerGroupSpecs"][0]["template"]["spec"]
    pod["initContainers"] = [fails_on(e2e, bad)]
    pod["containers"][0]["resources"]["requests"]["cpu"] = "1200m"  # of two CPUs: a machine to itself
    e2e.submit({"name": "spot", "maxFailures": 1}, workload={"ray": {"template": {"spec": spec}}})

    def avoids() -> bool:
        """Whether the Event of a new attempt names the node."""
        messages = [event.get("message") or "" for event in e2e.kube.list("events")]
        return any(re.search(rf"avoids {bad} \(\d+ failed pods\)", message) for message in messages)

    e2e.until("its pods have failed on the node, and an attempt avoids it", avoids)
    e2e.until("the condition names the node", lambda: bad in e2e.condition("Running").get("message", ""))
    (free,) = e2e.give("spot")
    e2e.runs("spot")
    assert {pod["spec"]["nodeName"] for pod in e2e.pods("worker")} == {good, free}
    assert set(e2e.path()) == {("spot", "StartCrashed")}
    assert e2e.status()["failures"] == 0, "failed starts exhaust no tier"
    e2e.suspend()
    e2e.is_the_uninterrupted_result(steps=e2e.steps())
