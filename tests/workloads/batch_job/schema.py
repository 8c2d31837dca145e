"""The model of `spec.workload.batch`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from spotladder.api.record import Record
from spotladder.api.template import TemplateMetadata


class BatchTemplate(Record):
    """The Job of each attempt."""

    metadata: TemplateMetadata = Field(default_factory=TemplateMetadata)
    spec: dict[str, Any] = Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})


class BatchWorkload(Record):
    """A program without Ray, run as one Job per attempt."""

    template: BatchTemplate
