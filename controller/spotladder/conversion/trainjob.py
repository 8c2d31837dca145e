"""Converts a TrainJob of Kubeflow's trainer into a JobSet. The runtime is used if it is in the files."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

from spotladder.api.template import inner
from spotladder.conversion import jobset, limits, skeleton, torch
from spotladder.conversion.draft import Draft, plain
from spotladder.conversion.source import Options, Source, found

_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
_NAMES = ("node", "trainer")
IMAGE = "REGISTRY/IMAGE:TAG"
"""The placeholder for an image that the source does not name."""


def from_trainjob(source: Source, options: Options, others: list[Source]) -> Draft:
    """A TieredJob of a TrainJob."""
    spec = deepcopy(dict(source.data.get("spec") or {}))
    reference = spec.pop("runtimeRef", None) or {}
    name = str(reference.get("name") or "")
    runtime = found(others, "TrainingRuntime", name) or found(others, "ClusterTrainingRuntime", name)
    runtime_spec = deepcopy(dict((runtime.data.get("spec") if runtime else None) or {}))
    policy = runtime_spec.get("mlPolicy") or {}
    if other := next((field for field in policy if field not in ("numNodes", "torch")), ""):
        message = (
            f"names {name}, a runtime of {other}: expected one of torch, or without a framework; the trainer of "
            "Kubeflow connects its pods in another way: write a JobSet, and convert that"
        )
        raise source.refused(message, "spec", "runtimeRef")
    trainer = spec.pop("trainer", None) or {}
    template, others_in_runtime = _of_runtime(runtime_spec)
    patches = [
        inner(patch, "trainingRuntimeSpec", "template") or {} for patch in spec.pop("runtimePatches", None) or ()
    ]
    overrides = [*(spec.pop("podTemplateOverrides", None) or []), *(spec.pop("podSpecOverrides", None) or [])]
    overrides += (
        {**(inner(job, "template", "spec", "template") or {}), "targetJobs": [job]}
        for patch in patches
        for job in inner(patch, "spec", "replicatedJobs") or ()
    )
    for override in overrides:
        if any(target.get("name") in _NAMES for target in override.get("targetJobs") or [{"name": "node"}]):
            _overlay(template, {key: value for key, value in override.items() if key in ("metadata", "spec")})
    nodes = trainer.pop("numNodes", None) or policy.get("numNodes") or 1
    processes = trainer.pop("numProcPerNode", None) or (policy.get("torch") or {}).get("numProcPerNode")
    placeholder = _train(template, trainer, nodes, processes)
    jobs = [torch.replicated("node", 1, nodes, template)]
    metadata = dict(source.data.get("metadata") or {})
    for field in ("labels", "annotations"):
        more = [spec.pop(field, None), *(inner(patch, "metadata", field) for patch in patches)]
        metadata[field] = {key: value for given in (metadata.get(field), *more) for key, value in (given or {}).items()}
    labelled = replace(source, data={**source.data, "metadata": metadata})
    draft = skeleton.draft_of(labelled, options, "jobSet", {"replicatedJobs": jobs})
    if runtime is None:
        draft.heading.append(
            f"The runtime {plain(name)} is not in the files, so its image, volumes and policy are not known here. "
            "Add it to the files (kubectl get clustertrainingruntime NAME -o yaml), or set them below."
        )
    if placeholder:
        at = (*jobset.JOBS, 0, "template", "spec", "template", "spec", "containers", 0, "image")
        draft.note(at, "A placeholder: the image is that of the runtime.")
    for other in others_in_runtime:
        draft.dropped(f"Removed the runtime's job {plain(other)}: load data and model in the program, or in a volume.")
    rest = {key: value for key, value in runtime_spec.items() if key not in ("mlPolicy", "template")}
    skeleton.leftovers(draft, rest, "the runtime's ")
    _rest(draft, spec, trainer)
    return jobset.finished(draft, source.name, "-node-0-0", usual="node")


def _of_runtime(spec: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The trainer's pod template, and the names of the runtime's other jobs."""
    template, others = {"spec": {"containers": [{"name": "node"}]}}, []
    for job in inner(spec, "template", "spec", "replicatedJobs") or ():
        step = inner(job, "template", "metadata", "labels", _STEP)
        if step == "trainer" or job.get("name") == "node":
            template = inner(job, "template", "spec", "template") or template
        else:
            others.append(str(job.get("name")))
    return template, others


def _train(template: dict[str, Any], trainer: dict[str, Any], nodes: int, processes: Any) -> bool:
    """Apply the trainer to its container. Whether the image is a placeholder."""
    containers = template.setdefault("spec", {}).setdefault("containers", [{"name": "node"}])
    container = next((one for one in containers if one.get("name") in _NAMES), containers[0])
    env = trainer.pop("env", None) or []
    given = {entry.get("name") for entry in env}
    container["env"] = [*(entry for entry in container.get("env") or () if entry.get("name") not in given), *env]
    for name, field in (
        ("image", "image"),
        ("command", "command"),
        ("args", "args"),
        ("resourcesPerNode", "resources"),
    ):
        if (value := trainer.pop(name, None)) is not None:
            container[field] = value
    torch.connect(container, torch.environment(container, nodes, processes, split=False))
    placeholder = not container.get("image")
    if placeholder:
        container["image"] = IMAGE
    return placeholder


def _overlay(target: dict[str, Any], override: dict[str, Any]) -> None:
    """Add an override to a template: mappings are merged, containers and other lists by name, and values replaced."""
    for key, value in override.items():
        if value is None:
            continue
        own = target.get(key)
        if isinstance(own, dict) and isinstance(value, dict):
            _overlay(own, value)
        elif isinstance(own, list) and isinstance(value, list):
            for entry in value:
                same = next(
                    (
                        one
                        for one in own
                        if isinstance(entry, dict) and one.get("name") == entry.get("name") and entry.get("name")
                    ),
                    None,
                )
                if same is None:
                    own.append(entry)
                else:
                    _overlay(same, entry)
        else:
            target[key] = value


def _rest(draft: Draft, spec: dict[str, Any], trainer: dict[str, Any]) -> None:
    limits.suspended(draft, spec.pop("suspend", None))
    limits.limit_duration(draft, spec.pop("activeDeadlineSeconds", None), "activeDeadlineSeconds")
    if initializer := spec.pop("initializer", None):
        draft.dropped(f"Removed initializer: {plain(initializer)}. Load data and model in the program, or in a volume.")
    skeleton.leftovers(draft, trainer, "trainer.")
    skeleton.leftovers(draft, spec, "spec.")
