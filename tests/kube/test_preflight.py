"""Preflight: the objects that a job's pods refer to exist in the cluster of each tier."""

from __future__ import annotations

import base64
from typing import Any

from spotladder.resources import PRIORITY_CLASSES, SECRETS, APIResource
from tests.kube.apiserver import ApiServer
from tests.kube.test_clusters import degraded
from tests.kube.world import KubeWorld, eventually, ray_spec, world


def needing(*entries: dict[str, Any], **pod: Any) -> dict[str, Any]:
    """A workload whose workers have these `envFrom` entries."""
    spec = ray_spec()
    group = spec["rayClusterSpec"]["workerGroupSpecs"][0]
    container = {"name": "ray", "image": "rayproject/ray:2.58.1", "envFrom": list(entries)}
    group["template"] = {"spec": {"containers": [container], **pod}}
    return {"ray": {"template": {"spec": spec}}}


SECRET, SETTINGS = {"secretRef": {"name": "bucket"}}, {"configMapRef": {"name": "settings"}}


async def make(cluster: KubeWorld, kind: APIResource, name: str, **fields: Any) -> None:
    metadata = {"name": name, **({"namespace": cluster.namespace} if kind.namespaced else {})}
    await cluster.client.create(
        kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields}
    )


def encoded(**values: str) -> dict[str, str]:
    return {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}


async def test_missing_objects_hold_the_attempt_back_and_exhaust_no_tier(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit(workload=needing(SECRET, priorityClassName="no-such"))
        await eventually(lambda: degraded(kube, "ReferencesMissing"))
        expected = f"namespace {kube.namespace} lacks PriorityClass no-such, Secret bucket: create it there"
        assert (await kube.condition("Degraded"))["message"] == expected
        await kube.pass_time(3600)
        assert await kube.is_on("spot-a", 1)
        assert await kube.rayjobs() == []
        await make(kube, SECRETS, "bucket")
        await make(kube, PRIORITY_CLASSES, "no-such", value=1)
        try:
            await kube.pass_time(11)
            await eventually(lambda: kube.rayjob(1))
        finally:
            await kube.client.delete(PRIORITY_CLASSES, "no-such")
