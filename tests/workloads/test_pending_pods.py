"""Why a pod does not run yet: a lack of capacity, a misfit, or a cause that is the same on every tier."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.core.model import Blocker
from spotladder.workloads import pending_pods
from spotladder.workloads.pod_observation import pods_seen
from spotladder.workloads.records import EventRecord, PodRecord
from tests.workloads.builders import NODES, event, pod, pod_object

WAITS = pod("w-0", phase="Pending", unschedulable="0/3 nodes are available: 3 node(s) didn't match Pod's node affinity")
NONE = "Failed to schedule pod, no instance type had enough resources or had a required offering, requirements=…"
TOO_LARGE_FOR_IT = "… which met the scheduling requirements and the required offering had the required resources"
TOO_LARGE = "Failed to schedule pod, no instance type has enough resources, requirements=…"
NOMINATED = "Pod should schedule on: nodeclaim/spot-nnjb2"
EARLIER, LATER = "2026-11-21T12:00:01Z", "2026-11-21T12:00:02Z"


def insufficient_capacity(claim: str = "spot-nnjb2") -> EventRecord:
    return event("InsufficientCapacityError", "insufficient capacity", about="c", kind="NodeClaim", name=claim)


@pytest.mark.parametrize(
    ("pods", "events", "expected"),
    [
        ([WAITS], [], False),
        ([WAITS], [event("FailedScheduling", NONE)], True),
        ([WAITS], [event("FailedScheduling", TOO_LARGE)], True),
        ([WAITS], [event("FailedScheduling", TOO_LARGE_FOR_IT)], False),
        ([WAITS], [event("FailedScheduling", "0/3: Insufficient cpu.", source="default-scheduler")], False),
        ([WAITS], [event("FailedScheduling", NONE, about="uid-other")], False),
        ([pod("w-0")], [event("FailedScheduling", NONE)], False),
        ([WAITS], [event("Nominated", NOMINATED)], False),
        ([WAITS], [event("Nominated", NOMINATED), insufficient_capacity()], True),
        ([WAITS], [event("Nominated", NOMINATED), insufficient_capacity("spot-other")], False),
        ([WAITS], [insufficient_capacity()], False),
        ([WAITS], [event("FailedScheduling", NONE, at=EARLIER), event("Nominated", NOMINATED, at=LATER)], False),
        ([WAITS], [event("Nominated", NOMINATED, at=LATER), event("FailedScheduling", NONE, at=EARLIER)], False),
        ([WAITS], [event("Nominated", NOMINATED, version="9"), event("FailedScheduling", NONE, version="10")], True),
        ([WAITS], [event("FailedScheduling", NONE, version="9"), event("Nominated", NOMINATED, version="10")], False),
        ([WAITS], [event("Nominated", NOMINATED, at=EARLIER), event("FailedScheduling", NONE, at=LATER)], True),
        ([WAITS], [event("FailedScaleUp", "Node scale up in zones a failed: GCE out of resources.")], True),
        ([WAITS], [event("NotTriggerScaleUp", "1 in backoff after failed scale-up")], True),
        ([WAITS], [event("NotTriggerScaleUp", "1 max node group size reached")], False),
        ([WAITS], [event("FailedScaleUp", "stockout", at=EARLIER), event("TriggeredScaleUp", "…", at=LATER)], False),
    ],
)  # fmt: skip
def test_a_provisioner_that_makes_no_node_is_detected(
    pods: list[PodRecord], events: list[EventRecord], expected: bool
) -> None:
    assert pending_pods.refused(pods, events) == ({WAITS.uid} if expected else set())


@pytest.mark.parametrize(
    ("pods", "events", "expected"),
    [
        ([WAITS], [], False),
        ([WAITS], [event("Nominated", NOMINATED)], True),
        ([WAITS], [event("TriggeredScaleUp", "pod triggered scale-up: [{spot 1->2 (max: 5)}]")], True),
        ([pod("w-0")], [event("Nominated", NOMINATED)], False),
        ([WAITS], [event("Nominated", NOMINATED, about="uid-other")], False),
        ([WAITS], [event("Nominated", NOMINATED), insufficient_capacity()], False),
        ([WAITS], [event("Nominated", NOMINATED), insufficient_capacity("spot-other")], True),
        ([WAITS], [event("Nominated", NOMINATED, at=EARLIER), event("FailedScheduling", TOO_LARGE, at=LATER)], False),
        ([WAITS], [event("TriggeredScaleUp", "…", at=EARLIER), event("FailedScaleUp", "stockout", at=LATER)], False),
        ([WAITS], [event("TriggeredScaleUp", "…", at=EARLIER), event("NotTriggerScaleUp", "…", at=LATER)], False),
        ([WAITS], [event("FailedScaleUp", "stockout", at=EARLIER), event("TriggeredScaleUp", "…", at=LATER)], True),
    ],
)  # fmt: skip
def test_the_announcement_of_a_node_is_detected(
    pods: list[PodRecord], events: list[EventRecord], expected: bool
) -> None:
    assert pending_pods.provisioning(pods, events) is expected


@pytest.mark.parametrize("reason", sorted(pending_pods.WAITING))
def test_container_waiting_reasons_that_block(reason: str) -> None:
    found = pod("w-0", phase="Pending", waiting=reason, waiting_message="manifest unknown")
    assert pending_pods.blocked([found], (), (), "digits-a001", 1).message == f"w-0: {reason}: manifest unknown"


FORBIDDEN = 'Error creating: pods "digits-a001-workers-0-0-x" is forbidden: exceeded quota: gpu'


@pytest.mark.parametrize(
    ("pods", "events", "wanted", "expected"),
    [
        ([], [event("FailedCreate", FORBIDDEN, about="j", kind="Job", name="digits-a001-workers-0")], 1, True),
        ([], [event("FailedCreate", FORBIDDEN, about="j", kind="Job", name="other-a001-workers-0")], 1, False),
        ([pod()], [event("FailedCreate", FORBIDDEN, about="j", kind="Job", name="digits-a001-workers-0")], 1, False),
        ([], [event("FailedCreate", "Timeout", about="j", kind="Job", name="digits-a001-workers-0")], 1, False),
        ([WAITS], [event("FailedMount", 'MountVolume.SetUp failed: secret "key" not found')], 1, True),
        ([WAITS], [event("FailedMount", 'MountVolume.SetUp failed for volume "nfs" : mount.nfs: timed out')], 1, True),
        ([WAITS], [event("FailedMount", 'MountVolume.SetUp failed for volume "kube-api" : failed to sync')], 1, False),
        ([WAITS], [event("FailedScaleUp", "Node scale up failed: GCE quota exceeded")], 1, False),
        ([pod("w-0", phase="Pending", unschedulable='0/3 nodes: persistentvolumeclaim "data" not found')], [], 1, True),
        ([WAITS], [], 1, False),
    ],
)  # fmt: skip
def test_only_some_causes_block_an_attempt(
    pods: list[PodRecord], events: list[EventRecord], wanted: int, expected: bool
) -> None:
    assert bool(pending_pods.blocked(pods, (), events, "digits-a001", wanted).message) is expected


def test_the_event_selectors_are_the_reasons_that_are_read() -> None:
    selectors = [dict(part.split("=") for part in selector.split(",")) for selector in pending_pods.EVENT_SELECTORS]
    reasons = {selector["reason"] for selector in selectors if "reason" in selector}
    scaling = {"FailedScaleUp", "NotTriggerScaleUp", "TriggeredScaleUp", "ScaleDown"}
    assert reasons == {
        *scaling,
        pending_pods.NOT_CREATED,
        "FailedMount",
        "FailedMapVolume",
        "FailedAttachVolume",
        pending_pods.NO_SANDBOX,
    }
    assert {selector["source"] for selector in selectors if "reason" not in selector} == {
        "karpenter",
        "eks-auto-mode/compute",
    }


def claimant(*, mounted: bool = False, requests: str = "", **more: Any) -> PodRecord:
    """A pending pod that mounts the claim `data`."""
    body = pod_object(phase="Pending", **more)
    body["spec"]["volumes"] = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    body["spec"]["containers"] = [{"name": "ray", "resources": {"limits": {"cpu": requests} if requests else {}}}]
    ready = {"type": "PodReadyToStartContainers", "status": "True" if mounted else "False"}
    body["status"]["conditions"].append(ready)
    return PodRecord.of(body)


MULTI_ATTACH = 'Multi-Attach error for volume "pvc-8" Volume is already exclusively attached to one node'


@pytest.mark.parametrize(
    ("found", "events", "says"),
    [
        (claimant(), [event("FailedAttachVolume", MULTI_ATTACH)], "w-0: claim data: Multi-Attach error"),
        (claimant(), [event("FailedMount", 'MountVolume.MountDevice failed for volume "pvc-8"')], "claim data: Mount"),
        (claimant(), [event("FailedMapVolume", 'MapVolume.SetUpDevice failed for volume "pvc-8"')], "claim data: Map"),
        (claimant(), [event("FailedMount", "Unable to attach or mount volumes: timed out")], "claim data: Unable"),
        (claimant(unschedulable="pod has unbound immediate PersistentVolumeClaims"), [], "claim data: pod has unbound"),
        (claimant(unschedulable='0/3 nodes: persistentvolumeclaim "data" not found'), [], "create the claim"),
        (claimant(mounted=True), [event("FailedAttachVolume", MULTI_ATTACH)], ""),
        (claimant(), [event("FailedAttachVolume", MULTI_ATTACH, about="uid-other")], ""),
        (claimant(), [event("FailedMount", 'MountVolume.SetUp failed for volume "kube-api": failed to sync')], ""),
        (claimant(unschedulable="0/3 nodes: 3 Insufficient cpu."), [], ""),
    ],
)  # fmt: skip
def test_a_volume_that_is_missing_or_in_use_names_its_claim(
    found: PodRecord, events: list[EventRecord], says: str
) -> None:
    blocked = pending_pods.blocked([found], (), events, "digits-a001", 1)
    assert says in blocked.message
    assert (bool(blocked.message), blocked.by is Blocker.VOLUME) == (bool(says), bool(says))
    assert pending_pods.refused([found], events) == frozenset(), "a volume is no lack of capacity"


LABELS = (
    'incompatible with nodepool "spot", daemonset overhead={}, incompatible requirements, label "zone" has no value'
)
TOO_SMALL = (
    "0/4 nodes are available: 4 Insufficient cpu. preemption: 0/4 nodes are available: 4 Preemption is not helpful"
)
FULL = "0/4 nodes are available: 4 Insufficient cpu. preemption: 0/4 nodes are available: 4 No preemption victims found"
ZONE = "0/4 nodes are available: 4 node(s) had volume node affinity conflict."
ZONE_NOW = "0/3 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, 2 node(s) are full."
REQUESTED = "it requests cpu 64; scheduler: 0/4 nodes are available: 4 Insufficient cpu.: request less"
BACKOFF = "1 in backoff after failed scale-up"
GROUPS = "pod didn't trigger scale-up: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector"


@pytest.mark.parametrize(
    ("unschedulable", "events", "says"),
    [
        pytest.param(TOO_SMALL, [], REQUESTED, id="larger than every node"),
        pytest.param(FULL, [], "", id="nodes that are only full"),
        pytest.param("0/4 nodes are available: 4 Insufficient cpu.", [], "", id="a scheduler that does not say which"),
        pytest.param(ZONE, [], "claim data: scheduler", id="a volume in another zone"),
        pytest.param(ZONE_NOW, [], "claim data: scheduler", id="a volume in another zone, since Kubernetes 1.33"),
        pytest.param(ZONE + " 1 Insufficient cpu", [event("TriggeredScaleUp", "…")], "", id="a node comes"),
        pytest.param(TOO_SMALL, [event("Nominated", NOMINATED)], "", id="Karpenter makes a larger node"),
        pytest.param(TOO_SMALL, [event("FailedScaleUp", "GCE out of resources")], "", id="no larger machine"),
        pytest.param("0/4", [event("FailedScheduling", TOO_LARGE)], "it requests cpu 64; Karpenter", id="Karpenter"),
        pytest.param("0/4", [event("FailedScheduling", NONE)], "", id="Karpenter has no capacity"),
        pytest.param("0/4", [event("NotTriggerScaleUp", GROUPS)], "Insufficient cpu", id="Cluster Autoscaler"),
        pytest.param("0/4", [event("NotTriggerScaleUp", f"{GROUPS}, {BACKOFF}")], "", id="a group may be the tier's"),
    ],
)  # fmt: skip
def test_a_pod_that_no_node_of_the_tier_can_hold_is_detected(
    unschedulable: str, events: list[EventRecord], says: str
) -> None:
    found = claimant(unschedulable=unschedulable, requests="64")
    misfits = pending_pods.misfits([found], events)
    assert set(misfits) == ({found.uid} if says else set())
    misfit = misfits.get(found.uid, pending_pods.Misfit("", lasts=False))
    assert says in misfit.message
    (seen,) = pods_seen([found], NODES, events)
    assert (seen.misfit, seen.misfit_lasts) == (misfit.message, misfit.lasts)


@pytest.mark.parametrize(
    ("unschedulable", "events", "lasts"),
    [
        pytest.param(TOO_SMALL, [], False, id="a larger node may come"),
        pytest.param(ZONE, [], False, id="a node in that zone may come"),
        pytest.param("0/4", [event("FailedScheduling", TOO_LARGE)], False, id="larger machines may be sold out"),
        pytest.param("0/4", [event("NotTriggerScaleUp", GROUPS)], True, id="no node group has such machines"),
        pytest.param("0/4", [event("FailedScheduling", LABELS)], True, id="no node pool has such labels"),
    ],
)  # fmt: skip
def test_no_wait_mends_that_no_node_can_be_made(unschedulable: str, events: list[EventRecord], lasts: bool) -> None:
    found = claimant(unschedulable=unschedulable, requests="64")
    assert pending_pods.misfits([found], events)[found.uid].lasts is lasts


SCHEDULER = "0/5 nodes are available: 2 Insufficient cpu. preemption: 0/5 nodes are available: 5 No preemption victims"


@pytest.mark.parametrize(
    ("waits", "events", "expected"),
    [
        pytest.param(pod("w-0"), [event("FailedScheduling", NONE)], "", id="the pod runs"),
        pytest.param(pod("w-0", phase="Pending"), [], "", id="no message"),
        pytest.param(
            pod("w-0", phase="Pending", unschedulable=SCHEDULER), [],
            "0/5 nodes are available: 2 Insufficient cpu.", id="the scheduler's message",
        ),
        pytest.param(
            pod("w-0", phase="Pending", unschedulable="0/1 nodes are available"),
            [event("FailedScheduling", "old", at=EARLIER), event("FailedScheduling", "no instance type", at=LATER)],
            "0/1 nodes are available; karpenter: no instance type", id="the newest message of Karpenter is appended",
        ),
        pytest.param(
            pod("w-0", phase="Pending", unschedulable="0/1 nodes are available"),
            [event("FailedScheduling", "0/1 nodes are available", source="default-scheduler")],
            "0/1 nodes are available", id="the scheduler's message is not repeated",
        ),
        pytest.param(
            pod("w-0", phase="Pending", unschedulable="0/1"),
            [event("NotTriggerScaleUp", "max node group size reached", source="cluster-autoscaler")],
            "0/1; cluster-autoscaler: max node group size reached", id="the Cluster Autoscaler's message is appended",
        ),
        pytest.param(pod("w-0", phase="Pending"), [event(pending_pods.NO_SANDBOX, "no free address", source="kubelet")],
                     "node node-1 cannot start the pod: no free address", id="the node cannot start the pod"),
        pytest.param(claimant(mounted=True), [event(pending_pods.NO_SANDBOX, "no free address", source="kubelet")],
                     "", id="the node has started the pod meanwhile"),
        pytest.param(pod("w-0", phase="Pending", unschedulable="gates", why="SchedulingGated"), [],
                     "gates", id="a gate of another controller"),
        pytest.param(
            pod("w-0", phase="Pending", unschedulable="0/1"), [event("NotTriggerScaleUp", "x", about="uid-other")],
            "0/1", id="an event of another pod is ignored",
        ),
    ],
)  # fmt: skip
def test_a_pod_without_a_node_has_the_message_of_its_scheduler(
    waits: PodRecord, events: list[EventRecord], expected: str
) -> None:
    assert pending_pods.words(waits, events) == expected
    (seen,) = pods_seen([waits], NODES, events)
    assert seen.waiting_message == expected
