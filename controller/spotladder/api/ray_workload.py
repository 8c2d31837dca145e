"""The workload `ray`: a template of a RayJob. Only the fields that spotladder needs or sets are validated."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pydantic import Field, field_validator

from spotladder.api.accelerators import asks_for_accelerators
from spotladder.api.document import documents_of
from spotladder.api.fields import OWN_ENVIRONMENT, Finding, several
from spotladder.api.groups import MAX_PODS, on_tier
from spotladder.api.problems import Path, printable
from spotladder.api.record import Record
from spotladder.api.suggest import closest
from spotladder.api.template import TemplateMetadata, bound_to_a_node, inner
from spotladder.errors import InvalidSpec

_RAYJOB_FIELDS = (
    "activeDeadlineSeconds", "backoffLimit", "clusterSelector", "deletionStrategy", "entrypoint",
    "entrypointNumCpus", "entrypointNumGpus", "entrypointResources", "jobId", "managedBy", "metadata",
    "preRunningDeadlineSeconds", "rayClusterSpec", "runtimeEnvYAML", "shutdownAfterJobFinishes", "submissionMode",
    "submitterConfig", "submitterPodTemplate", "suspend", "ttlSecondsAfterFinished",
)  # fmt: skip
_RAYCLUSTER_FIELDS = (
    "authOptions", "autoscalerOptions", "enableInTreeAutoscaling", "gcsFaultToleranceOptions", "headGroupSpec",
    "headServiceAnnotations", "managedBy", "rayVersion", "suspend", "upgradeStrategy", "workerGroupSpecs",
)  # fmt: skip
_WORKER_GROUP_FIELDS = (
    "groupName", "idleTimeoutSeconds", "labels", "maxReplicas", "minReplicas", "numOfHosts", "rayStartParams",
    "replicas", "resources", "scaleStrategy", "suspend", "template",
)  # fmt: skip

_RUNTIME_ENV_FIELDS = (
    "_nsight", "_rocprof_sys", "conda", "config", "container", "env_vars", "excludes", "image_uri", "java_jars",
    "nsight", "pip", "py_executable", "py_modules", "uv", "worker_process_setup_hook", "working_dir",
)  # fmt: skip

# Fields that spotladder sets and a template must therefore not set.
_OWNED = {
    "backoffLimit": "must not be set: KubeRay's retries would compete with spotladder's; use spec.backoffLimit",
    "suspend": "must not be set: use spec.suspend",
    "managedBy": "must not be set: remove it",
    "clusterSelector": "must not be set: every attempt has its own cluster; describe it in rayClusterSpec",
    "jobId": "must not be set: every attempt has its own id; remove it",
}
_OWNED_OF_A_CLUSTER = {
    "suspend": "must not be set: use spec.suspend",
    "managedBy": "must not be set: remove it",
    "upgradeStrategy": "must not be set: KubeRay refuses it in the cluster of a RayJob; remove it",
}
_OWNED_OF_A_GROUP = {"suspend": "must not be set: the group would have no workers; remove it"}


_FIXED_SIZE = (
    "the workers on the tier are asked for together, and a smaller cluster counts as missing capacity; remove it, and "
    "for fewer workers set spec.elastic: {min: "
)


_MAX_RUNTIME_ENV = 32_768
"""Maximum length of runtimeEnvYAML in characters, so that the controller reads it in less than a second."""


class RayTemplate(Record):
    """The RayJob of each attempt."""

    metadata: TemplateMetadata = Field(
        default_factory=TemplateMetadata,
        description="Labels and annotations of the RayJobs. spotladder sets their names.",
    )
    spec: dict[str, Any] = Field(
        description="Spec of a RayJob (ray.io/v1), with at least entrypoint and rayClusterSpec.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )

    @field_validator("spec")
    @classmethod
    def _check_spec(cls, spec: dict[str, Any]) -> dict[str, Any]:
        found = [*_unknown(spec, _RAYJOB_FIELDS, ()), *_rayjob_problems(spec)]
        if found:
            raise several(found)
        return spec


class RayWorkload(Record):
    """A Ray program, run as one RayJob per attempt."""

    template: RayTemplate = Field(description="The RayJob of each attempt.")


def workers_of(spec: dict[str, Any], elsewhere: Collection[str] = ()) -> int:
    """The number of pods of a RayJob spec that are on the tier: worker pods, or the head alone. `elsewhere` are the
    groups that have a CapacityTier of their own."""
    groups = worker_groups(spec)
    here = groups_on_tier(spec, elsewhere)
    return sum(_pods(group) for group, is_here in zip(groups, here, strict=True) if is_here) or 1


def worker_groups(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The worker groups of a RayJob spec."""
    return spec.get("rayClusterSpec", {}).get("workerGroupSpecs") or []


def group_name(group: dict[str, Any], index: int) -> str:
    """The name of a worker group; the default of the controller for one without a name."""
    return str(group.get("groupName") or (f"workers-{index}" if index else "workers"))


def groups_on_tier(spec: dict[str, Any], elsewhere: Collection[str] = ()) -> tuple[bool, ...]:
    """For each worker group, whether it is on the tier. If none is, the head is: then no group has workers, or only the
    head asks for accelerators."""
    groups = worker_groups(spec)
    asks = [(group_name(group, index), _pods(group) > 0 and _computes(group)) for index, group in enumerate(groups)]
    if not any(_pods(group) for group, (name, _) in zip(groups, asks, strict=True) if name not in elsewhere):
        return tuple(False for _ in groups)
    if not any(wants for _, wants in asks) and _computes(spec.get("rayClusterSpec", {}).get("headGroupSpec")):
        return tuple(False for _ in groups)
    return on_tier(asks, elsewhere)


def _pods(group: dict[str, Any]) -> int:
    count: int = (group.get("replicas") or 0) * (group.get("numOfHosts") or 1)
    return count


def _computes(group: Any) -> bool:
    return asks_for_accelerators(inner(group, "template", "spec"))


def _rayjob_problems(spec: dict[str, Any]) -> list[Finding]:
    found: list[Finding] = []
    entrypoint = spec.get("entrypoint")
    if entrypoint is not None and not isinstance(entrypoint, str):
        found.append(Finding(("entrypoint",), "must be text: one command line, like: python train.py"))
    elif not (entrypoint or "").strip():
        missing = "is required: the command that starts the program, like: python train.py"
        found.append(Finding(("entrypoint",), missing))
    elif fault := _unbalanced(str(entrypoint)):
        found.append(Finding(("entrypoint",), fault))
    found += _owned(spec, _OWNED, ())
    found += _runtime_env_problems(spec.get("runtimeEnvYAML"))
    cluster = spec.get("rayClusterSpec")
    if not isinstance(cluster, dict):
        return [*found, Finding(("rayClusterSpec",), "is required: a mapping with headGroupSpec")]
    at = ("rayClusterSpec", "headGroupSpec", "template")
    found += bound_to_a_node(inner(cluster, "headGroupSpec", "template"), at)
    found += _owned(cluster, _OWNED_OF_A_CLUSTER, ("rayClusterSpec",))
    return [*found, *_unknown(cluster, _RAYCLUSTER_FIELDS, ("rayClusterSpec",)), *_worker_problems(cluster)]


def _worker_problems(cluster: dict[str, Any]) -> list[Finding]:
    at: Path = ("rayClusterSpec", "workerGroupSpecs")
    groups = cluster.get("workerGroupSpecs")
    if groups is None or groups == []:
        if isinstance(cluster.get("headGroupSpec"), dict):
            return []  # The head trains alone.
        return [Finding(at, "is required without headGroupSpec: a list of worker groups, each with replicas")]
    if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
        return [Finding(at, "must be a list of worker groups, each with replicas")]
    found: list[Finding] = []
    for index, group in enumerate(groups):
        found += _unknown(group, _WORKER_GROUP_FIELDS, (*at, index))
        found += _owned(group, _OWNED_OF_A_GROUP, (*at, index))
        found += bound_to_a_node(group.get("template"), (*at, index, "template"))
        found += _count_problems(group, (*at, index))
    found += _taken_names(groups, at)
    if found:
        return found
    if sum(map(_pods, groups)) > MAX_PODS:
        return [Finding(at, f"must have at most {MAX_PODS} pods together")]
    spec = {"rayClusterSpec": cluster}
    if not any(map(_pods, groups)) and not isinstance(cluster.get("headGroupSpec"), dict):
        return [Finding(at, "must have at least one worker: set replicas of a worker group to 1 or more")]
    return [
        finding
        for index, (group, here) in enumerate(zip(groups, groups_on_tier(spec), strict=True))
        for finding in _size_problems(group, cluster, (*at, index), here=here)
    ]


def _count_problems(group: dict[str, Any], at: Path) -> list[Finding]:
    found = []
    for name, least in (("replicas", 0), ("numOfHosts", 1), ("minReplicas", 0), ("maxReplicas", 0)):
        count = group.get(name)
        if count is None:
            continue
        if isinstance(count, bool) or not isinstance(count, int) or not least <= count <= 2**31 - 1:
            found.append(Finding((*at, name), f"must be a whole number of at least {least}"))
    replicas, most = group.get("replicas"), group.get("maxReplicas")
    if not found and replicas is not None and most is not None and most < replicas:
        found.append(Finding((*at, "maxReplicas"), f"must be at least replicas, {replicas}, not {most}"))
    return found


def _taken_names(groups: list[dict[str, Any]], at: Path) -> Iterator[Finding]:
    """KubeRay counts the pods of a group by its name."""
    taken: dict[str, int] = {}
    for index, group in enumerate(groups):
        name = group_name(group, index)
        if (first := taken.setdefault(name, index)) < index:
            message = f'"{printable(name)}" is already the name of workerGroupSpecs[{first}]: rename one of them'
            yield Finding((*at, index, "groupName"), message)


def _owned(given: dict[str, Any], owned: Mapping[str, str], at: Path) -> list[Finding]:
    return [
        Finding((*at, name), why, at_key=True)
        for name, why in owned.items()
        if given.get(name) not in (None, 0, False, "")
    ]


def _size_problems(group: dict[str, Any], cluster: dict[str, Any], at: Path, *, here: bool) -> list[Finding]:
    """Why the number of workers of a group cannot change as described: workers on the tier are a gang. Other groups
    may, with Ray's autoscaler or without."""
    replicas, least = group.get("replicas") or 0, group.get("minReplicas")
    if here and least is not None and least != replicas:
        return [Finding((*at, "minReplicas"), f"must equal replicas: {_FIXED_SIZE}{max(1, least)}}}")]
    if not replicas and cluster.get("enableInTreeAutoscaling") and _computes(group):
        message = (
            "must be 1 or more, because the group asks for accelerators: Ray's autoscaler does not change the number "
            "of workers on a tier"
        )
        return [Finding((*at, "replicas"), message)]
    return []


def _runtime_env_problems(text: Any) -> list[Finding]:
    at: Path = ("runtimeEnvYAML",)
    if text is None:
        return []
    if not isinstance(text, str):
        return [Finding(at, "must be text with YAML: write runtimeEnvYAML: | and indent the lines below")]
    if len(text) > _MAX_RUNTIME_ENV:
        return [
            Finding(at, f"must have at most {_MAX_RUNTIME_ENV} characters, not {len(text)}: put files into the image")
        ]
    try:
        documents = documents_of(text, "line")
    except InvalidSpec as error:
        return [Finding(at, f"contains invalid YAML: {line}") for line in str(error).splitlines()]
    if not documents:
        return []
    data = documents[0].data
    if len(documents) > 1 or not isinstance(data, dict):
        return [Finding(at, "must contain one YAML mapping, like env_vars: {KEY: value}")]
    unknown = [
        Finding(at, f"{printable(str(finding.path[-1]))} {finding.message}")
        for finding in _unknown(data, _RUNTIME_ENV_FIELDS, (), cutoff=0.6)
    ]
    variables = data.get("env_vars", {})
    if not isinstance(variables, dict):
        return [*unknown, Finding(at, "env_vars must be a mapping of names to text")]
    wrong = [name for name, value in variables.items() if not isinstance(value, str)]
    taken = [name for name in variables if name in OWN_ENVIRONMENT]
    return [
        *unknown,
        *(Finding(at, f"env_vars.{printable(name)} must be text: write the value in quotes") for name in wrong),
        *(Finding(at, f"env_vars.{name} is set by spotladder for each attempt; remove it") for name in taken),
    ]


def _unbalanced(command: str) -> str:
    """The error in the command's quoting; "" if none. Commands with comments or several lines are not checked."""
    if "#" in command or "\n" in command:
        return ""
    try:
        shlex.split(command)
    except ValueError as error:
        return f"cannot be read as a command: {str(error).lower()}; close the quotes, or escape a single one with \\"
    return ""


def _unknown(given: dict[str, Any], known: tuple[str, ...], at: Path, *, cutoff: float = 0.8) -> list[Finding]:
    """Findings for misspelt fields. A field unlike any known one is accepted: a newer KubeRay may have it."""
    return [
        Finding((*at, name), f"is not a known field; did you mean {near}?", at_key=True)
        for name in given
        if name not in known and (near := closest(name, known, cutoff=cutoff))
    ]
