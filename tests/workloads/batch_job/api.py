"""The field `spec.workload.batch` of a TieredJob."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from spotladder.api.record import Record
from spotladder.api.template import TemplateMetadata
from spotladder.api.tieredjob import TieredJob, TieredJobSpec
from spotladder.api.workload import Workload


class BatchTemplate(Record):
    metadata: TemplateMetadata = Field(default_factory=TemplateMetadata)
    spec: dict[str, Any]


class BatchWorkload(Record):
    template: BatchTemplate


class AnyWorkload(Workload):
    batch: BatchWorkload | None = None


class AnySpec(TieredJobSpec):
    workload: AnyWorkload


class AnyJob(TieredJob):
    spec: AnySpec
