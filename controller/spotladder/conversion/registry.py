"""The kinds that can be converted, and the conversion of a set of files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from spotladder.api.problems import Path
from spotladder.api.template import inner
from spotladder.conversion.accepted import accept
from spotladder.conversion.aichor import from_manifest
from spotladder.conversion.batchjob import from_job
from spotladder.conversion.draft import Draft, plain
from spotladder.conversion.jobset import from_jobset
from spotladder.conversion.pytorchjob import from_pytorchjob
from spotladder.conversion.rayjob import from_raycluster, from_rayjob
from spotladder.conversion.shapes import SHAPES
from spotladder.conversion.skypilot import from_task
from spotladder.conversion.source import Options, Source
from spotladder.conversion.trainjob import from_trainjob
from spotladder.errors import InvalidSpec
from spotladder.workloads.template_schema import check

Converter = Callable[[Source, Options, list[Source]], Draft]

KINDS: Mapping[tuple[str, str], Converter] = MappingProxyType(
    {
        ("ray.io", "RayJob"): from_rayjob,
        ("ray.io", "RayCluster"): from_raycluster,
        ("jobset.x-k8s.io", "JobSet"): from_jobset,
        ("batch", "Job"): from_job,
        ("trainer.kubeflow.org", "TrainJob"): from_trainjob,
        ("kubeflow.org", "TrainJob"): from_trainjob,
        ("kubeflow.org", "PyTorchJob"): from_pytorchjob,
        ("", "SkyPilot task"): from_task,
        ("", "AIchorManifest"): from_manifest,
    }
)
"""The converter of each API group and kind."""

SUPPORTED = (
    "RayJob, RayCluster with --entrypoint, JobSet, Job (batch/v1), TrainJob, PyTorchJob, SkyPilot task, AIchorManifest"
)

_PLACEHOLDER = re.compile(r"\{\{|[$<]")
_NAMES = ("image", "serviceAccountName", "claimName", "secretName", "bucketName")
"""Fields of pods whose values have no such signs."""

_RAY = ("RayJob", "RayCluster")


@dataclass(frozen=True, slots=True)
class Converted:
    """The jobs of a set of files, and a sentence for each other object."""

    drafts: tuple[Draft, ...]
    others: tuple[str, ...]


def convert(sources: Sequence[Source], options: Options) -> Converted:
    """Convert all jobs in the files.

    Raises:
        InvalidSpec: no object can be converted, or one of them is not valid; names the field.
    """
    every = list(sources)
    for one in every:
        _check_types(one)
    jobs = [one for one in every if (one.group, one.kind) in KINDS and not _is_used(one, every)]
    if not options.entrypoint:  # A RayCluster in a file with jobs is converted only if it has a program.
        jobs = [one for one in jobs if one.kind != "RayCluster"] or jobs
    elif not any(one.kind in _RAY for one in jobs):
        raise InvalidSpec("is the command of a RayCluster, and the files have none: remove it", path="--entrypoint")
    if not jobs:
        first = next((one for one in every if one.kind == "TieredJob"), every[0])
        if first.kind == "TieredJob":
            raise first.refused("already is a TieredJob: check it with spotladder validate", "kind")
        kind = f"{first.kind} ({first.data.get('apiVersion')})" if first.kind else "an object without kind"
        raise first.refused(f"{kind} cannot be converted (expected {SUPPORTED}): name a file with one of these", "kind")
    drafts = []
    by_name: dict[tuple[str, str], Source] = {}
    for one in jobs:
        _check_placeholders(one)
        drafts.append(KINDS[one.group, one.kind](one, options, every))
        accept(drafts[-1], one, options)
        about = drafts[-1].job["metadata"]
        other = by_name.setdefault((about.get("namespace", ""), about["name"]), one)
        if other is not one:
            message = f'becomes "{about["name"]}", which is the name of the job at {other.where()} already: rename it'
            raise one.refused(message, "metadata", "name")
    rest = [one for one in every if one not in jobs]
    return Converted(tuple(drafts), tuple(_named(one, used=_is_used(one, every)) for one in rest))


def _check_types(one: Source) -> None:
    try:
        check(one.data, SHAPES.get(one.kind, {}), one.at)
    except InvalidSpec as error:
        where = one.document.where_named(error.path)
        raise InvalidSpec(error.message, path=error.path, where=where) from None


def _check_placeholders(one: Source) -> None:
    """Raises InvalidSpec if a name or an image is a placeholder. Shells use the same signs in commands."""
    named = ((("metadata", field), inner(one.data, "metadata", field)) for field in ("name", "namespace"))
    for path, value in (*named, *_names(one.data, ())):
        if isinstance(value, str) and _PLACEHOLDER.search(value):
            message = f"has the placeholder {plain(value)}: convert the file with its values (helm template, envsubst)"
            raise one.refused(message, *path)


def _names(value: Any, at: Path) -> Iterator[tuple[Path, Any]]:
    for key, inside in value.items() if isinstance(value, Mapping) else enumerate(value):
        if key in _NAMES:
            yield (*at, key), inside
        elif isinstance(inside, Mapping | list):
            yield from _names(inside, (*at, key))


def _is_used(one: Source, every: list[Source]) -> bool:
    """Whether a RayJob of the files selects this RayCluster, or a TrainJob names this runtime."""
    if one.kind == "RayCluster":
        selectors = [inner(job.data, "spec", "clusterSelector") for job in every if job.kind == "RayJob"]
        return any(one.name in (selector or {}).values() for selector in selectors)
    runtimes = [inner(job.data, "spec", "runtimeRef", "name") for job in every if job.kind == "TrainJob"]
    return one.kind in ("TrainingRuntime", "ClusterTrainingRuntime") and one.name in runtimes


def _named(one: Source, *, used: bool) -> str:
    what = f"{one.kind or 'document'} {one.name}".strip()
    if used:
        return f"Used: {what} ({one.where()})."
    return f"Not in this file: {what} ({one.where()}). Apply it yourself if the pods need it."
