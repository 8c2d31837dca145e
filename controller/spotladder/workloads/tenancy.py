"""Decides what of a job its namespace may not use: by the administrator's rules and by its Pod Security level.

The chart's admission policy repeats in CEL what follows from the TieredJob alone (tests/kube/test_admission.py compares
both). This function also knows the clusters of the tiers and the level of the namespace, and runs before every launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_snake

from spotladder.api.address import ANY
from spotladder.api.problems import Path, dotted, quoted
from spotladder.api.tenancy import DEFAULTS, SYSTEM_KEYS, TenantRule, listed, rules_for, whom
from spotladder.api.tieredjob import TieredJob
from spotladder.workloads.pod_security import BASELINE, LABEL, PodTemplate, mapping, mappings, pod_templates, violations
from spotladder.workloads.template import template_of
from spotladder.workloads.tiers import PlacedTier

PRIORITY_OF_KUEUE = "kueue.x-k8s.io/priority-class"
_SYSTEM_PRIORITY = "system-"
_SERVICE = (
    ("headGroupSpec", "headService"),
    ("headGroupSpec", "serviceType"),
    ("headGroupSpec", "enableIngress"),
    ("headServiceAnnotations",),
)
"""Fields of a RayCluster with which KubeRay creates Services and Ingresses, whether or not the user may create them."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One value that a namespace may not use: its field, what was found, why, and what to do."""

    at: Path
    found: str
    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{dotted(self.at)}: {quoted(self.found)} {self.why}: {self.remedy}"


@dataclass(frozen=True, slots=True)
class Level:
    """The Pod Security level of a namespace in the cluster of a tier, None without a label; and where, for messages."""

    label: str | None
    where: str


def refusals(
    rules: Iterable[TenantRule],
    job: TieredJob,
    tiers: Iterable[PlacedTier],
    objects: Iterable[Mapping[str, Any]] = (),
    level: Level | None = None,
) -> tuple[Refusal, ...]:
    """What the job may not use on these tiers. `objects` are those of an attempt; their pods are checked against
    `level`."""
    mine = rules_for(rules, job.metadata.namespace)
    decided = _Decider(job.metadata.namespace, mine)
    found = [*decided.of_tiers(job, tiers), *decided.of_template(job)]
    if level is not None:
        main: Path = ("spec", "workload", job.spec.workload.kind, "template")
        found += [entry for body in objects for entry in decided.of_pods(pod_templates(body, main), level)]
    return tuple(dict.fromkeys(found))


class _Decider:
    def __init__(self, namespace: str, mine: Sequence[TenantRule]) -> None:
        self._namespace = namespace
        self._mine = mine
        self._whom = whom(mine)

    def of_tiers(self, job: TieredJob, tiers: Iterable[PlacedTier]) -> Iterator[Refusal]:
        positions = {tier.name: index for index, tier in enumerate(job.spec.tiers)}
        for tier in tiers:
            at: Path = ("spec", "tiers", positions[tier.name])
            yield from self._listed("capacityTiers", tier.entry.capacity_tier, (*at, "capacityTier"))
            for name, group in tier.entry.groups.items():
                yield from self._listed("capacityTiers", group.capacity_tier, (*at, "groups", name, "capacityTier"))
            yield from self._listed("clusters", tier.cluster, (*at, "capacityTier"), what="cluster ")

    def of_template(self, job: TieredJob) -> Iterator[Refusal]:
        workload = job.spec.workload
        template = template_of(job, workload.kind)
        at: Path = ("spec", "workload", workload.kind, "template")
        # Kueue also admits the pods and Jobs of an object that is in no queue.
        whole = {"metadata": {"labels": template.metadata.labels}, "spec": template.spec}
        for here, priority in _values_of(PRIORITY_OF_KUEUE, whole, at):
            yield from self._listed("priorityClasses", str(priority), here)
        for pod in pod_templates(template.spec, (*at, "spec")):
            yield from self._of_pod(pod)
        cluster = mapping(template.spec.get("rayClusterSpec"))
        here = (*at, "spec", "rayClusterSpec")
        if cluster.get("enableInTreeAutoscaling") and not any(rule.ray_autoscaling for rule in self._mine):
            why = "lets the head change the RayClusters of the namespace, with any pods"
            yield self._refusal((*here, "enableInTreeAutoscaling"), "true", why, "set rayAutoscaling")
        for path in _SERVICE:
            value: Any = cluster
            for name in path:
                value = mapping(value).get(name)
            if value and value != "ClusterIP":
                why = "would make KubeRay create a Service or an Ingress with rights that the job does not have"
                remedy = "remove it, and create the Service with your own rights"
                yield Refusal((*here, *path), value if isinstance(value, str) else path[-1], why, remedy)

    def _of_pod(self, pod: PodTemplate) -> Iterator[Refusal]:
        spec, at = pod.spec, pod.at
        if priority := spec.get("priorityClassName"):
            yield from self._listed("priorityClasses", str(priority), (*at, "priorityClassName"))
        if spec.get("priority") is not None:
            remedy = "remove it, and name a priority class"
            yield Refusal((*at, "priority"), str(spec["priority"]), "is set by priority classes only", remedy)
        for field in ("serviceAccountName", "serviceAccount"):
            if field in spec:
                yield from self._listed("serviceAccounts", str(spec[field] or "default"), (*at, field))
        if "autoscalerOptions" not in at and not {"serviceAccountName", "serviceAccount"} & set(spec):
            yield from self._listed("serviceAccounts", "default", (*at, "serviceAccountName"))
        if spec.get("nodeName"):
            why = "bypasses the scheduler, and with it the taints of nodes"
            yield Refusal((*at, "nodeName"), str(spec["nodeName"]), why, "remove it, or use nodeSelector")
        for index, toleration in enumerate(mappings(spec.get("tolerations"))):
            yield from self._toleration(toleration, (*at, "tolerations", index))

    def _toleration(self, toleration: Mapping[str, Any], at: Path) -> Iterator[Refusal]:
        key, keys = str(toleration.get("key") or ""), listed(self._mine, "tolerations")
        if not key:
            yield Refusal(at, str(toleration.get("operator", "")), "tolerates the taints of all nodes", "name a key")
        elif SYSTEM_KEYS.fullmatch(key) and keys is None:
            why = f"is the taint of system nodes, which namespace {self._namespace} may not use"
            yield self._refusal((*at, "key"), key, why, "add it to tolerations")
        elif keys is not None and key not in keys and ANY not in keys:
            yield self._refusal((*at, "key"), key, self._not_allowed("tolerations", keys), "add it to tolerations")

    def of_pods(self, pods: Iterable[PodTemplate], level: Level) -> Iterator[Refusal]:
        """What the Pod Security level does not allow. EFA is an exception only where no label demands the level."""
        efa = level.label is None and any(rule.efa for rule in self._mine)
        name = level.label or BASELINE
        why = f"is not allowed by the Pod Security level {name} of {level.where}"
        remedy = f"remove it, or ask {self._whom} for another label {LABEL} there"
        for pod in pods:
            for violation in violations(pod, name, efa=efa):
                yield Refusal(violation.at, str(violation.found), why, remedy)

    def _listed(self, setting: str, value: str, at: Path, what: str = "") -> Iterator[Refusal]:
        named = listed(self._mine, to_snake(setting))
        allowed = DEFAULTS[setting] if named is None else named
        if setting == "priorityClasses" and value.startswith(_SYSTEM_PRIORITY):
            yield Refusal(at, value, "is for the cluster's own components", "remove it")
        elif value not in allowed and ANY not in allowed:
            yield self._refusal(at, f"{what}{value}", self._not_allowed(setting, allowed), f"add it to {setting}")

    def _not_allowed(self, setting: str, allowed: Sequence[str]) -> str:
        return f"is not allowed in namespace {self._namespace} ({setting}: {', '.join(allowed) or 'none'})"

    def _refusal(self, at: Path, found: str, why: str, setting: str) -> Refusal:
        return Refusal(at, found, why, f"remove it, or ask {self._whom} to {setting} of the chart's tenancy")


def _values_of(key: str, thing: Any, at: Path) -> Iterator[tuple[Path, Any]]:
    """The values with this key, wherever they are, and their paths."""
    entries = thing.items() if isinstance(thing, Mapping) else enumerate(thing) if isinstance(thing, list) else ()
    for name, value in entries:
        if name == key and value:
            yield (*at, name), value
        yield from _values_of(key, value, (*at, name))
