"""Rendering and observation of attempts that are Jobs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from spotladder.api.fields import LONGEST_RAYJOB_NAME
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import AttemptSeen, Exit, Instant, PodRole
from spotladder.resources import APIResource
from spotladder.workloads import names
from spotladder.workloads.names import Origin
from spotladder.workloads.pod_observation import pods_seen
from spotladder.workloads.pods import PodOverlay, copied, with_overlay
from spotladder.workloads.program_container import program_of
from spotladder.workloads.records import (
    EventRecord,
    Made,
    NodeRecord,
    Object,
    WorkloadRecord,
    conditions_of,
    launched_fields,
    made_fields,
    part,
)
from spotladder.workloads.template import made_of, template_of
from spotladder.workloads.tiers import PlacedTier
from spotladder.workloads.workload import AttemptObjects, WorkloadKind

JOBS = APIResource("batch", "v1", "jobs", "Job")
_FIELD = "batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJobRecord(WorkloadRecord):
    kind: ClassVar[APIResource] = JOBS
    complete: bool = False

    @classmethod
    def of(cls, job: Object) -> Self:
        complete = conditions_of(part(job, "status")).get("Complete", {}).get("status") == "True"
        return cls(**made_fields(job), **launched_fields(job), complete=complete)


class BatchJobKind:
    """Implements `WorkloadKind`."""

    main: APIResource = JOBS
    made: tuple[APIResource, ...] = (JOBS,)
    records: Mapping[APIResource, Callable[[Object], Made]] = {JOBS: BatchJobRecord.of}
    install = "{cluster} has no Jobs"

    def workers(self, job: TieredJob) -> int:
        return int(template_of(job, _FIELD).spec["parallelism"])

    def longest_name(self, spec: Mapping[str, Any]) -> int:
        return LONGEST_RAYJOB_NAME

    def render(
        self, job: TieredJob, origin: Origin, tier: PlacedTier, attempt: int, env: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        template = template_of(job, _FIELD)
        overlay = PodOverlay.of(job, origin, tier, attempt, env)
        spec: dict[str, Any] = copied(template.spec)
        at = ("spec", "workload", _FIELD, "template", "spec", "template")
        given = spec["template"]
        program = program_of(given, at)
        spec["template"] = with_overlay(given, overlay, PodRole.WORKER, tier.workers, at, program=program)
        name = names.attempt_name(job.metadata.name, attempt)
        return [made_of(template, JOBS, name=name, job=job, overlay=overlay, spec=spec)]

    def ray_version(self, rendered: Sequence[Mapping[str, Any]]) -> None:
        return None

    def begun(self, objects: AttemptObjects) -> bool:
        return True

    def refusal(self, objects: AttemptObjects) -> str:
        return ""

    def silent(self, objects: AttemptObjects, now: Instant) -> str:
        return ""

    def driver_output(self, objects: AttemptObjects) -> None:
        return None

    def replacing(self, objects: AttemptObjects, pods: Collection[str], *, remove: bool) -> None:
        return None

    def resizing(self, objects: AttemptObjects, workers: int) -> None:
        return None

    def read(
        self,
        attempt: int,
        objects: AttemptObjects,
        nodes: Mapping[str, NodeRecord],
        events: Sequence[EventRecord] = (),
    ) -> AttemptSeen:
        pods, top = tuple(pods_seen(objects.pods, nodes, events)), objects.top
        if not isinstance(top, BatchJobRecord) or top.deleting:
            return AttemptSeen(attempt, pods, Exit.LOST, "its Job is gone")
        return AttemptSeen(attempt, pods, Exit.SUCCEEDED if top.complete else None)


BATCH_JOB: WorkloadKind = BatchJobKind()
