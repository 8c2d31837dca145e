"""Converts a manifest of AIchor: operator kuberay into a RayJob, the others into a JobSet."""

from __future__ import annotations

import re
from typing import Any

from spotladder.conversion import jobset, limits, pytorchjob, skeleton, torch
from spotladder.conversion.aichor_pods import AichorPods
from spotladder.conversion.draft import Draft, plain
from spotladder.conversion.source import Options, Source

_RAY = ("kuberay", "ray")
_OPERATORS = (*_RAY, "jax", "jobset", "pytorch", "tf", "xgboost")
_MASTERS = ("pytorch", "xgboost")
_LABELS = {
    "JOB_INDEX": "job-index",
    "JOB_GLOBAL_INDEX": "job-global-index",
    "GLOBAL_REPLICAS": "global-replicas",
    "REPLICATED_JOB_NAME": "replicatedjob-name",
    "REPLICATED_JOB_REPLICAS": "replicatedjob-replicas",
}
_DURATION = re.compile(r"(?:([0-9]+)d)?((?:[0-9]+[hms])*)")


def from_manifest(source: Source, options: Options, _others: list[Source]) -> Draft:
    """A TieredJob of a manifest."""
    spec = dict(source.data.get("spec") or {})
    operator, types = str(spec.pop("operator", "")), dict(spec.pop("types", None) or {})
    command, image = str(spec.pop("command", None) or ""), str(spec.pop("image", None) or "image")
    if not command or not types:
        raise source.refused("needs command and types, the program and its pods", "spec")
    if operator not in _OPERATORS:
        raise source.refused(f"is {plain(operator)} (expected one of {', '.join(_OPERATORS)})", "spec", "operator")
    builder = dict(source.data.get("builder") or {})
    registry = str(builder.pop("registry", None) or "REGISTRY")
    storage = dict(spec.pop("storage", None) or {})
    claims = list(storage.pop("attachExistingPVCs", None) or ())
    if not all(claim.get("name") and claim.get("mountPoint") for claim in claims):
        raise source.refused("needs name and mountPoint of each claim", "spec", "storage", "attachExistingPVCs")
    pods = AichorPods(source, f"{registry}/{image}:TAG", claims)
    if operator in _RAY:
        field, made = "ray", _ray(pods, command, types, spec.pop("rayVersion", None))
    else:
        field, made = "jobSet", {"replicatedJobs": _jobs(pods, operator, command, types)}
    named = Source(source.document, {**source.data, "name": source.data.get("name") or image}, source.at)
    draft = skeleton.draft_of(named, options, field, made)
    draft.heading.append("AIchor builds the image: build and push it, and set its address where it says TAG.")
    draft.heading.append("AIchor's own variables (AICHOR_…, VCS_…) are not set: set those that the program reads.")
    draft.heading += pods.notes
    if operator == "tf":
        draft.heading.append("TF_CONFIG is not set: the program gets RANK, WORLD_SIZE and MASTER_ADDR.")
    _limit(draft, spec)
    skeleton.leftovers(draft, storage, "spec.storage.", "is made by AIchor: mount a volume of the cluster")
    skeleton.leftovers(draft, spec, "spec.", "is a function of AIchor")
    skeleton.leftovers(draft, types, "spec.types.")
    kept = ("apiVersion", "kind", "name", "builder", "spec")
    more = {"builder": builder, **{key: value for key, value in source.data.items() if key not in kept}}
    skeleton.leftovers(draft, more, "", "is for the build of the image")
    if field == "jobSet":
        return jobset.finished(draft, "", "")
    skeleton.program_note(draft, ("spec", "workload", "ray", "template", "spec", "entrypoint"))
    return draft


def _ray(pods: AichorPods, command: str, types: dict[str, Any], version: Any) -> dict[str, Any]:
    head, workers = types.pop("Head", None) or {}, types.pop("Workers", None) or []
    groups = [
        {
            "groupName": str(group.get("name") or f"workers-{index}"),
            "replicas": group.get("count") or 0,
            "rayStartParams": group.get("rayStartParams") or {},
            "template": pods.template(group, f"Workers[{index}]"),
        }
        for index, group in enumerate(workers)
    ]
    cluster = {
        **({"rayVersion": str(version)} if version else {}),
        "headGroupSpec": {
            "rayStartParams": head.get("rayStartParams") or {}, "template": pods.template(head, "Head")
        },
        "workerGroupSpecs": groups,
    }  # fmt: skip
    return {"entrypoint": command, "rayClusterSpec": cluster}


def _jobs(pods: AichorPods, operator: str, command: str, types: dict[str, Any]) -> list[dict[str, Any]]:
    found = {}
    for name in list(types):
        given = types.pop(name)
        if not isinstance(given, dict):
            raise pods.source.refused("must be a mapping: the pods of this type", "spec", "types", name)
        count, completions = given.get("count", 1), given.get("completions", 1)
        if given.get("parallelisms", completions) != completions:
            message = "differs from completions: a queue of tasks, not one training job whose pods run together"
            raise pods.source.refused(message, "spec", "types", name, "parallelisms")
        template = pods.template(given, name)
        template["spec"]["containers"][0]["command"] = ["sh", "-c", command.replace("$$", "$$$$")]
        found[name] = (count, completions, template)
    if operator in _MASTERS:
        return pytorchjob.grouped({name: {"replicas": n, "template": t} for name, (n, _, t) in found.items()}, None, {})
    if operator == "jax" and len(found) == 1:
        ((count, _, template),) = found.values()
        torch.connect(template["spec"]["containers"][0], [
            torch.label("MASTER", torch.COORDINATOR),
            {"name": "JAXOPERATOR_COORDINATOR_ADDRESS", "value": "$(MASTER):1234"},
            {"name": "JAXOPERATOR_NUM_PROCESSES", "value": str(count)},
            torch.completion_index("JAXOPERATOR_PROCESS_ID"),
        ])  # fmt: skip
        return [torch.replicated("workers", 1, count, template)]
    for _, _, template in found.values():
        entries = [torch.label(name, f"jobset.sigs.k8s.io/{key}") for name, key in _LABELS.items()]
        torch.connect(template["spec"]["containers"][0], entries)
    return [torch.replicated(name.lower(), count, pods, template) for name, (count, pods, template) in found.items()]


def _limit(draft: Draft, spec: dict[str, Any]) -> None:
    timeout, seconds = spec.pop("timeout", None), spec.pop("activeDeadlineSeconds", None)
    match = _DURATION.fullmatch(str(timeout or ""))
    if timeout and match:
        units = {"h": 3600, "m": 60, "s": 1}
        parts = re.findall(r"([0-9]+)([hms])", match[2])
        seconds = int(match[1] or 0) * 86_400 + sum(int(number) * units[unit] for number, unit in parts)
    elif timeout:
        skeleton.leftovers(draft, {"timeout": timeout}, "spec.", "is no duration such as 1d12h: set spec.maxDuration")
    limits.limit_duration(draft, seconds, "timeout" if timeout and match else "activeDeadlineSeconds")
