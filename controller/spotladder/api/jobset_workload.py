"""The workload `jobSet`: a template of a JobSet. Only the fields that spotladder needs or sets are validated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, field_validator

from spotladder.api.accelerators import asks_for_accelerators
from spotladder.api.fields import Finding, several
from spotladder.api.problems import Path
from spotladder.api.record import Record
from spotladder.api.template import TemplateMetadata, bound_to_a_node, inner


class JobSetTemplate(Record):
    """The JobSet of each attempt."""

    metadata: TemplateMetadata = Field(
        default_factory=TemplateMetadata,
        description="Labels and annotations of the JobSets. spotladder sets their names.",
    )
    spec: dict[str, Any] = Field(
        description="Spec of a JobSet (jobset.x-k8s.io/v1alpha2), with at least replicatedJobs.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )

    @field_validator("spec")
    @classmethod
    def _check_spec(cls, spec: dict[str, Any]) -> dict[str, Any]:
        if found := _problems(spec):
            raise several(found)
        return spec


class JobSetWorkload(Record):
    """A program without Ray, run as one JobSet per attempt."""

    template: JobSetTemplate = Field(description="The JobSet of each attempt.")


def job_groups(spec: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """The replicated jobs of a JobSet spec: the name of each, and whether its pods ask for accelerators."""
    return [
        (str(inner(job, "name")), asks_for_accelerators(inner(job, *_POD, "spec"))) for job in spec["replicatedJobs"]
    ]


_POD = ("template", "spec", "template")

_OWNED = {
    "failurePolicy": "is set by spotladder: maxFailures and spec.backoffLimit limit restarts; remove it",
    "suspend": "is set by spotladder: use spec.suspend",
    "managedBy": "is set by spotladder: remove it",
    "ttlSecondsAfterFinished": "is set by spotladder, which removes ended attempts; remove it",
}
_OWNED_OF_A_JOB = {
    "backoffLimit": "is set by spotladder, which restarts the whole set instead; remove it",
    "backoffLimitPerIndex": "is set by spotladder, which restarts the whole set instead; remove it",
    "podFailurePolicy": "is set by spotladder, which reads the exit codes of the program; remove it",
    "suspend": "is set by spotladder: use spec.suspend",
    "ttlSecondsAfterFinished": "is set by spotladder, which removes ended attempts; remove it",
}
"""Fields that spotladder sets and a template must therefore not set."""


def _problems(spec: dict[str, Any]) -> list[Finding]:
    """All problems of a JobSet spec that are known without a tier."""
    found = _owned(spec, _OWNED, ())
    jobs = spec.get("replicatedJobs")
    if not isinstance(jobs, list) or not jobs:
        return [*found, Finding(("replicatedJobs",), "is required: a list of at least one replicated job")]
    for index, job in enumerate(jobs):
        at: Path = ("replicatedJobs", index)
        given = inner(job, "template", "spec")
        if not inner(job, "name") or not inner(given, "template"):
            message = "needs name and template.spec.template, the pod template of the program"
            found.append(Finding(at, message))
            continue
        found += _owned(given, _OWNED_OF_A_JOB, (*at, "template", "spec"))
        counts = (
            (job.get("replicas"), ("replicas",)),
            (given.get("parallelism"), ("template", "spec", "parallelism")),
        )
        for count, path in counts:
            if isinstance(count, int) and count < 1:
                found.append(Finding((*at, *path), "must be at least 1"))
        found += bound_to_a_node(given["template"], (*at, *_POD))
    return found


def _owned(given: Mapping[str, Any], owned: Mapping[str, str], at: Path) -> list[Finding]:
    return [
        Finding((*at, name), why, at_key=True) for name, why in owned.items() if given.get(name) not in (None, False)
    ]
