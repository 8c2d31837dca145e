"""Pod templates: what the tier sets, which container is the program, and fields of a live object."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from spotladder.api.problems import Path
from spotladder.api.template import inner
from spotladder.conversion.draft import Draft
from spotladder.errors import InvalidSpec
from spotladder.workloads.program_container import DEFAULT_CONTAINER, program_of, ray_of
from spotladder.workloads.providers import CAPACITY_TYPE_LABELS

_CAPACITY = CAPACITY_TYPE_LABELS | {"cloud.google.com/gke-preemptible", "node.kubernetes.io/lifecycle"}
_POOLS = {
    "agentpool", "alpha.eksctl.io/nodegroup-name", "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup",
    "karpenter.sh/nodepool", "karpenter.sh/provisioner-name", "kubernetes.azure.com/agentpool",
}  # fmt: skip
"""Labels that name one pool of nodes: each tier has another."""

_BY_TIER = "is set by the CapacityTier of each tier"
_BY_POOL = "names one pool, and each tier has another: use extraSelectors of the CapacityTier"
_LIVE = ("controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name")
_AFFINITY = ("affinity", "nodeAffinity")
_REQUIRED = (*_AFFINITY, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
_PREFERRED = (*_AFFINITY, "preferredDuringSchedulingIgnoredDuringExecution")


def on_tier(draft: Draft, at: Path) -> None:
    """Remove what a pod template says about spot capacity and pools. `at` is the path of the template."""
    spec = (*at, "spec")
    for key in list(draft.get(*spec, "nodeSelector") or ()):
        if why := _why(key):
            draft.remove((*spec, "nodeSelector", key), why)
    _from_list(draft, (*spec, "tolerations"), lambda entry: str(entry.get("key")))
    _from_list(draft, (*spec, *_PREFERRED), _preference)
    for index in reversed(range(len(draft.get(*spec, *_REQUIRED) or ()))):
        term = (*spec, *_REQUIRED, index)
        _from_list(draft, (*term, "matchExpressions"), lambda entry: str(entry.get("key")))


def off_spot(draft: Draft, at: Path) -> None:
    """Remove selectors of spot nodes from the head's template: the head is not placed there."""
    spec = (*at, "spec")
    why = "names spot nodes, and spotladder places the head elsewhere (headSelectors of the CapacityTier)"
    for key, value in list((draft.get(*spec, "nodeSelector") or {}).items()):
        if key in _CAPACITY and str(value).lower() in ("spot", "true"):
            draft.remove((*spec, "nodeSelector", key), why)


def program_container(draft: Draft, at: Path, *, usual: str = "", ray: bool = False) -> Path:
    """The path of the program container. `usual` is the name that the other system gives it. If nothing in the
    template shows which container it is, or only that name does, the annotation names it."""
    template, first = draft.get(*at), (*at, "spec", "containers", 0)
    containers = draft.get(*first[:-1]) or []
    if not containers:
        return first  # The review refuses it.
    named = inner(template, "metadata", "annotations", DEFAULT_CONTAINER)
    chosen = next((index for index, one in enumerate(containers) if one.get("name") == (named or usual)), None)
    if chosen is None:
        with suppress(InvalidSpec):  # Nothing shows it: the first container is assumed.
            program = ray_of(template, at) if ray else program_of(template, at)
            return (*at, "spec", "containers", next(n for n, one in enumerate(containers) if one is program))
    name = containers[chosen or 0].get("name")
    if len(containers) > 1 and name and not named:
        template.setdefault("metadata", {}).setdefault("annotations", {})[DEFAULT_CONTAINER] = name
        template["spec"] = template.pop("spec")  # metadata stands before spec
        draft.note(
            (*at, "metadata", "annotations", DEFAULT_CONTAINER),
            "Added: the container with the program. The others may end or restart without an effect on training.",
        )
    return (*at, "spec", "containers", chosen or 0)


def of_a_live_object(draft: Draft, at: Path) -> None:
    """Remove the labels that the Job controller adds to a template."""
    for key in _LIVE:
        if draft.get(*at, "metadata", "labels", key) is not None:
            draft.remove((*at, "metadata", "labels", key), "is set by the Job controller")


def _why(key: str) -> str:
    return _BY_TIER if key in _CAPACITY else _BY_POOL if key in _POOLS else ""


def _preference(entry: Any) -> str:
    expressions = inner(entry, "preference", "matchExpressions")
    single = isinstance(expressions, list) and len(expressions) == 1
    return str(inner(expressions[0], "key")) if single else ""


def _from_list(draft: Draft, at: Path, key_of: Any) -> None:
    entries = found if isinstance(found := draft.get(*at), list) else []
    for index in reversed(range(len(entries))):
        if why := _why(key_of(entries[index])):
            draft.remove((*at, index), why)


def each(draft: Draft, *jobs: str | int) -> Iterator[Path]:
    """The paths of the pod templates of a JobSet; `jobs` is the path of its replicated jobs."""
    for index, entry in enumerate(draft.get(*jobs) or ()):
        if isinstance(inner(entry, "template", "spec", "template"), dict):
            yield (*jobs, index, "template", "spec", "template")
