"""The workload of a TieredJob. Each kind has its own module, and here a field and its part of `RULES`."""

from __future__ import annotations

from pydantic import Field, model_validator

from spotladder.api.fields import refused
from spotladder.api.jobset_workload import JobSetWorkload
from spotladder.api.ray_workload import RayWorkload
from spotladder.api.record import Record

RULES = (
    ("has(self.ray) != has(self.jobSet)", "needs exactly one of ray and jobSet"),
    ("has(self.ray) == has(oldSelf.ray)", "cannot change from ray to jobSet or back"),
)
"""CEL rules of `spec.workload`, each with its message. The names in them are the fields of `Workload`."""


class Workload(Record):
    """Program of the job: exactly one of the fields."""

    ray: RayWorkload | None = Field(default=None, description="A Ray program (KubeRay's RayJob).")
    job_set: JobSetWorkload | None = Field(default=None, description="A program without Ray (JobSet).")

    @model_validator(mode="after")
    def _exactly_one(self) -> Workload:
        fields = type(self).model_fields
        if sum(getattr(self, name) is not None for name in fields) != 1:
            raise refused(f"needs exactly one of {' and '.join(str(info.alias) for info in fields.values())}")
        return self
