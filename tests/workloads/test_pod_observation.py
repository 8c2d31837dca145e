"""The facts by which the core distinguishes a lack of capacity, a slow start, a crash and a loss of contact."""

from __future__ import annotations

from dataclasses import replace
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
        pytest.param({}, True, False, id="image is being pulled"),
        pytest.param({"waiting": "ErrImagePull"}, True, False, id="image cannot be pulled"),
        pytest.param({"waiting": "PodInitializing", "initial": [RUNS]}, True, True, id="first container runs"),
        pytest.param({"exit_code": 0}, True, True, id="first container has ended"),
    ],
)
def test_a_pending_pod_is_scheduled_and_has_its_image(
    more: dict[str, Any], scheduled: bool, image_pulled: bool
) -> None:
    seen = pod_seen(pod(phase="Pending", **more), NODES, ())
    assert (seen.scheduled, seen.image_pulled) == (scheduled, image_pulled)
    assert seen.placed is (scheduled and image_pulled)


@pytest.mark.parametrize(
    ("more", "nodes", "silent"),
    [
        pytest.param({}, NODES, False, id="ready node"),
        pytest.param({}, {"node-1": node(ready="Unknown")}, True, id="node status unknown"),
        pytest.param({}, {"node-1": node(taints=("node.kubernetes.io/unreachable",))}, True, id="unreachable taint"),
        pytest.param(
            {"phase": "Pending"}, {"node-1": node(ready="Unknown")}, True, id="pending pod, node status unknown"
        ),
        pytest.param({}, {}, False, id="deleted node"),
        pytest.param({"deleted": True}, {"node-1": node(ready="Unknown")}, False, id="deleted pod"),
        pytest.param(
            {}, {"node-1": node(ready="Unknown", taints=("karpenter.sh/disrupted",))}, False, id="reclaimed node"
        ),
        pytest.param(
            {}, {"node-1": node(taints=("node.kubernetes.io/out-of-service",))}, False, id="out-of-service taint"
        ),
    ],
)
def test_a_pod_on_a_silent_node_is_lost(more: dict[str, Any], nodes: dict[str, NodeRecord], silent: bool) -> None:
    seen = pod_seen(pod(**more), nodes, ())
    assert seen.silent is silent
    assert not silent or seen.phase is PodPhase.LOST


def test_the_exit_code_and_last_line_of_a_container_are_read() -> None:
    ended = pod(phase="Failed", exit_code=2, exit_message="Usage: ray start\nError: No such option: --bogus-flag\n")
    seen = pod_seen(ended, NODES, ())
    assert (seen.exit_code, seen.exit_message) == (2, "Error: No such option: --bogus-flag")


@pytest.mark.parametrize(("phase", "suspect"), [("Running", True), ("Pending", False), ("Failed", False)])
def test_only_a_running_pod_on_a_silent_node_is_suspect(phase: str, suspect: bool) -> None:
    nodes = {"node-1": replace(node(), suspect=True)}
    seen = pod_seen(pod(phase=phase), nodes, ())
    assert (seen.suspect, seen.silent) == (suspect, False)
    assert not suspect or seen.phase is PodPhase.RUNNING
