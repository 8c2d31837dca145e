"""An operator (KubeRay, JobSet, the scheduler) that does not act on an attempt is reported after `SILENCE`."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from spotladder.timestamps import instant
from spotladder.workloads.jobset.records import JobSetRecord
from spotladder.workloads.jobset.workload import JOBSET
from spotladder.workloads.operators import SILENCE
from spotladder.workloads.rayjob.records import RayJobRecord
from spotladder.workloads.rayjob.workload import RAYJOB
from spotladder.workloads.records import QUEUE, PodRecord
from spotladder.workloads.workload import AttemptObjects, WorkloadKind
from tests.workloads.builders import AT, jobset, metadata, pod, raycluster, rayjob

MADE = instant(AT) or 0.0


def unscheduled(*conditions: dict[str, str]) -> PodRecord:
    status = {"phase": "Pending", "conditions": list(conditions)}
    return PodRecord.of({"metadata": metadata("w-0"), "spec": {}, "status": status})


QUEUED = RayJobRecord.of({"metadata": metadata("digits-a001", labels={QUEUE: "team"}), "spec": {"suspend": True}})
UNTOUCHED_SET = JobSetRecord.of({"metadata": metadata("digits-a001"), "spec": {}})
GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
ROWS = [
    (RAYJOB, AttemptObjects(top=rayjob("", "")), "KubeRay does not act: RayJob digits-a001 has no status"),
    (RAYJOB, AttemptObjects(top=rayjob("Initializing", "")), "RayJob digits-a001 has no RayCluster"),
    (
        RAYJOB,
        AttemptObjects(top=rayjob("Initializing", ""), derived=(raycluster(acted_on=False),)),
        "RayCluster digits-a001-xk2lp has no status",
    ),
    (RAYJOB, AttemptObjects(top=rayjob("Initializing", ""), derived=(raycluster(),)), ""),
    (RAYJOB, AttemptObjects(top=rayjob("Running"), derived=(raycluster(),), pods=(pod(),)), ""),
    (RAYJOB, AttemptObjects(top=rayjob("ValidationFailed", "", "ValidationFailed")), ""),
    (RAYJOB, AttemptObjects(top=rayjob("", "", deletionTimestamp=AT)), ""),
    (RAYJOB, AttemptObjects(top=QUEUED), ""),
    (JOBSET, AttemptObjects(top=UNTOUCHED_SET), "JobSet's controller does not act: JobSet digits-a001 has no"),
    (JOBSET, AttemptObjects(top=jobset()), ""),
    (
        JOBSET,
        AttemptObjects(top=jobset(), pods=(unscheduled(),)),
        "the scheduler does not act: pod w-0 has no PodScheduled condition",
    ),
    (JOBSET, AttemptObjects(top=jobset(), pods=(unscheduled(GATED),)), ""),
    (JOBSET, AttemptObjects(top=jobset(), pods=(unscheduled(UNSCHEDULABLE),)), ""),
    (JOBSET, AttemptObjects(top=jobset(), pods=(pod(phase="Pending"),)), ""),
]


@pytest.mark.parametrize(
    ("workload", "objects", "says"),
    ROWS,
    ids=[
        "no status", "no cluster", "cluster untouched", "acts", "runs", "invalid", "being deleted", "held by Kueue",
        "no JobSet status",
        "JobSet acts", "no scheduler", "gated", "unschedulable", "placed",
    ],
)  # fmt: skip
def test_the_operator_that_does_not_act_is_named(workload: WorkloadKind, objects: AttemptObjects, says: str) -> None:
    assert workload.silent(objects, MADE + SILENCE - 1) == "", "reported before SILENCE has passed"
    message = workload.silent(objects, MADE + SILENCE)
    assert (says in message) if says else message == ""
    assert workload.silent(objects, MADE + 10 * SILENCE) == message, "the message changes with time"


@pytest.mark.parametrize("status", ["", "Initializing"])
def test_kuberays_silence_counts_from_kueues_admission(status: str) -> None:
    admitted_at = MADE + 3600
    managed = [
        {"manager": "spotladder", "operation": "Apply", "time": AT},
        {"manager": "kueue", "operation": "Update", "time": f"{datetime.fromtimestamp(admitted_at, UTC):%FT%TZ}"},
        {"manager": "without a time"},
    ]
    objects = AttemptObjects(top=rayjob(status, "", managedFields=managed))
    assert RAYJOB.silent(objects, admitted_at + SILENCE - 1) == ""
    assert "KubeRay does not act" in RAYJOB.silent(objects, admitted_at + SILENCE)
