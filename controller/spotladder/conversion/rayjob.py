"""Converts a RayJob, or a RayCluster with an entrypoint, of KubeRay."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from spotladder.api.accelerators import asks_for_accelerators
from spotladder.api.problems import Path
from spotladder.api.template import inner
from spotladder.conversion import limits, skeleton, templates
from spotladder.conversion.draft import Draft, plain
from spotladder.conversion.source import Options, Source, found

_AT: Path = ("spec", "workload", "ray", "template", "spec")
_CLUSTER: Path = (*_AT, "rayClusterSpec")
_GROUPS: Path = (*_CLUSTER, "workerGroupSpecs")


def from_rayjob(source: Source, options: Options, others: list[Source]) -> Draft:
    """A TieredJob of a RayJob. One that selects a RayCluster gets that cluster's spec if it is in the files."""
    spec = deepcopy(dict(source.data.get("spec") or {}))
    draft = skeleton.draft_of(source, options, "ray", spec)
    selector = spec.pop("clusterSelector", None)
    if selector and not spec.get("rayClusterSpec"):
        name = str(next(iter(selector.values()), "")) if isinstance(selector, dict) else ""
        cluster = found(others, "RayCluster", name)
        if cluster is None:
            message = f"names the existing cluster {name}: each attempt has its own; add the RayCluster to the files"
            raise source.refused(message, "spec", "clusterSelector")
        spec["rayClusterSpec"] = deepcopy(dict(cluster.data.get("spec") or {}))
        draft.dropped(f"Removed clusterSelector: each attempt has its own cluster, with the spec of RayCluster {name}.")
    if not spec.get("rayClusterSpec"):
        raise source.refused("is required: a RayJob without a cluster cannot be converted", "spec", "rayClusterSpec")
    _limits(draft)
    return _converted(draft, options)


def from_raycluster(source: Source, options: Options, _others: list[Source]) -> Draft:
    """A TieredJob of a RayCluster and the entrypoint of the options."""
    if not options.entrypoint:
        message = "is a cluster without a program: add --entrypoint 'python train.py', the command of the RayJob"
        raise source.refused(message)
    spec = {"entrypoint": options.entrypoint, "rayClusterSpec": deepcopy(dict(source.data.get("spec") or {}))}
    return _converted(skeleton.draft_of(source, options, "ray", spec), options)


def _limits(draft: Draft) -> None:
    if limit := draft.get(*_AT, "activeDeadlineSeconds"):
        draft.remove((*_AT, "activeDeadlineSeconds"), "limits one attempt: spec.maxDuration limits the job")
        limits.limit_duration(draft, limit, "activeDeadlineSeconds")
    if retries := draft.get(*_AT, "backoffLimit"):
        draft.remove((*_AT, "backoffLimit"), "limits one attempt: spec.applicationFailures limits the job's errors")
        limits.retry(draft, retries, "backoffLimit")
    limits.suspended(draft, draft.get(*_AT).pop("suspend", None))


def _converted(draft: Draft, options: Options) -> Draft:
    if draft.get(*_AT, "submissionMode") == "InteractiveMode":
        draft.remove((*_AT, "submissionMode"), "waits for a user to submit the program")
    was = draft.get(*_AT, "entrypoint") or options.entrypoint
    if options.entrypoint:
        draft.get(*_AT)["entrypoint"] = options.entrypoint
    if was != draft.get(*_AT, "entrypoint"):
        draft.note((*_AT, "entrypoint"), f"Was {plain(was)}: --entrypoint replaces it.")
    if draft.get(*_AT, "entrypoint"):
        skeleton.program_note(draft, (*_AT, "entrypoint"))
    _sizes(draft)
    head = (*_CLUSTER, "headGroupSpec", "template")
    if isinstance(draft.get(*head), dict):
        templates.off_spot(draft, head)
        templates.program_container(draft, head, ray=True)
    groups = draft.get(*_GROUPS) or []
    equipped = [asks_for_accelerators(inner(group, "template", "spec")) for group in groups]
    for index, group in enumerate(groups):
        at = (*_GROUPS, index, "template")
        if isinstance(group, dict) and isinstance(group.get("template"), dict):
            if equipped[index] or not any(equipped):  # Other groups keep their own nodes.
                templates.on_tier(draft, at)
            templates.program_container(draft, at, ray=True)
    return draft


def _sizes(draft: Draft) -> None:
    """The number of workers with which KubeRay starts each group. Groups that start empty get their maximum."""
    groups = [group for group in draft.get(*_GROUPS) or [] if isinstance(group, dict)]
    wanted = [_clamped(group) for group in groups]
    grows = bool(draft.get(*_CLUSTER, "enableInTreeAutoscaling"))
    for index, (group, count) in enumerate(zip(groups, wanted, strict=True)):
        size = _count(group, "maxReplicas", 1) if grows and not any(wanted) else count
        if size != group.get("replicas", 0):
            why = "all workers start together" if grows and not any(wanted) else "the number with which KubeRay starts"
            draft.note((*_GROUPS, index, "replicas"), f"Was {group.get('replicas', 'not set')}: {why}.")
            group["replicas"] = size


def _clamped(group: dict[str, Any]) -> int:
    least = _count(group, "minReplicas", 0)
    wanted = max(least, _count(group, "replicas", least))
    return min(wanted, _count(group, "maxReplicas", wanted))


def _count(group: dict[str, Any], field: str, default: int) -> int:
    count: int | None = group.get(field)
    return default if count is None else count
