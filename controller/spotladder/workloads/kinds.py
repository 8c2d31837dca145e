"""The registry of workload kinds: a new kind is a package beside `rayjob` and `jobset`, and one entry here.

Its field under `spec.workload` is part of the schema: `spotladder.api.workload` has the fields and the CEL rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spotladder.api.tieredjob import TieredJob
from spotladder.resources import APIResource
from spotladder.workloads.jobset.workload import JOBSET
from spotladder.workloads.rayjob.workload import RAYJOB
from spotladder.workloads.records import Made, Object
from spotladder.workloads.workload import WorkloadKind

WORKLOADS: tuple[WorkloadKind, ...] = (RAYJOB, JOBSET)


def all_made() -> tuple[APIResource, ...]:
    """The kinds of objects that the controller creates for attempts, of all workloads."""
    return tuple(dict.fromkeys(kind for workload in WORKLOADS for kind in workload.made))


def records() -> Mapping[APIResource, Callable[[Object], Made]]:
    """The kinds of objects to watch beside pods, nodes and events, of all workloads, and the record of each."""
    return {kind: record for workload in WORKLOADS for kind, record in workload.records.items()}


def main_kinds() -> Mapping[APIResource, WorkloadKind]:
    """The workload of each kind that an attempt can be."""
    return {workload.main: workload for workload in WORKLOADS}


def workload_of(job: TieredJob) -> WorkloadKind:
    """The workload kind of this job's attempts."""
    return next(workload for workload in WORKLOADS if workload.renders(job))


def longest_attempt_name(workload: Mapping[str, Any]) -> int:
    """Maximum length of an attempt's name, from `spec.workload` as the API server returns it."""
    chosen = next(entry for entry in WORKLOADS if entry.field in workload)
    return chosen.longest_name(workload[chosen.field]["template"].get("spec") or {})
