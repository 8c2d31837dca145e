"""The workload `jobSet`: a template of a JobSet. Only the fields that spotladder needs or sets are validated."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from spotladder.api.fields import Finding, several
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
        if not isinstance(spec.get("replicatedJobs"), list) or not spec["replicatedJobs"]:
            raise several([Finding(("replicatedJobs",), "is required: a list of at least one replicated job")])
        templates = (
            (("replicatedJobs", index, "template", "spec", "template"), inner(job, "template", "spec", "template"))
            for index, job in enumerate(spec["replicatedJobs"])
        )
        if found := [finding for at, template in templates for finding in bound_to_a_node(template, at)]:
            raise several(found)
        return spec


class JobSetWorkload(Record):
    """A program without Ray, run as one JobSet per attempt."""

    template: JobSetTemplate = Field(description="The JobSet of each attempt.")
