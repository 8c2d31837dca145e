"""The cached record of a JobSet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from spotladder.core.model import PodRole
from spotladder.resources import APIResource
from spotladder.workloads.records import (
    Object,
    WorkloadRecord,
    conditions_of,
    launched_fields,
    made_fields,
    message_of,
    part,
    role_in,
    whole_number,
)
from spotladder.workloads.workload import AttemptObjects

JOBSETS = APIResource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSetRecord(WorkloadRecord):
    """A JobSet. `places` are its replicated jobs, each with its number of jobs and of pods per job: (name, jobs,
    pods). `auxiliary` are the names of those beside the tier. `acted_on`: JobSet's controller has written its
    status."""

    kind: ClassVar[APIResource] = JOBSETS
    state: str = ""
    message: str = ""
    acted_on: bool = False
    places: tuple[tuple[str, int, int], ...] = ()
    auxiliary: frozenset[str] = frozenset()

    @classmethod
    def of(cls, jobset: Object) -> Self:
        spec, status = part(jobset, "spec"), part(jobset, "status")
        conditions = conditions_of(status)
        ended = next(
            (kind for kind in ("Completed", "Failed") if conditions.get(kind, {}).get("status") == "True"),
            "",
        )
        return cls(
            **made_fields(jobset),
            **launched_fields(jobset),
            state=ended,
            message=message_of(conditions[ended]) if ended else "",
            restarts=whole_number(status.get("restarts")),
            suspended=bool(spec.get("suspend")),
            acted_on=bool(status),
            places=tuple(
                (job["name"], job.get("replicas", 1), part(part(job, "template"), "spec").get("parallelism", 1))
                for job in spec.get("replicatedJobs") or ()
            ),
            auxiliary=frozenset(
                job["name"]
                for job in spec.get("replicatedJobs") or ()
                if role_in(part(part(part(job, "template"), "spec"), "template")) is PodRole.AUXILIARY
            ),
        )


def jobset_of(objects: AttemptObjects) -> JobSetRecord | None:
    """The attempt's JobSet."""
    return objects.top if isinstance(objects.top, JobSetRecord) else None
