"""Which job an Event belongs to: its object may have no owner or may be deleted already."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.operator.inventory import inventory
from spotladder.operator.inventory.inventory import Inventory, JobKey
from spotladder.workloads import pending_pods
from spotladder.workloads.jobset.records import JOBSETS
from spotladder.workloads.records import EventRecord
from tests.clusters.stepped_clock import SteppedClock
from tests.workloads.builders import metadata, pod_object

NOMINATED = "Pod should schedule on: nodeclaim/spot-x"


def said(
    reason: str, message: str, *, kind: str, name: str, uid: str = "", number: int = 8, namespace: str = ""
) -> dict[str, Any]:
    """An Event. Those about objects without a namespace are in the namespace default."""
    of = "" if kind in ("Node", "NodeClaim") else "team-a"
    return {
        "metadata": {
            "name": f"{name}.{number}", "namespace": namespace or of or "default", "uid": f"e{number}",
            "resourceVersion": "8",
        },
        "involvedObject": {"kind": kind, "name": name, "uid": uid or f"uid-{name}", "namespace": namespace or of},
        "reason": reason, "message": message, "source": {"component": "karpenter"},
        "lastTimestamp": "2026-11-21T12:00:00Z",
    }  # fmt: skip


class PodAndJobSet:
    """A pod and a JobSet of the job digits. `heard` returns the jobs that were requeued since its last call."""

    def __init__(self) -> None:
        self.woken: list[JobKey] = []
        no_client: Any = None
        self.inventory = Inventory(no_client, clock=SteppedClock(), wake=self.woken.append)
        self.inventory._pods.put(pod_object("w-0", node="node-1"))
        self.inventory._objects[JOBSETS].put({"metadata": metadata("digits-a001"), "spec": {}, "status": {}})
        self.heard()

    def hear(self, event: dict[str, Any]) -> list[JobKey]:
        self.inventory._events[0].put(event)
        return self.heard()

    def heard(self) -> list[JobKey]:
        woken = list(self.woken)
        self.woken.clear()
        return woken


@pytest.mark.parametrize(
    ("event", "concerns"),
    [
        (said("FailedScheduling", "no instance type …", kind="Pod", name="w-0"), True),
        (said("FailedScheduling", "no instance type …", kind="Pod", name="w-0", uid="of-an-earlier-one"), False),
        (said("FailedScheduling", "no instance type …", kind="Pod", name="stranger"), False),
        (said("SpotInterrupted", "", kind="Node", name="node-1"), True),
        (said("SpotInterrupted", "", kind="Node", name="node-2"), False),
        (said("FailedCreate", "exceeded quota", kind="Job", name="digits-a001-workers-0"), True),
        (said("FailedCreate", "exceeded quota", kind="Job", name="digits-a0011-workers-0"), False),
        (said("FailedCreate", "exceeded quota", kind="ReplicaSet", name="digits-a001-workers-0"), False),
        (said("InsufficientCapacityError", "", kind="NodeClaim", name="spot-x"), False),
    ],
)
def test_an_event_requeues_the_job_of_its_pod_node_or_child_object(event: dict[str, Any], concerns: bool) -> None:
    assert PodAndJobSet().hear(event) == ([("team-a", "digits")] if concerns else [])


def test_a_refused_nodeclaim_requeues_the_jobs_of_the_pods_nominated_for_it() -> None:
    world = PodAndJobSet()
    world.hear(said("Nominated", NOMINATED, kind="Pod", name="w-0"))
    world.hear(said("Nominated", "Pod should schedule on: nodeclaim/other", kind="Pod", name="stranger", number=9))
    refused = said("InsufficientCapacityError", "", kind="NodeClaim", name="spot-x", number=10)
    assert world.hear(refused) == [("team-a", "digits")]
    assert world.hear(refused) == []  # an unchanged event requeues nothing


def test_refused_nodeclaims_are_found_by_index_without_scanning_all_events(monkeypatch: pytest.MonkeyPatch) -> None:
    processed = list[str]()

    def looking(event: EventRecord) -> list[str]:
        processed.append(event.name)
        return pending_pods.nominated_for(event)

    monkeypatch.setattr(inventory, "nominated_for", looking)
    world, crunch = PodAndJobSet(), 50
    for number in range(crunch):  # pods of other jobs for which Karpenter finds no capacity
        nominated = f"Pod should schedule on: nodeclaim/c{number}"
        world.hear(said("Nominated", nominated, kind="Pod", name=f"stranger-{number}", number=2 * number))
        world.hear(said("InsufficientCapacityError", "", kind="NodeClaim", name=f"c{number}", number=2 * number + 1))
    assert len(processed) <= 2 * crunch
    objects = world.inventory.attempts(("team-a", "digits"))[1]
    assert world.inventory.events_of(objects, {}) == []


def test_an_attempt_gets_the_events_of_its_pods_nodes_and_child_objects_only() -> None:
    world = PodAndJobSet()
    world.inventory._nodes.put({"metadata": {**metadata("node-1"), "namespace": "", "uid": "uid-of-the-machine"}})
    for number, (reason, kind, name, uid) in enumerate(
        [
            ("Nominated", "Pod", "w-0", ""),
            ("Nominated", "Pod", "stranger", ""),
            ("InsufficientCapacityError", "NodeClaim", "other", ""),
            ("SpotInterrupted", "Node", "node-1", "uid-of-the-machine"),
            ("Rebooted", "Node", "node-1", "node-1"),  # the kubelet uses the node's name as uid
            ("SpotInterrupted", "Node", "node-2", ""),
            ("InsufficientCapacityError", "NodeClaim", "spot-x", ""),
            ("FailedCreate", "Job", "digits-a001-workers-0", ""),
        ]
    ):
        message = NOMINATED if reason == "Nominated" else ""
        world.hear(said(reason, message, kind=kind, name=name, uid=uid, number=number))
    objects = world.inventory.attempts(("team-a", "digits"))[1]
    found = world.inventory.events_of(objects, world.inventory.nodes_of(objects))
    emitted = sorted((event.reason, event.about_name) for event in found)
    assert emitted == [
        ("FailedCreate", "digits-a001-workers-0"),
        ("InsufficientCapacityError", "spot-x"),
        ("Nominated", "w-0"),
        ("Rebooted", "node-1"),
        ("SpotInterrupted", "node-1"),
    ]


def test_events_that_users_write_in_other_namespaces_concern_no_attempt() -> None:
    """The role `edit` may write Events, with any source, about any object."""
    world = PodAndJobSet()
    world.inventory._nodes.put({"metadata": {**metadata("node-1"), "namespace": "", "uid": "uid-of-the-machine"}})
    world.hear(said("Nominated", NOMINATED, kind="Pod", name="w-0"))
    for number, (reason, kind, name, uid) in enumerate(
        [
            ("SpotInterrupted", "Node", "node-1", "uid-of-the-machine"),
            ("SpotInterrupted", "Node", "node-1", "node-1"),
            ("SpotInterrupted", "Pod", "w-0", ""),
            ("InsufficientCapacityError", "NodeClaim", "spot-x", ""),
        ]
    ):
        world.hear(said(reason, "", kind=kind, name=name, uid=uid, number=20 + number, namespace="team-b"))
    objects = world.inventory.attempts(("team-a", "digits"))[1]
    found = world.inventory.events_of(objects, world.inventory.nodes_of(objects))
    assert [event.reason for event in found] == ["Nominated"]


def test_a_suspicion_requeues_the_jobs_on_the_node_and_shows_in_their_nodes() -> None:
    world = PodAndJobSet()
    world.inventory._nodes.put({"metadata": {**metadata("node-1"), "namespace": ""}})
    (pod,) = world.inventory.pods
    assert world.inventory.occupied == {"node-1": {pod.uid: ("team-a", "digits")}}
    world.heard()
    world.inventory.suspect(frozenset({"node-1", "node-2"}))
    assert world.heard() == [("team-a", "digits")]
    objects = world.inventory.attempts(("team-a", "digits"))[1]
    assert world.inventory.nodes_of(objects)["node-1"].suspect
    world.inventory.suspect(frozenset({"node-1"}))
    assert world.heard() == []
    world.inventory.suspect(frozenset())
    assert world.heard() == [("team-a", "digits")]
    assert not world.inventory.nodes_of(objects)["node-1"].suspect


def test_an_admission_by_kueue_requeues_the_job_of_its_attempt() -> None:
    world = PodAndJobSet()

    def admission(name: str, kind: str, uid: str) -> dict[str, Any]:
        owner = {"kind": kind, "name": name, "uid": uid, "controller": True}
        return {"metadata": {**metadata(f"of-{name}-{uid}-{kind}"), "ownerReferences": [owner]}, "status": {}}

    for owner in (("digits-a001", "JobSet", "another"), ("digits-a001", "RayJob", "uid-digits-a001")):
        world.inventory._admissions.put(admission(*owner))
        assert world.heard() == [], owner
    world.inventory._admissions.put(admission("digits-a001", "JobSet", "uid-digits-a001"))
    assert world.heard() == [("team-a", "digits")]
    (held,) = world.inventory.attempts(("team-a", "digits")).values()
    assert held.admission is not None
    assert held.admission.owner_uid == "uid-digits-a001"


def test_a_change_of_a_node_requeues_the_jobs_on_it_also_when_it_is_deleted() -> None:
    world = PodAndJobSet()
    for name, jobs in (("node-1", [("team-a", "digits")]), ("node-2", [])):
        thing = {"metadata": {**metadata(name), "namespace": ""}}
        world.inventory._nodes.put(thing)
        assert world.heard() == jobs
        (cache,) = world.inventory._nodes.caches
        cache._remove(thing)
        assert world.heard() == jobs
