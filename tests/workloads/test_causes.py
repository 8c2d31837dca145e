"""Every row of the tables of causes, tested with objects as an API server sends them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from spotladder.core.model import PodPhase
from spotladder.core.reasons import Cause
from spotladder.workloads import causes
from spotladder.workloads.pod_observation import pod_seen
from spotladder.workloads.records import SPOT_LABELS, NodeRecord
from tests.workloads.builders import NODES, event, node, pod

LOST = {"phase": "Failed"}


def cause(nodes: dict[str, NodeRecord] | None = None, events: tuple[str, ...] = (), **more: Any) -> Cause:
    said = [event(reason) for reason in events]
    return pod_seen(pod(**{**LOST, **more}), NODES if nodes is None else nodes, said).cause


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("PreemptionByScheduler", Cause.PREEMPTED),
        ("DeletionByTaintManager", Cause.NODE_LOST),
        ("DeletionByPodGC", Cause.NODE_LOST),
        ("EvictionByEvictionAPI", Cause.CONSOLIDATED),
        ("TerminationByKubelet", Cause.INTERRUPTION),
        ("SomethingNew", Cause.UNKNOWN),
    ],
)
def test_the_reason_of_disruption_target_gives_the_cause(reason: str, expected: Cause) -> None:
    assert cause(disruption=reason) is expected


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        ("Preempting", "Preempted in order to admit critical pod", Cause.PREEMPTED),
        ("Terminated", "Pod was terminated in response to imminent node shutdown.", Cause.INTERRUPTION),
        ("Shutdown", "Node is in progress of shutting down", Cause.INTERRUPTION),
        ("NodeShutdown", "Node is shutting down", Cause.INTERRUPTION),
        ("NodeLost", "Node node-1 which was running pod w-0 is unresponsive", Cause.NODE_LOST),
        ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline", Cause.APP_ERROR),
        ("Evicted", "The node was low on resource: memory. Threshold quantity: 100Mi", Cause.OOM_KILLED),
        ("Evicted", "The node was low on resource: ephemeral-storage.", Cause.UNKNOWN),
        ("Evicted", "… Container ray was using 62Gi, request is 0, has larger consumption of e…", Cause.APP_ERROR),
        ("Evicted", "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.", Cause.APP_ERROR),
        ("UnexpectedAdmissionError", "", Cause.UNKNOWN),
    ],
)
def test_the_reason_of_the_pod_gives_the_cause(reason: str, message: str, expected: Cause) -> None:
    assert cause(reason=reason, message=message) is expected


@pytest.mark.parametrize(
    ("taint", "expected", "announced"),
    [
        ("karpenter.sh/disrupted", Cause.INTERRUPTION, True),
        ("karpenter.sh/disruption", Cause.INTERRUPTION, True),
        ("aws-node-termination-handler/spot-itn", Cause.INTERRUPTION, True),
        ("aws-node-termination-handler/asg-lifecycle-termination", Cause.INTERRUPTION, True),
        ("aws-node-termination-handler/scheduled-maintenance", Cause.INTERRUPTION, True),
        ("aws-node-termination-handler/rebalance-recommendation", Cause.INTERRUPTION, True),
        ("cloud.google.com/impending-node-termination", Cause.INTERRUPTION, True),
        ("remediator.kubernetes.azure.com/unschedulable", Cause.INTERRUPTION, True),
        ("remediator.aks.microsoft.com/unschedulable", Cause.INTERRUPTION, True),
        ("node.cloudprovider.kubernetes.io/shutdown", Cause.INTERRUPTION, False),
        ("ToBeDeletedByClusterAutoscaler", Cause.CONSOLIDATED, True),
        ("node.kubernetes.io/unreachable", Cause.NODE_LOST, False),
        ("node.kubernetes.io/out-of-service", Cause.NODE_LOST, False),
        ("nvidia.com/gpu", Cause.UNKNOWN, False),
        ("node.kubernetes.io/not-ready", Cause.UNKNOWN, False),
    ],
)
def test_a_taint_of_the_node_gives_the_cause(taint: str, expected: Cause, announced: bool) -> None:
    nodes = {"node-1": node(taints=(taint,))}
    assert cause(nodes) is expected
    assert pod_seen(pod(), nodes, ()).noticed is announced


@pytest.mark.parametrize("event", ["Preempt", "Terminate", "Redeploy"])
def test_scheduled_events_of_azure_are_notices(event: str) -> None:
    said = f"{event} Scheduled: Sat, 21 Nov 2026 12:00:38 GMT. EventId: 2B1A, affected: aks-spot-1"
    for condition in ("PreemptionScheduled", "VMEventScheduled"):
        nodes = {"node-1": node(condition=(condition, said))}
        assert cause(nodes) is Cause.INTERRUPTION
        seen = pod_seen(pod(), nodes, ())
        assert seen.noticed
        assert seen.notice_ends_at == datetime(2026, 11, 21, 12, 0, 38, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "message",
    [
        "Freeze Scheduled: Sat, 21 Nov 2026 12:00:38 GMT.",
        "Reboot Scheduled",
        "SpotRebalanceRecommendation Advisory:",
        "",
    ],
)
def test_azure_events_that_keep_the_node_are_no_notice(message: str) -> None:
    for condition in ("PreemptionScheduled", "VMEventScheduled"):
        assert not pod_seen(pod(), {"node-1": node(condition=(condition, message))}, ()).noticed


def test_the_start_of_a_notice_is_known_from_deletions_and_events() -> None:
    assert pod_seen(pod(), {"node-1": node(taints=("karpenter.sh/disrupted",))}, ()).noticed_at is None
    at = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC).timestamp()
    assert pod_seen(pod(), {"node-1": node(deleted=True)}, ()).noticed_at == at
    assert pod_seen(pod(), NODES, [event("SpotInterrupted")]).noticed_at == at


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (node(ready="Unknown"), Cause.NODE_LOST),
        (node(ready="False", message="node is shutting down"), Cause.INTERRUPTION),
        (node(ready="False", reason="node is shutting down"), Cause.INTERRUPTION),
        (node(deleted=True), Cause.INTERRUPTION),
        *((node(cordoned=True, labels={key: value}), Cause.INTERRUPTION) for key, value in SPOT_LABELS),
        (node(cordoned=True, labels={"eks.amazonaws.com/capacityType": "ON_DEMAND"}), Cause.MAINTENANCE),
        (node(ready="False", message="PLEG is not healthy"), Cause.UNKNOWN),
        (None, Cause.NODE_LOST),
    ],
    ids=[
        "silent",
        "shutting-down",
        "shutting-down-in-reason",
        "being-deleted",
        *(f"cordoned-{key}" for key, _ in SPOT_LABELS),
        "cordoned",
        "not-ready",
        "gone",
    ],
)
def test_the_state_of_the_node_gives_the_cause(what: NodeRecord | None, expected: Cause) -> None:
    assert cause({"node-1": what} if what else {}) is expected


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("SpotInterrupted", Cause.INTERRUPTION),
        ("TerminatingOnInterruption", Cause.INTERRUPTION),
        ("InstanceStopping", Cause.INTERRUPTION),
        ("InstanceTerminating", Cause.INTERRUPTION),
        ("InstanceUnhealthy", Cause.NODE_LOST),
        ("DisruptionTerminating", Cause.CONSOLIDATED),
        ("ScaleDown", Cause.CONSOLIDATED),
        ("SpotRebalanceRecommendation", Cause.UNKNOWN),
        ("Pulled", Cause.UNKNOWN),
    ],
)
def test_an_event_gives_the_cause(reason: str, expected: Cause) -> None:
    assert cause(events=(reason,)) is expected


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (0, "Completed", Cause.UNKNOWN),
        (1, "Error", Cause.APP_ERROR),
        (2, "Error", Cause.APP_ERROR),
        (75, "Error", Cause.UNKNOWN),
        (76, "Error", Cause.UNKNOWN),
        (77, "Error", Cause.UNKNOWN),
        (78, "Error", Cause.UNKNOWN),
        (137, "Error", Cause.UNKNOWN),
        (137, "OOMKilled", Cause.OOM_KILLED),
        (137, "ContainerStatusUnknown", Cause.NODE_LOST),
        (139, "Error", Cause.APP_ERROR),
        (143, "Error", Cause.UNKNOWN),
        (128, "StartError", Cause.APP_ERROR),
        (128, "ContainerCannotRun", Cause.APP_ERROR),
    ],
)
def test_the_end_of_the_container_gives_the_cause(code: int, reason: str, expected: Cause) -> None:
    assert cause(exit_code=code, exit_reason=reason) is expected


@pytest.mark.parametrize(
    ("nodes", "events", "more", "expected"),
    [
        ({"node-1": node(taints=("karpenter.sh/disrupted",))}, (), {"exit_code": 1}, Cause.INTERRUPTION),
        (
            {"node-1": node(taints=("karpenter.sh/disrupted", "node.kubernetes.io/unreachable"), ready="Unknown")},
            (), {}, Cause.INTERRUPTION,
        ),
        ({"node-1": node(taints=("karpenter.sh/disrupted",))}, ("DisruptionTerminating",), {}, Cause.INTERRUPTION),
        (None, ("DisruptionTerminating",), {"disruption": "EvictionByEvictionAPI"}, Cause.CONSOLIDATED),
        (NODES, (), {"disruption": "PreemptionByScheduler", "exit_code": 1}, Cause.PREEMPTED),
        ({}, (), {"exit_code": 137, "exit_reason": "OOMKilled"}, Cause.OOM_KILLED),
        ({}, (), {"disruption": "TerminationByKubelet"}, Cause.INTERRUPTION),
        (None, (), {"disruption": "EvictionByEvictionAPI", "exit_code": 1}, Cause.CONSOLIDATED),
    ],
    ids=[
        "a notice wins over an exit code", "a notice wins over an unreachable node",
        "a notice wins over consolidation", "consolidation wins over an eviction",
        "a preemption wins over an exit code", "an OOM kill wins over a missing node",
        "a shutdown wins over a missing node", "an eviction wins over an exit code",
    ],
)  # fmt: skip
def test_the_first_matching_sign_decides(
    nodes: dict[str, NodeRecord] | None, events: tuple[str, ...], more: dict[str, object], expected: Cause
) -> None:
    assert cause(nodes, events, **more) is expected


def test_every_row_has_a_test() -> None:
    """A new row of the tables needs a test above."""
    tested: set[object] = set()
    tests: tuple[Any, ...] = (
        test_the_reason_of_disruption_target_gives_the_cause,
        test_the_reason_of_the_pod_gives_the_cause,
        test_a_taint_of_the_node_gives_the_cause,
        test_an_event_gives_the_cause,
        test_scheduled_events_of_azure_are_notices,
        test_the_end_of_the_container_gives_the_cause,
    )
    for test in tests:
        (mark,) = (mark for mark in test.pytestmark if mark.name == "parametrize")
        for row in mark.args[1]:
            tested.update(row if isinstance(row, tuple) else (row,))
    rows = {
        *causes.DISRUPTIONS, *causes.POD_REASONS, *causes.TAINTS, *causes.EVENTS, *causes.EXIT_REASONS,
        *causes.EXIT_CODES, *causes.SCHEDULED,
    }  # fmt: skip
    assert rows - tested == set()


@pytest.mark.parametrize(
    ("more", "nodes", "phase", "noticed"),
    [
        ({}, NODES, PodPhase.RUNNING, False),
        ({"phase": "Pending"}, NODES, PodPhase.PENDING, False),
        ({"phase": "Pending", "unschedulable": "0/3 nodes are available"}, NODES, PodPhase.PENDING, False),
        ({"phase": "Pending", "deleted": True}, NODES, PodPhase.PENDING, False),
        ({"phase": "Failed"}, NODES, PodPhase.LOST, False),
        ({"phase": "Succeeded"}, NODES, PodPhase.LOST, False),
        ({"phase": "Unknown"}, NODES, PodPhase.LOST, False),
        ({"deleted": True}, NODES, PodPhase.LOST, False),
        ({"deleted": True, "disruption": "EvictionByEvictionAPI"}, NODES, PodPhase.RUNNING, True),
        ({"deleted": True, "disruption": "EvictionByEvictionAPI", "exit_code": 143}, NODES, PodPhase.LOST, False),
        ({"deleted": True}, {"node-1": node(taints=("karpenter.sh/disrupted",))}, PodPhase.RUNNING, True),
        ({"deleted": True}, {"node-1": node(ready="Unknown")}, PodPhase.LOST, False),
        ({}, {"node-1": node(cordoned=True)}, PodPhase.RUNNING, True),
        ({}, {"node-1": node(ready="Unknown")}, PodPhase.LOST, False),
        ({}, {"node-1": node(taints=("node.kubernetes.io/unreachable",))}, PodPhase.LOST, False),
        ({}, {}, PodPhase.LOST, False),
        ({"phase": "Pending"}, {}, PodPhase.LOST, False),
        ({"phase": "Pending"}, {"node-1": node(ready="Unknown")}, PodPhase.LOST, False),
        ({"ready": False}, {"node-1": node(ready="False")}, PodPhase.RUNNING, False),
    ],
    ids=[
        "running", "starting", "waits for a node", "deleted before it ran", "failed", "ended", "phase Unknown",
        "deleted by a user", "being evicted", "evicted", "its node is reclaimed", "terminating on a silent node",
        "on a cordoned node", "on a silent node", "on an unreachable node", "its node is gone",
        "starting on a node that is gone", "starting on a silent node",
        "on a node that is not ready",
    ],
)  # fmt: skip
def test_the_phase_and_the_notice_are_read_from_the_pod(
    more: dict[str, Any], nodes: dict[str, NodeRecord], phase: PodPhase, noticed: bool
) -> None:
    seen = pod_seen(pod(**more), nodes, ())
    assert (seen.phase, seen.noticed) == (phase, noticed)
