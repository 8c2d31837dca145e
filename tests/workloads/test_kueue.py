"""Observation of Kueue's Workload, with conditions as Kueue 0.19.2 writes them."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.core.model import QueueEviction, QueueSeen
from spotladder.workloads.jobset.workload import JOBSET
from spotladder.workloads.kueue import AdmissionRecord
from spotladder.workloads.rayjob.records import RayJobRecord
from spotladder.workloads.rayjob.workload import RAYJOB
from spotladder.workloads.records import QUEUE
from spotladder.workloads.workload import AttemptObjects
from tests.workloads.builders import NODES, jobset, metadata

NO_ROOM = "couldn't assign flavors to pod set workers: insufficient unused quota for cpu in flavor spot, 1 more needed"


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def workload(*conditions: dict[str, Any], evictions: tuple[str, ...] = (), checks: Any = ()) -> AdmissionRecord:
    status: dict[str, Any] = {"conditions": list(conditions), "admissionChecks": list(checks)}
    if evictions:
        status["schedulingStats"] = {"evictions": [{"reason": reason, "count": 1} for reason in evictions]}
    owner = {"kind": "RayJob", "name": "digits-a001", "uid": "uid-digits-a001", "controller": True}
    return AdmissionRecord.of(
        {
            "metadata": {"name": "rayjob-digits-a001-1f2e3", "namespace": "team-a", "ownerReferences": [owner]},
            "spec": {"queueName": "team"},
            "status": status,
        }
    )


PENDING = condition("QuotaReserved", "False", "Pending", NO_ROOM)
READY = condition("PodsReady", "False", "WaitForStart")
QUOTA, ADMITTED = condition("QuotaReserved", "True", "QuotaReserved"), condition("Admitted", "True", "Admitted")
PREEMPTED = condition("Evicted", "True", "Preempted", "Preempted to accommodate a workload (UID: 7)")
NO_QUEUE = condition("QuotaReserved", "False", "Inadmissible", "LocalQueue nope doesn't exist")
STOPPED = condition("Evicted", "True", "ClusterQueueStopped", "The ClusterQueue is stopped")
PAUSED = condition("Evicted", "True", "Deactivated", "The workload is deactivated")
LATE = condition("Evicted", "True", "PodsReadyTimeout", "Exceeded the PodsReady timeout")
BEFORE = condition("Evicted", "False", "QuotaReserved", "Previously: Preempted to accommodate a workload")


def rayjob(*, suspend: bool, deployment: str = "Suspended", queue: str = "team") -> RayJobRecord:
    labels = {QUEUE: queue} if queue else {}
    return RayJobRecord.of(
        {
            "metadata": metadata("digits-a001", labels=labels),
            "spec": {"suspend": suspend},
            "status": {"jobDeploymentStatus": deployment},
        }
    )


@pytest.mark.parametrize("queue", ["team", ""], ids=["with the label", "managed without a queue name"])
@pytest.mark.parametrize(
    ("conditions", "suspend", "expected"),
    [
        ((PENDING, READY), True, QueueSeen("team", True, f"Kueue holds the attempt in queue team: {NO_ROOM}")),
        (
            (NO_QUEUE,), True,
            QueueSeen("team", True, "Kueue holds the attempt in queue team: LocalQueue nope doesn't exist", True),
        ),
        ((QUOTA, ADMITTED), False, QueueSeen("team")),
        (
            (PREEMPTED, ADMITTED, QUOTA), True,
            QueueSeen(
                "team", True, f"Kueue evicted the attempt from queue team (Preempted): {PREEMPTED['message']}",
                eviction=QueueEviction.PREEMPTED,
            ),
        ),
        (
            (PREEMPTED, PENDING), True,
            QueueSeen(
                "team", True, f"Kueue evicted the attempt from queue team (Preempted): {PREEMPTED['message']}",
                eviction=QueueEviction.PREEMPTED,
            ),
        ),
    ],
    ids=["held", "inadmissible", "admitted", "preempted", "preempted and pending"],
)  # fmt: skip
def test_the_queue_state_is_read_from_the_workload_of_kueue(
    conditions: tuple[dict[str, Any], ...], suspend: bool, expected: QueueSeen, queue: str
) -> None:
    status = "Suspended" if suspend else "Running"
    record = rayjob(suspend=suspend, deployment=status, queue=queue)
    found = RAYJOB.read(1, AttemptObjects(top=record, admission=workload(*conditions)), NODES)
    if suspend:
        assert found.exit is None
    assert (found.queue, found.blocked) == (expected, "")
    labels = {QUEUE: queue} if queue else {}
    like = jobset(suspended=suspend, labels=labels)
    assert JOBSET.read(1, AttemptObjects(top=like, admission=workload(*conditions)), NODES).queue == expected


@pytest.mark.parametrize(
    ("conditions", "evictions", "expected"),
    [
        ((STOPPED,), (), QueueEviction.STOPPED),
        ((condition("Evicted", "True", "AdmissionCheck", "a check is false"),), (), QueueEviction.CHECK_FAILED),
        ((PAUSED,), (), QueueEviction.DEACTIVATED),
        ((LATE,), (), QueueEviction.PODS_READY_TIMEOUT),
        ((BEFORE, QUOTA, ADMITTED), ("Preempted",), QueueEviction.PREEMPTED),
        ((BEFORE, QUOTA, ADMITTED), ("PodsReadyTimeout", "Preempted"), QueueEviction.PREEMPTED),
        ((QUOTA, ADMITTED), (), None),
    ],
    ids=["stopped", "check", "deactivated", "pods not ready", "admitted again", "evicted twice", "never evicted"],
)  # fmt: skip
def test_the_cause_of_an_eviction_is_read_from_the_conditions(
    conditions: tuple[dict[str, Any], ...], evictions: tuple[str, ...], expected: QueueEviction | None
) -> None:
    record = rayjob(suspend=False, deployment="Running")
    admission = workload(*conditions, evictions=evictions)
    found = RAYJOB.read(1, AttemptObjects(top=record, admission=admission), NODES).queue
    assert found is not None
    assert found.eviction is expected


RETRY = "Retrying after failure: Nodepool in backoff after failed scale-up, affected nodepools: spot"


@pytest.mark.parametrize(
    ("state", "message", "suspend", "refused"),
    [
        ("Retry", RETRY, True, True),
        ("Rejected", "Capacity is not found, CA will try to find it later.", True, True),
        ("Pending", "Waiting for resources. Currently there are not enough resources available", True, False),
        ("Pending", "", True, False),
        ("Ready", RETRY, True, False),
        ("Retry", RETRY, False, False),
    ],
)
def test_a_provisioning_check_says_whether_its_provisioner_has_capacity(
    state: str, message: str, suspend: bool, refused: bool
) -> None:
    admission = workload(QUOTA, checks=[{"name": "dws", "state": state, "message": message}])
    found = RAYJOB.read(1, AttemptObjects(top=rayjob(suspend=suspend), admission=admission), NODES).queue
    assert found is not None
    assert (found.held, found.refused) == (suspend, refused)
    assert (f"admission check dws: {message}" in found.message) is (bool(message) and suspend and state != "Ready")


def test_a_deactivated_workload_is_held_before_its_job_is_suspended() -> None:
    """Regression: the attempt was replaced when its Workload was read before its RayJob."""
    for suspended in (False, True):
        record = rayjob(suspend=suspended, deployment="Suspending" if suspended else "Running")
        found = RAYJOB.read(1, AttemptObjects(top=record, admission=workload(PAUSED, QUOTA, ADMITTED)), NODES).queue
        assert found is not None
        assert (found.held, found.eviction) == (True, QueueEviction.DEACTIVATED)
    again = workload(BEFORE, QUOTA, ADMITTED, evictions=("Deactivated",))
    found = RAYJOB.read(
        1, AttemptObjects(top=rayjob(suspend=False, deployment="Running"), admission=again), NODES
    ).queue
    assert found is not None
    assert (found.held, found.eviction) == (False, QueueEviction.DEACTIVATED), "it is admitted again"


def test_an_object_that_another_client_suspended_counts_as_evicted() -> None:
    for read in (RAYJOB.read(1, AttemptObjects(top=rayjob(suspend=True, queue="")), NODES),
                 JOBSET.read(1, AttemptObjects(top=jobset(suspended=True)), NODES)):  # fmt: skip
        assert read.exit is None
        assert read.queue is not None
        assert read.queue.eviction is QueueEviction.SUSPENDED
        assert "suspended by another client; use spec.suspend of the TieredJob" in read.queue.message
