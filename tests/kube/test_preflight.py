"""Preflight: the objects that a job's pods refer to exist in the cluster of each tier."""

from __future__ import annotations

import base64
from typing import Any

from spotladder.operator.installed import DEPLOYMENTS
from spotladder.resources import PRIORITY_CLASSES, SECRETS, APIResource
from spotladder.workloads.network_policy import KUBERAY
from tests.kube.apiserver import ApiServer
from tests.kube.test_clusters import degraded, tiers, two_clusters, up
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


async def preflight(kube: KubeWorld, status: str) -> str:
    found = await kube.condition("Preflight")
    return (found.get("message") or found.get("reason", "")) if found.get("status") == status else ""


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


async def test_missing_objects_of_a_later_tier_are_reported_from_the_start(
    api_server: ApiServer, second_server: ApiServer
) -> None:
    async with (
        two_clusters(api_server, second_server) as (kube, east),
        kube.operator(sources={"east": east.source}) as runtime,
    ):
        await up(runtime)
        await make(kube, SECRETS, "bucket")
        await kube.submit(tiers=tiers(kube, "spot-a", "spot-east"), workload=needing(SECRET))
        await kube.run(1)  # The cluster of the first tier has all objects.
        expected = f"cluster east, namespace {kube.namespace} lacks Secret bucket: create it there"
        assert await eventually(lambda: preflight(kube, "False")) == expected
        await make(east, SECRETS, "bucket")
        await kube.pass_time(60)
        assert await eventually(lambda: preflight(kube, "True")) == "AllFound"
        assert not await degraded(kube, "ReferencesMissing")


async def test_incompatible_versions_are_a_warning(api_server: ApiServer) -> None:
    """The Deployment of KubeRay has an unsupported version: the job gets a warning and runs."""
    async with world(api_server) as kube:
        release = {"name": KUBERAY, "namespace": "default", "labels": {"helm.sh/chart": "kuberay-operator-1.3.0"}}
        pod = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
        spec = {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": pod}
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": release, "spec": spec}
        await kube.client.create(DEPLOYMENTS, body)
        try:
            async with kube.operator():
                await kube.submit()
                message = await eventually(lambda: preflight(kube, "False"))
                assert message == "KubeRay 1.3.0 is not supported: choose one of 1.5, 1.6"
                assert (await kube.condition("Preflight"))["reason"] == "VersionConflict"
                await eventually(lambda: kube.rayjob(1))
        finally:
            await kube.client.delete(DEPLOYMENTS, KUBERAY, "default")
