"""The workload `jobSet`: a template of a JobSet. Only the fields that spotladder needs or sets are validated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from pydantic import Field, field_validator

from spotladder.api.accelerators import asks_for_accelerators
from spotladder.api.fields import Finding, several
from spotladder.api.groups import MAX_PODS
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


def pods_of(job: Mapping[str, Any]) -> int:
    """The number of pods of one replicated job."""
    counts = (job.get("replicas"), inner(job, "template", "spec", "parallelism"))
    return prod(count for count in counts if isinstance(count, int))


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
    "maxFailedIndexes": "needs backoffLimitPerIndex, and spotladder restarts the whole set; remove it",
    "selector": "is set by the Job controller; remove it",
    "manualSelector": "is set by the Job controller; remove it",
    "suspend": "is set by spotladder: use spec.suspend",
    "ttlSecondsAfterFinished": "is set by spotladder, which removes ended attempts; remove it",
}
"""Fields that spotladder or Kubernetes sets and a template must therefore not set."""

_ONLY = {
    "completionMode": ("Indexed", "the index of a pod is its rank"),
    "podReplacementPolicy": ("Failed", "spotladder sets a podFailurePolicy, which needs it"),
}
"""Fields of a Job with one valid value, which is the default, and why."""


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
        found += _counts(job, given, at)
        for name, (only, why) in _ONLY.items():
            if given.get(name) not in (None, only):
                found.append(Finding((*at, "template", "spec", name), f"must be {only}: {why}; remove it"))
        found += bound_to_a_node(given["template"], (*at, *_POD))
    if not found and sum(map(pods_of, jobs)) > MAX_PODS:
        found.append(Finding(("replicatedJobs",), f"must have at most {MAX_PODS} pods together"))
    return found


def _counts(job: Mapping[str, Any], given: Mapping[str, Any], at: Path) -> Iterator[Finding]:
    inside = (*at, "template", "spec")
    pods, completions = given.get("parallelism"), given.get("completions")
    for count, path in ((job.get("replicas"), (*at, "replicas")), (pods, (*inside, "parallelism"))):
        if isinstance(count, int) and count < 1:
            yield Finding(path, "must be at least 1")
    least = 1 if pods is None else pods
    if isinstance(completions, int) and isinstance(least, int) and completions < least:
        message = f"must be at least parallelism, {least}, not {completions}: a Job has no more pods than completions"
        yield Finding((*inside, "completions"), message)


def _owned(given: Mapping[str, Any], owned: Mapping[str, str], at: Path) -> list[Finding]:
    return [
        Finding((*at, name), why, at_key=True) for name, why in owned.items() if given.get(name) not in (None, False)
    ]
