"""The facts about a pod from which the core tells capacity, a slow start, a crash and a loss of contact apart."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.core.model import PodPhase
from spotladder.workloads.pod_observation import pod_seen
from spotladder.workloads.records import NodeRecord
from tests.workloads.builders import node, pod

NODES = {"node-1": node()}
RUNS = {"name": "wait-gcs-ready", "state": {"running": {}}}


@pytest.mark.parametrize(
    ("more", "scheduled", "image_pulled"),
    [
        pytest.param({"unschedulable": "0/3 nodes are available"}, False, False, id="no node"),
        pytest.param({}, True, False, id="its image is being pulled"),
        pytest.param({"waiting": "ErrImagePull"}, True, False, id="its image cannot be pulled"),
        pytest.param({"container": RUNS}, True, True, id="its first container runs"),
        pytest.param({"exit_code": 0}, True, True, id="its first container has run"),
    ],
)
def test_what_a_pending_pod_has(more: dict[str, Any], scheduled: bool, image_pulled: bool) -> None:
    seen = pod_seen(pod(phase="Pending", **more), NODES, ())
    assert (seen.scheduled, seen.image_pulled) == (scheduled, image_pulled)
    assert seen.placed is (scheduled and image_pulled)


@pytest.mark.parametrize(
    ("more", "nodes", "silent"),
    [
        pytest.param({}, NODES, False, id="heard of"),
        pytest.param({}, {"node-1": node(ready="Unknown")}, True, id="not heard of"),
        pytest.param({}, {"node-1": node(taints=("node.kubernetes.io/unreachable",))}, True, id="unreachable"),
        pytest.param({"phase": "Pending"}, {"node-1": node(ready="Unknown")}, True, id="starting"),
        pytest.param({}, {}, False, id="the node is gone: that is known"),
        pytest.param({"deleted": True}, {"node-1": node(ready="Unknown")}, False, id="evicted meanwhile"),
        pytest.param(
            {}, {"node-1": node(ready="Unknown", taints=("karpenter.sh/disrupted",))}, False, id="reclaimed: explained"
        ),
        pytest.param(
            {}, {"node-1": node(taints=("node.kubernetes.io/out-of-service",))}, False, id="switched off, by its taint"
        ),
    ],
)
def test_silence(more: dict[str, Any], nodes: dict[str, NodeRecord], silent: bool) -> None:
    seen = pod_seen(pod(**more), nodes, ())
    assert seen.silent is silent
    assert not silent or seen.phase is PodPhase.LOST


def test_the_end_of_a_container_is_told_with_its_code_and_last_words() -> None:
    ended = pod(phase="Failed", exit_code=2, exit_message="Usage: ray start\nError: No such option: --bogus-flag\n")
    seen = pod_seen(ended, NODES, ())
    assert (seen.exit_code, seen.exit_message) == (2, "Error: No such option: --bogus-flag")
