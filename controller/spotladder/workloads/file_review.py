"""What the files of a user say about a cluster before they are sent: errors, and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path as File
from typing import Any

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.group_problems import groups_in
from spotladder.api.masked_exit import masked_exits
from spotladder.api.problems import Path, Problem, dotted, quoted
from spotladder.api.program_imports import without_library
from spotladder.api.ray_workload import RayWorkload
from spotladder.api.record import API_VERSION
from spotladder.api.review import Review, Reviewed
from spotladder.api.template import inner
from spotladder.api.tieredjob import TieredJob
from spotladder.api.world import World
from spotladder.errors import InvalidSpec
from spotladder.versions import TESTED_RAY
from spotladder.workloads import providers
from spotladder.workloads.listed_tiers import listed_in
from spotladder.workloads.rayjob.authentication import is_open
from spotladder.workloads.review import problems
from spotladder.workloads.tiers import PlacedTier, price_of, resolve_tier

_ANY = CapacityTier.model_validate(
    {"apiVersion": API_VERSION, "kind": "CapacityTier", "metadata": {"name": "any"}, "spec": {}}
)
"""Represents a capacity with unknown properties: it has no requirements, so nothing contradicts it."""


def for_cluster(files: Review, in_cluster: Mapping[str, CapacityTier] | None = None) -> list[Problem]:
    """The errors of valid files on a cluster, each with its location in the files.

    `in_cluster` are the CapacityTiers of the cluster; those in the files replace them.
    """
    capacity, found = dict(in_cluster or {}), []
    for entry in files.objects:
        where = entry.document.where
        if isinstance(entry.model, World):
            found.append(Problem(where(()), "", "is a world file, which only local runs use: remove it"))
        elif isinstance(entry.model, CapacityTier):
            capacity[entry.name] = entry.model
            try:
                providers.placement(entry.model.spec)
            except InvalidSpec as error:
                found.append(Problem(entry.document.where_named(error.path), error.path, error.message))
    for entry in files.objects:
        if isinstance(entry.model, TieredJob):
            found += _of_job(entry, entry.model, capacity)
    return found


def for_clusters_alone(files: Review) -> list[Problem]:
    """The errors of jobs that can run only on a cluster: local runs support only Ray."""
    capacity = {entry.name: entry.model for entry in files.objects if isinstance(entry.model, CapacityTier)}
    found = []
    for entry in files.objects:
        job = entry.model
        if isinstance(job, TieredJob) and job.spec.workload.of(RayWorkload) is None and job.spec.train is None:
            found += _of_job(entry, job, capacity)
    return found


def _of_job(entry: Reviewed, job: TieredJob, capacity: Mapping[str, CapacityTier]) -> list[Problem]:
    return [
        Problem(entry.document.where_named(error.path), error.path, error.message)
        for error in problems(job, _as_known(job, capacity))
    ]


def warnings(files: Review) -> list[Problem]:
    """The warnings about valid files: conditions that only the cluster's administrator can check, Ray clusters without
    a token, groups of pods without a price, and those of the programs."""
    found = []
    for entry in files.objects:
        if not isinstance(entry.model, TieredJob):
            continue
        if entry.model.spec.checkpoints.credentials is None:
            message = (
                "is not given, so the controller reads the commit log with its own identity: the administrator must "
                "allow that for the namespace and the address (uris of the chart's tenancy)"
            )
            where = entry.document.where_named("spec.checkpoints")
            found.append(Problem(where, "spec.checkpoints.credentials", message))
        found += _unpriced_groups(entry, entry.model)
        ray = entry.model.spec.workload.of(RayWorkload)
        if ray is not None and is_open(ray.template.spec["rayClusterSpec"]):
            found.append(_open_dashboard(entry, entry.model))
    return [*found, *of_programs(files)]


def _open_dashboard(entry: Reviewed, job: TieredJob) -> Problem:
    path, remedy = "spec.workload.ray.template.spec.rayClusterSpec", "set rayVersion to the version in the image"
    if job.spec.train is not None:
        path, remedy = "spec.train.image", f"{remedy}, in the long form that `spotladder validate --show FILE` prints"
    message = (
        f"has no rayVersion of {TESTED_RAY[0].rpartition('.')[0]} or newer, so Ray requires no token: its dashboard is "
        "closed to other pods, and where the cluster's network implements no policies everyone who reaches it can run "
        f"programs there: {remedy}"
    )
    return Problem(entry.document.where_named(path), path, message)


def of_programs(files: Review) -> list[Problem]:
    """The entrypoints of the files that hide the exit code of the program, the programs that evidently do not use the
    library, and the hooks that end a program too early. Scripts are searched beside their file and in the
    working directory."""
    return [
        Problem(entry.document.where(path), dotted(path), message)
        for entry in files.objects
        if isinstance(entry.model, TieredJob)
        for path, message in (
            *masked_exits(entry.model),
            *without_library(entry.model, (File(entry.document.file).parent, File())),
            *stopping_hooks(entry.document.data),
        )
    ]


def stopping_hooks(thing: Any, at: Path = ()) -> Iterator[tuple[Path, str]]:
    """The preStop hooks in this part of a job that end Ray, and so the program, before it has committed."""
    words = inner(thing, "lifecycle", "preStop", "exec", "command")
    if isinstance(words, list) and "ray stop" in " ".join(map(str, words)):
        message = (
            "runs ray stop as soon as the pod is evicted, which ends the program before it has committed, and Ray "
            "drains its node at SIGTERM: remove it"
        )
        yield (*at, "lifecycle", "preStop"), message
    parts = thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list) else ()
    for name, part in parts:
        yield from stopping_hooks(part, (*at, name))


def _unpriced_groups(entry: Reviewed, job: TieredJob) -> Iterator[Problem]:
    for index, tier in enumerate(job.spec.tiers):
        beside = [name for name, here in groups_in(job.spec.workload, tier.groups) if not here]
        names = [quoted(name) for name in beside if name not in tier.groups]
        if names:
            path = f"spec.tiers[{index}]"
            message = (
                f"the pods of {', '.join(names)} are not on the tier, and their nodes are not part of the cost: name a "
                "CapacityTier with a price in groups"
            )
            yield Problem(entry.document.where(("spec", "tiers", index)), path, message)


def _as_known(job: TieredJob, capacity: Mapping[str, CapacityTier]) -> Iterator[PlacedTier]:
    for index, tier in enumerate(job.spec.tiers):
        named = capacity.get(tier.capacity_tier, _ANY)
        try:
            yield resolve_tier(index, tier, named, price_of(named), listed_in(capacity))
        except InvalidSpec:
            continue  # The CapacityTier contradicts itself; the error is reported for the CapacityTier.
