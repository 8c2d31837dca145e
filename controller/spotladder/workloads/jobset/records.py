"""The cached record of a JobSet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from spotladder.api.groups import MAX_PODS
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
    pods). `auxiliary` are the names of those beside the tier, `later` of those whose pods JobSet creates when others
    are ready or complete. `ends_with` are those whose pods must succeed, with the number of pods that must, or with
    `ends_with_any` one of their jobs. `acted_on`: JobSet's controller has written its status."""

    kind: ClassVar[APIResource] = JOBSETS
    state: str = ""
    message: str = ""
    acted_on: bool = False
    places: tuple[tuple[str, int, int], ...] = ()
    auxiliary: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()
    ends_with: tuple[tuple[str, int, int], ...] = ()
    ends_with_any: bool = False

    @classmethod
    def of(cls, jobset: Object) -> Self:
        spec, status = part(jobset, "spec"), part(jobset, "status")
        jobs, success = spec.get("replicatedJobs") or (), part(spec, "successPolicy")
        if sum(max(1, job.get("replicas", 1)) * max(1, _pods(job)) for job in jobs) > MAX_PODS:
            jobs = ()  # Another client, whose counts may be negative, has made it with the labels of an attempt.
        in_order = part(spec, "startupPolicy").get("startupPolicyOrder") == "InOrder"
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
            places=tuple((job["name"], job.get("replicas", 1), _pods(job)) for job in jobs),
            ends_with=tuple(
                (job["name"], job.get("replicas", 1), max(_pods(job), _job_spec(job).get("completions") or 0))
                for job in jobs
                if job["name"] in (success.get("targetReplicatedJobs") or [job["name"]])
            ),
            auxiliary=frozenset(
                job["name"] for job in jobs if role_in(part(_job_spec(job), "template")) is PodRole.AUXILIARY
            ),
            later=frozenset(
                job["name"] for job in (jobs[1:] if in_order else jobs) if in_order or job.get("dependsOn")
            ),
            ends_with_any=success.get("operator") == "Any",
        )


def _pods(job: Object) -> int:
    return int(_job_spec(job).get("parallelism", 1))


def _job_spec(job: Object) -> Object:
    return part(part(job, "template"), "spec")


def jobset_of(objects: AttemptObjects) -> JobSetRecord | None:
    """The attempt's JobSet."""
    return objects.top if isinstance(objects.top, JobSetRecord) else None
