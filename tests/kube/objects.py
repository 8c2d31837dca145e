"""Objects to which the pods of a job refer."""

from __future__ import annotations

import base64
from typing import Any

from spotladder.resources import APIResource
from tests.kube.world import KubeWorld, ray_spec


def needing(*entries: dict[str, Any], **pod: Any) -> dict[str, Any]:
    """A workload whose workers have these `envFrom` entries."""
    spec = ray_spec()
    group = spec["rayClusterSpec"]["workerGroupSpecs"][0]
    container = {"name": "ray", "image": "rayproject/ray:2.58.1", "envFrom": list(entries)}
    group["template"] = {"spec": {"containers": [container], **pod}}
    return {"ray": {"template": {"spec": spec}}}


async def make(cluster: KubeWorld, kind: APIResource, name: str, **fields: Any) -> None:
    metadata = {"name": name, **({"namespace": cluster.namespace} if kind.namespaced else {})}
    await cluster.client.create(
        kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields}
    )


def encoded(**values: str) -> dict[str, str]:
    return {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
