"""The types of the template fields that spotladder reads or adds to.

In the TieredJob's schema a template is free-form. KubeRay, JobSet or the API server check the other fields when the
attempt is created.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spotladder.api.problems import Path, dotted
from spotladder.errors import InvalidSpec

Shape = Any
"""A type; `{"field": shape}` for a mapping, whose other fields are not checked; `{str: shape}` for a mapping with any
fields; `[shape]` for a list. Absent or null values are always valid."""

_TEXTS: Shape = {str: str}
_EXPRESSION: Shape = {"key": str, "operator": str, "values": [str]}
_TERMS: Shape = {"nodeSelectorTerms": [{"matchExpressions": [_EXPRESSION]}]}
_NAMED: Shape = {"name": str}
_OPTIONAL: Shape = {"name": str, "optional": bool}
_CONTAINER: Shape = {
    "name": str,
    "image": str,
    "command": [str],
    "args": [str],
    "env": [{"name": str, "value": str, "valueFrom": {"secretKeyRef": _OPTIONAL, "configMapKeyRef": _OPTIONAL}}],
    "envFrom": [{"secretRef": _OPTIONAL, "configMapRef": _OPTIONAL}],
    "volumeMounts": [{"name": str, "mountPath": str}],
    "ports": [{}],
    "resources": {"requests": {}, "limits": {}},
    "securityContext": {},
}

POD_TEMPLATE: Shape = {
    "metadata": {"labels": _TEXTS, "annotations": _TEXTS},
    "spec": {
        "containers": [_CONTAINER],
        "initContainers": [_CONTAINER],
        "nodeSelector": _TEXTS,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _TERMS}},
        "tolerations": [{}],
        "volumes": [
            {
                "name": str,
                "secret": {"secretName": str},
                "configMap": _OPTIONAL,
                "persistentVolumeClaim": {"claimName": str},
                "projected": {"sources": [{"secret": _OPTIONAL, "configMap": _OPTIONAL}]},
            }
        ],
        "imagePullSecrets": [_NAMED],
        "serviceAccountName": str,
        "priorityClassName": str,
        "runtimeClassName": str,
        "restartPolicy": str,
        "terminationGracePeriodSeconds": int,
        "securityContext": {},
    },
}

RAYJOB: Shape = {
    "submissionMode": str,
    "submitterConfig": {},
    "submitterPodTemplate": POD_TEMPLATE,
    "rayClusterSpec": {
        "rayVersion": str,
        "authOptions": {},
        "autoscalerOptions": _CONTAINER,
        "headGroupSpec": {"template": POD_TEMPLATE, "rayStartParams": _TEXTS},
        "workerGroupSpecs": [
            {
                "groupName": str,
                "replicas": int,
                "minReplicas": int,
                "maxReplicas": int,
                "template": POD_TEMPLATE,
                "rayStartParams": _TEXTS,
            }
        ],
    },
}

JOBSET: Shape = {
    "replicatedJobs": [
        {
            "name": str,
            "replicas": int,
            "template": {"spec": {"parallelism": int, "completions": int, "template": POD_TEMPLATE}},
        }
    ],
    "network": {"subdomain": str},
    "coordinator": {"replicatedJob": str, "jobIndex": int, "podIndex": int},
}

_WORDS = {str: "text", int: "a whole number", bool: "true or false"}


def check(value: Any, shape: Shape, at: Path) -> None:
    """Raises InvalidSpec for the first part with another type; `at` is the path of the value in the file."""
    if value is None:
        return
    if isinstance(shape, dict):
        if not isinstance(value, Mapping):
            raise _refused("a mapping", at)
        for name, inner in value.items():
            if name in shape or str in shape:
                check(inner, shape.get(name) or shape.get(str, {}), (*at, name))
    elif isinstance(shape, list):
        if not isinstance(value, list):
            raise _refused("a list", at)
        for index, inner in enumerate(value):
            if inner is None:
                raise _refused("a non-empty entry", (*at, index))
            check(inner, shape[0], (*at, index))
    elif not isinstance(value, shape) or (shape is int and isinstance(value, bool)):
        raise _refused(_WORDS[shape], at)


def _refused(wanted: str, at: Path) -> InvalidSpec:
    return InvalidSpec(f"must be {wanted}, as in Kubernetes", path=dotted(at))
