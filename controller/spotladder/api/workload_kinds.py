"""The registry of workload kinds: a new kind is a package and one entry in `KINDS`. The schema of `spec.workload`, its
CEL rules and the controller's kinds follow from the entries."""

from __future__ import annotations

from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

from pydantic.alias_generators import to_camel


@dataclass(frozen=True, slots=True)
class RegisteredKind:
    """A kind of workload. `field` is its field of the model `Workload`.

    `schema` is the address (`module:name`) of the field's model. The model has a `template` and imports only
    `spotladder.api`. `kind` is the address of its `spotladder.workloads.workload.WorkloadKind`, which only programs
    that render or observe attempts import.
    """

    field: str
    description: str
    schema: str
    kind: str

    @property
    def alias(self) -> str:
        """The field under `spec.workload`."""
        return to_camel(self.field)


KINDS: tuple[RegisteredKind, ...] = (
    RegisteredKind(
        "ray",
        "A Ray program (KubeRay's RayJob).",
        schema="spotladder.api.ray_workload:RayWorkload",
        kind="spotladder.workloads.rayjob.workload:RAYJOB",
    ),
    RegisteredKind(
        "job_set",
        "A program without Ray (JobSet).",
        schema="spotladder.api.jobset_workload:JobSetWorkload",
        kind="spotladder.workloads.jobset.workload:JOBSET",
    ),
)


def loaded(address: str) -> Any:
    """The object at an address of the registry."""
    return resolve_name(address)


def enumerated() -> str:
    """The fields of all kinds, for messages: `ray and jobSet`."""
    *others, last = (kind.alias for kind in KINDS)
    return f"{', '.join(others)} and {last}" if others else last
