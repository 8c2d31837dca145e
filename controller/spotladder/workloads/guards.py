"""The guards of an attempt's pods: the disruption budget and the NetworkPolicy.

In the home cluster, all attempts of a job share them: a fallback creates and deletes none, and they are deleted with
the job. In a member cluster nothing is deleted with the job, so each attempt has its own there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from spotladder.resources import DISRUPTION_BUDGETS, APIResource
from spotladder.workloads import names
from spotladder.workloads.digest import digest
from spotladder.workloads.pods import PodOverlay
from spotladder.workloads.records import Made, Object, made_fields

MORE_THAN_ALL_PODS = 1_000_000
"""More pods than the attempts of a job have: no number of healthy pods allows an eviction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRecord(Made):
    """The metadata of a guard that exists, or of a token's Secret. `digest` is that of its labels and spec."""

    digest: str = ""

    @classmethod
    def of(cls, thing: Object) -> Self:
        return cls(**made_fields(thing), digest=digest_of(thing))


@dataclass(frozen=True, slots=True)
class Guarded:
    """The pods that the guards cover, and the name and labels of the guards. `attempt` is the name of the attempt."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    attempt: str

    @classmethod
    def of(cls, overlay: PodOverlay, attempt: str) -> Self:
        metadata, labels = overlay.job.metadata, overlay.labels
        if names.HOME in labels:
            return cls(attempt, metadata.namespace, labels, attempt)
        shared = {key: value for key, value in labels.items() if key not in (names.ATTEMPT, names.TIER)}
        return cls(names.guards_name(metadata.name), metadata.namespace, shared, attempt)

    @property
    def selector(self) -> dict[str, str]:
        """The labels that all covered pods have."""
        return {key: self.labels[key] for key in (names.JOB_UID, names.ATTEMPT) if key in self.labels}

    def guard(self, kind: APIResource, spec: Mapping[str, Any]) -> dict[str, Any]:
        """A guard of this kind."""
        return sealed(
            {
                "apiVersion": kind.api_version,
                "kind": kind.kind,
                "metadata": {"name": self.name, "namespace": self.namespace, "labels": dict(self.labels)},
                "spec": dict(spec),
            }
        )


def sealed(guard: dict[str, Any]) -> dict[str, Any]:
    """Add the digest of its labels and spec to the guard, and return it."""
    made = {"labels": guard["metadata"]["labels"], "spec": guard["spec"]}
    guard["metadata"]["annotations"] = {names.DIGEST: digest(made)}
    return guard


def digest_of(guard: Object) -> str:
    """The digest with which a guard was made; "" if it has none."""
    return (guard["metadata"].get("annotations") or {}).get(names.DIGEST) or ""


def budget(guarded: Guarded) -> dict[str, Any]:
    """A disruption budget that refuses the eviction of every healthy pod.

    When a node is drained, the eviction is refused, the controller observes the node's taint, and the job commits and
    moves. The number is absolute because Kubernetes supports percentages and maxUnavailable only for kinds with a scale
    subresource. Unhealthy pods may be evicted, so that a broken attempt does not block a drain, and so may pods that
    are being deleted.
    """
    return guarded.guard(
        DISRUPTION_BUDGETS,
        {
            "minAvailable": MORE_THAN_ALL_PODS,
            "selector": {"matchLabels": guarded.selector},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    )
