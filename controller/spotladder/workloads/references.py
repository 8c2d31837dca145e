"""The objects that an attempt refers to: its Kueue queue; the Secrets, ConfigMaps, service accounts and volume claims
of its pods; and the cluster's priority and runtime classes.

A pod without one of them stays pending and looks like a pod that waits for a node. So the controller checks them in
the tier's cluster before it launches an attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from spotladder.resources import (
    CONFIG_MAPS,
    PRIORITY_CLASSES,
    RUNTIME_CLASSES,
    SECRETS,
    SERVICE_ACCOUNTS,
    VOLUME_CLAIMS,
    APIResource,
)
from spotladder.workloads.kueue import LOCAL_QUEUES
from spotladder.workloads.pod_security import pod_templates

_NAMED = (
    ("serviceAccountName", SERVICE_ACCOUNTS),
    ("priorityClassName", PRIORITY_CLASSES),
    ("runtimeClassName", RUNTIME_CLASSES),
)
_VARIABLES = (("secretKeyRef", SECRETS), ("configMapKeyRef", CONFIG_MAPS))
_ENVIRONMENTS = (("secretRef", SECRETS), ("configMapRef", CONFIG_MAPS))
_PROJECTED = (("secret", SECRETS), ("configMap", CONFIG_MAPS))


MAX_REFERENCES = 100
"""Maximum number of objects of a job that are looked up, at the same time and again while one is missing. The kubelet
reports the others."""


@dataclass(frozen=True, slots=True)
class Reference:
    """An object that must exist in the attempt's namespace, or cluster."""

    kind: APIResource
    name: str
    installed: bool = True  # False if the cluster does not know the kind

    def __str__(self) -> str:
        unknown = "" if self.installed else f" (the cluster has no {self.kind.plural} of {self.kind.api_version})"
        return f"{self.kind.kind} {self.name}{unknown}"


def references(objects: Iterable[Mapping[str, Any]], queue: str = "") -> tuple[Reference, ...]:
    """The required objects that the pods of these rendered objects refer to, each once; and `queue`. At most
    `MAX_REFERENCES`."""
    named = (reference for body in objects for pod in pod_templates(body) for reference in _named_by(pod.spec))
    queues = (Reference(LOCAL_QUEUES, queue),) if queue else ()
    return tuple(islice(dict.fromkeys((*queues, *named)), MAX_REFERENCES))


def _named_by(pod: Mapping[str, Any]) -> Iterator[Reference]:
    for field, kind in _NAMED:
        if name := pod.get(field):
            yield Reference(kind, name)
    for entry in pod.get("imagePullSecrets") or ():
        yield from _each({"secret": entry}, _PROJECTED)
    for container in (*(pod.get("initContainers") or ()), *(pod.get("containers") or ())):
        for variable in container.get("env") or ():
            yield from _each(variable.get("valueFrom"), _VARIABLES)
        for source in container.get("envFrom") or ():
            yield from _each(source, _ENVIRONMENTS)
    for volume in pod.get("volumes") or ():
        yield from _each(volume, (("configMap", CONFIG_MAPS),))
        yield from _each(volume, (("secret", SECRETS),), key="secretName")
        yield from _each(volume, (("persistentVolumeClaim", VOLUME_CLAIMS),), key="claimName")
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield from _each(source, _PROJECTED)


def _each(source: Any, kinds: tuple[tuple[str, APIResource], ...], key: str = "name") -> Iterator[Reference]:
    for field, kind in kinds:
        reference = (source or {}).get(field)
        if isinstance(reference, Mapping) and reference.get(key) and not reference.get("optional"):
            yield Reference(kind, reference[key])
