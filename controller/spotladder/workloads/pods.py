"""The pod overlay: the settings that the controller adds to the user's pod template for an attempt.

The user's template takes precedence, except for settings that an attempt needs: the tier's nodes (a contradiction is
an error), the SPOTLADDER_ variables, spotladder's labels, and `restartPolicy: Never`. With another restart policy a
lost container would restart in the same pod and not be counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from spotladder.api.checkpoint_fields import disk_bytes
from spotladder.api.elastic import elastic_environment
from spotladder.api.problems import Path, dotted
from spotladder.api.resolve import sizes
from spotladder.api.tieredjob import PodSecurity, TieredJob
from spotladder.core.contract import Variable, compile_caches
from spotladder.core.durations import format_duration
from spotladder.core.model import PodRole
from spotladder.errors import InvalidSpec
from spotladder.workloads import names
from spotladder.workloads.grace import grace_of
from spotladder.workloads.placement import Placement, place
from spotladder.workloads.program_container import DEFAULT_CONTAINER
from spotladder.workloads.security import harden
from spotladder.workloads.source import add_source
from spotladder.workloads.tiers import PlacedTier

NOTICE_FOLDER = "/run/spotladder"
NOTICE_FILE = f"{NOTICE_FOLDER}/notice"
_NOTICE_VOLUME = "spotladder-notice"
CACHE_FOLDER = "/var/cache/spotladder"
_CACHE_VOLUME = "spotladder-cache"

# Consolidation removes more pods of long jobs than reclaims do; these annotations exclude them from both usual
# autoscalers.
_STAY = {"karpenter.sh/do-not-disrupt": "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}


@dataclass(frozen=True, slots=True)
class PodOverlay:
    """The settings that the controller adds to all pods of one attempt. `env` overrides the template's variables."""

    job: TieredJob
    tier: PlacedTier
    labels: Mapping[str, str]
    env: Mapping[str, str]

    @classmethod
    def of(
        cls, job: TieredJob, origin: names.Origin, tier: PlacedTier, attempt: int, env: Mapping[str, str]
    ) -> PodOverlay:
        labels = names.labels(job.metadata.name, attempt, tier.name, origin)
        return cls(job, tier, labels, {**tier.entry.overrides.env, **env, **environment(job, tier, attempt)})


def environment(job: TieredJob, tier: PlacedTier, attempt: int) -> dict[str, str]:
    """The environment variables of the contract with the program."""
    checkpoints = job.spec.checkpoints
    variables = {
        Variable.JOB: job.metadata.name,
        Variable.NAMESPACE: job.metadata.namespace,
        Variable.ATTEMPT: str(attempt),
        Variable.TIER: tier.name,
        Variable.URI: checkpoints.uri,
        Variable.INTERVAL: checkpoints.interval,
        Variable.GRACE: format_duration(job.spec.grace),
        Variable.KEEP: str(checkpoints.keep),
        Variable.NOTICE: NOTICE_FILE,
        **elastic_environment(job.spec.elastic, sizes(job)),
    }
    if checkpoints.cache:
        variables[Variable.CACHE] = CACHE_FOLDER
        variables[Variable.CACHE_SIZE] = str(disk_bytes(checkpoints.cache))
    return variables


def copied(thing: Any) -> Any:
    """A deep copy without nulls, which Kubernetes treats as absent fields, and without shared parts: with a YAML
    anchor, two groups would be the same object."""
    if isinstance(thing, Mapping):
        return {key: copied(value) for key, value in thing.items() if value is not None}
    return [copied(value) for value in thing] if isinstance(thing, list) else thing


def with_overlay(
    template: Mapping[str, Any],
    overlay: PodOverlay,
    role: PodRole,
    placement: Placement,
    at: Path,
    *,
    program: dict[str, Any],
    calls_api: bool = False,
) -> dict[str, Any]:
    """The user's pod template for this attempt. Changes the contents of `template` in place: pass a copy.

    `at` is the path of the template in the user's file. `program` is its program container: the other containers are
    not changed. Unless one of them `calls_api`, the pod gets no token for the Kubernetes API; a template that needs it
    says so with automountServiceAccountToken.

    Raises:
        InvalidSpec: a restart policy of the user's, or selectors that contradict the tier.
    """
    metadata, spec = dict(template.get("metadata") or {}), dict(template.get("spec") or {})
    if spec.get("restartPolicy", "Never") != "Never":
        message = f"is Never, not {spec['restartPolicy']}: a lost container must count as a lost pod; remove it"
        raise InvalidSpec(message, path=dotted((*at, "spec", "restartPolicy")))
    metadata["labels"] = {**(metadata.get("labels") or {}), **overlay.labels, names.ROLE: role.value}
    named = {DEFAULT_CONTAINER: program["name"]} if program.get("name") else {}
    metadata["annotations"] = {**_STAY, **named, **(metadata.get("annotations") or {})}
    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        _quote_amounts(container.get("resources") or {})
    place(spec, placement, overlay.tier.name, (*at, "spec"))
    spec["restartPolicy"] = "Never"
    if not calls_api:
        spec.setdefault("automountServiceAccountToken", False)
    spec.setdefault("terminationGracePeriodSeconds", grace_of(overlay.tier.core.notice))
    _connect(program, overlay)
    # The kubelet stores the end of a failed program's log in the pod's status, which can be read without further
    # permissions.
    program.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")
    spec["volumes"] = _by_name(spec.get("volumes"), [_notice_volume(), *_cache_volume(overlay.job)])
    if role is not PodRole.AUXILIARY:
        override(program, overlay, role)
    harden(spec, [program], restricted=overlay.job.spec.pod_security is PodSecurity.RESTRICTED)
    if overlay.job.spec.source is not None:
        add_source(spec, program, overlay.job.spec.source)
    return {**template, "metadata": metadata, "spec": spec}


def _quote_amounts(resources: dict[str, Any]) -> None:
    """Write numbers with a point as text, in place: in a pod Kubernetes reads both, in a RayJob or JobSet only text."""
    for kind in ("requests", "limits"):
        if kind in resources:
            amounts = resources[kind].items()
            resources[kind] = {name: str(value) if isinstance(value, float) else value for name, value in amounts}


def override(container: dict[str, Any], overlay: PodOverlay, role: PodRole) -> None:
    """Apply the tier's overrides. Resources apply to workers only."""
    overrides = overlay.tier.entry.overrides
    if overrides.image:
        container["image"] = overrides.image
    if overrides.resources and role is PodRole.WORKER:
        resources = container.setdefault("resources", {})
        for kind, amounts in (("requests", overrides.resources.requests), ("limits", overrides.resources.limits)):
            if amounts:
                resources[kind] = {**(resources.get(kind) or {}), **amounts}


def with_env(container: dict[str, Any], entries: Iterable[Mapping[str, Any]], *, unless_set: bool = False) -> None:
    """Set environment variables in Kubernetes' format, or only those that the container does not have."""
    own = list(container.get("env") or ())
    if unless_set:
        have = {entry.get("name") for entry in own}
        entries = [entry for entry in entries if entry["name"] not in have]
    container["env"] = _by_name(own, entries)


def variables(env: Mapping[str, str]) -> list[dict[str, str]]:
    """A mapping as a list of Kubernetes' name/value entries."""
    return [{"name": name, "value": value} for name, value in env.items()]


def _connect(container: dict[str, Any], overlay: PodOverlay) -> None:
    with_env(container, variables(overlay.env))
    folder = next((entry.get("value") for entry in container["env"] if entry.get("name") == Variable.COMPILED), None)
    if folder:
        with_env(container, variables(compile_caches(folder)), unless_set=True)
    mounts: list[dict[str, Any]] = [{"name": _NOTICE_VOLUME, "mountPath": NOTICE_FOLDER, "readOnly": True}]
    if overlay.job.spec.checkpoints.cache:
        mounts.append({"name": _CACHE_VOLUME, "mountPath": CACHE_FOLDER})
    container["volumeMounts"] = _by_name(container.get("volumeMounts"), mounts, key="mountPath")
    credentials = overlay.job.spec.checkpoints.credentials
    if credentials:
        reference = {"secretRef": {"name": credentials.secret_name}}
        own = [entry for entry in container.get("envFrom") or () if entry != reference]
        container["envFrom"] = [*own, reference]


def _notice_volume() -> dict[str, Any]:
    field = {"fieldPath": f"metadata.annotations['{names.NOTICE}']"}
    return {"name": _NOTICE_VOLUME, "downwardAPI": {"items": [{"path": "notice", "fieldRef": field}]}}


def _cache_volume(job: TieredJob) -> list[dict[str, Any]]:
    cache = job.spec.checkpoints.cache
    return [{"name": _CACHE_VOLUME, "emptyDir": {"sizeLimit": cache}}] if cache else []


def _by_name(own: Any, ours: Iterable[Mapping[str, Any]], key: str = "name") -> list[dict[str, Any]]:
    """The user's entries, with spotladder's entries replacing those of the same name or appended."""
    merged = {entry.get(key): dict(entry) for entry in own or ()}
    merged.update({entry[key]: dict(entry) for entry in ours})
    return list(merged.values())
