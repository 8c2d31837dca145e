"""The facts by which the core distinguishes a lack of capacity, a slow start, a crash and a loss of contact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.model import PodPhase
from spotladder.core.reasons import Cause
from spotladder.workloads.pod_observation import pod_seen, sidecar_failures
from spotladder.workloads.records import NodeRecord
from tests.workloads.builders import node, pod, status

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


def test_a_pod_that_its_node_refused_has_the_words_of_the_kubelet() -> None:
    refused = pod(phase="Failed", reason="UnexpectedAdmissionError", message="Allocate failed: nvidia.com/gpu")
    seen = pod_seen(refused, NODES, [])
    assert seen.exit_message == "UnexpectedAdmissionError: Allocate failed: nvidia.com/gpu"


OUT_OF_MEMORY = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
OTHERS: dict[str, dict[str, Any]] = {
    "runs": {"others": [status("shipper")]},
    "not ready": {"others": [status("shipper", ready=False)]},
    "ended": {"others": [status("shipper", 0)]},
    "failed": {"others": [status("shipper", 1)]},
    "out of memory": {"others": [{**status("shipper", 137), "state": OUT_OF_MEMORY}]},
    "without its image": {"others": [status("shipper", waiting="ImagePullBackOff")]},
    "native, crashes": {"native": [status("istio", waiting="CrashLoopBackOff")]},
    "native, not ready": {"native": [status("istio", ready=False)]},
    "native, failed": {"native": [status("istio", 1)]},
}  # fmt: skip
"""States of a container beside the program."""


@pytest.mark.parametrize("phase", ["Running", "Pending"])  # Pending while the image of a sidecar is missing.
@pytest.mark.parametrize("ready", [True, False], ids=["program ready", "program not ready"])
@pytest.mark.parametrize("more", OTHERS.values(), ids=list(OTHERS))
def test_other_containers_do_not_matter_while_the_program_runs(more: dict[str, Any], ready: bool, phase: str) -> None:
    seen = pod_seen(pod(phase=phase, container=status("ray", ready=ready), **more), NODES, ())
    assert (seen.phase, seen.ready, seen.cause, seen.exit_code) == (PodPhase.RUNNING, ready, Cause.UNKNOWN, None)
    assert seen.container == ("" if ready else "ray")


@pytest.mark.parametrize(
    ("code", "cause"), [(0, Cause.UNKNOWN), (1, Cause.APP_ERROR), (75, Cause.UNKNOWN), (137, Cause.UNKNOWN)]
)
@pytest.mark.parametrize("more", OTHERS.values(), ids=list(OTHERS))
def test_a_pod_whose_program_has_ended_is_lost_whatever_its_other_containers_do(
    more: dict[str, Any], code: int, cause: Cause
) -> None:
    runs = any("running" in entry["state"] for entries in more.values() for entry in entries)
    seen = pod_seen(pod(phase="Running" if runs else "Failed", container=status("ray", code), **more), NODES, ())
    assert (seen.phase, seen.cause, seen.exit_code) == (PodPhase.LOST, cause, code or None)
    assert seen.container == ("ray" if code else "")


def test_failed_sidecars_are_named_while_the_program_runs() -> None:
    pods = [
        pod("w-0", others=[status("shipper", 3)]),
        pod("w-1", native=[status("istio", waiting="CrashLoopBackOff")]),
        pod("w-2", others=[status("helper", 0)]),
        pod("w-3", exit_code=1, others=[status("shipper", 143)]),
        pod("w-4", deleted=True, others=[status("shipper", 143)]),
    ]
    assert sidecar_failures(pods) == [
        "w-0: container shipper ended with exit code 3; the program runs on",
        "w-1: container istio does not run (CrashLoopBackOff); the program runs on",
    ]


@pytest.mark.parametrize(("phase", "suspect"), [("Running", True), ("Pending", False), ("Failed", False)])
def test_only_a_running_pod_on_a_silent_node_is_suspect(phase: str, suspect: bool) -> None:
    nodes = {"node-1": replace(node(), suspect=True)}
    seen = pod_seen(pod(phase=phase), nodes, ())
    assert (seen.suspect, seen.silent) == (suspect, False)
    assert not suspect or seen.phase is PodPhase.RUNNING
