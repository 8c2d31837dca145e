"""The kinds of workloads, as the controller uses them. `spotladder.api.workload_kinds` registers them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spotladder.api.tieredjob import TieredJob
from spotladder.api.workload_kinds import KINDS, loaded
from spotladder.resources import APIResource
from spotladder.workloads.records import Made, Object
from spotladder.workloads.workload import WorkloadKind

BY_FIELD: Mapping[str, WorkloadKind] = {kind.alias: loaded(kind.kind) for kind in KINDS}
"""Each kind by its field under `spec.workload`."""


def all_made() -> tuple[APIResource, ...]:
    """The kinds of objects that the controller creates for attempts, of all workloads."""
    return tuple(dict.fromkeys(kind for workload in BY_FIELD.values() for kind in workload.made))


def records() -> Mapping[APIResource, Callable[[Object], Made]]:
    """The kinds of objects to watch beside pods, nodes and events, of all workloads, and the record of each."""
    return {kind: record for workload in BY_FIELD.values() for kind, record in workload.records.items()}


def main_kinds() -> Mapping[APIResource, WorkloadKind]:
    """The workload of each kind that an attempt can be."""
    return {workload.main: workload for workload in BY_FIELD.values()}


def workload_of(job: TieredJob) -> WorkloadKind:
    """The workload kind of this job's attempts."""
    return BY_FIELD[job.spec.workload.kind]


def longest_attempt_name(workload: Mapping[str, Any]) -> int:
    """Maximum length of an attempt's name, from `spec.workload` as the API server returns it."""
    field = next(field for field in BY_FIELD if field in workload)
    return BY_FIELD[field].longest_name(workload[field]["template"].get("spec") or {})
