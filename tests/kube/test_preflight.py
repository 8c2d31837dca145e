"""Preflight: the objects that a job's pods refer to exist in the cluster of each tier, or are copied there."""

from __future__ import annotations

import base64
from functools import partial
from typing import Any

from spotladder.clusters.errors import NotFound
from spotladder.operator.installed import DEPLOYMENTS, KUBERAY
from spotladder.resources import CONFIG_MAPS, PRIORITY_CLASSES, SECRETS, SERVICE_ACCOUNTS, TIEREDJOBS, APIResource
from spotladder.workloads import names
from tests.kube.apiserver import ApiServer
from tests.kube.test_clusters import degraded, gone, tiers, two_clusters, up
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


async def content(cluster: KubeWorld, kind: APIResource, name: str) -> Any:
    try:
        return (await cluster.client.get(kind, name, cluster.namespace)).get("data")
    except NotFound:
        return None


async def preflight(here: KubeWorld, status: str) -> str:
    found = await here.condition("Preflight")
    return (found.get("message") or found.get("reason", "")) if found.get("status") == status else ""


async def test_missing_objects_hold_the_attempt_back_and_exhaust_no_tier(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit(workload=needing(SECRET, priorityClassName="no-such"))
        await eventually(lambda: degraded(here, "ReferencesMissing"))
        expected = f"namespace {here.namespace} lacks PriorityClass no-such, Secret bucket: create it there"
        assert (await here.condition("Degraded"))["message"] == expected
        await here.pass_time(3600)
        assert await here.is_on("spot-a", 1)
        assert await here.rayjobs() == []
        await make(here, SECRETS, "bucket")
        await make(here, PRIORITY_CLASSES, "no-such", value=1)
        try:
            await here.pass_time(11)
            await eventually(lambda: here.rayjob(1))
        finally:
            await here.client.delete(PRIORITY_CLASSES, "no-such")


async def test_missing_objects_of_a_later_tier_are_reported_from_the_start(
    api_server: ApiServer, second_server: ApiServer
) -> None:
    async with (
        two_clusters(api_server, second_server) as (here, east),
        here.operator(sources={"east": east.source}) as runtime,
    ):
        await up(runtime)
        await make(here, SECRETS, "bucket")
        await here.submit(tiers=tiers(here, "spot-a", "spot-east"), workload=needing(SECRET))
        await here.run(1)  # The cluster of the first tier has all objects.
        expected = f"cluster east, namespace {here.namespace} lacks Secret bucket: create it there"
        assert await eventually(lambda: preflight(here, "False")) == expected
        await make(east, SECRETS, "bucket")
        await here.pass_time(60)
        assert await eventually(lambda: preflight(here, "True")) == "AllFound"
        assert not await degraded(here, "ReferencesMissing")


async def test_copies_are_created_updated_and_removed(api_server: ApiServer, second_server: ApiServer) -> None:
    async with two_clusters(api_server, second_server) as (here, east), here.operator(sources={"east": east.source}):
        await make(here, SECRETS, "bucket", data=encoded(key="1"), type="spotladder.io/test")
        await make(here, CONFIG_MAPS, "settings", data={"a": "1"})
        await make(here, SERVICE_ACCOUNTS, "trainer")
        copies = [{"kind": "Secret", "name": "bucket"}, {"kind": "ConfigMap", "name": "settings"},
                  {"kind": "ServiceAccount", "name": "trainer"}]  # fmt: skip
        workload = needing(SECRET, SETTINGS, serviceAccountName="trainer")
        for name in ("digits", "letters"):
            await here.submit(name, tiers=tiers(here, "spot-east"), workload=workload, copies=copies)
            await eventually(partial(east.rayjob, 1, name))
        assert await eventually(lambda: preflight(here, "True")) == "AllFound"
        made = await east.client.get(SECRETS, "bucket", east.namespace)
        assert made["type"] == "spotladder.io/test"
        assert made["data"] == encoded(key="1")
        assert made["metadata"]["labels"][names.COPY] == "true"
        await here.client.merge(SECRETS, "bucket", here.namespace, body={"data": encoded(key="2")})

        async def updated() -> bool:
            return bool(await content(east, SECRETS, "bucket") == encoded(key="2"))

        await here.pass_time(61)
        await eventually(updated)
        await here.delete()
        await here.pass_time(91)
        await eventually(lambda: gone(here))
        await here.pass_time(61)
        assert await content(east, SECRETS, "bucket") is not None  # The other job still needs the copy.
        await here.delete("letters")
        await here.pass_time(91)
        await eventually(lambda: gone(here, "letters"))

        async def removed() -> bool:
            return (
                await content(east, SECRETS, "bucket") is None and await content(east, CONFIG_MAPS, "settings") is None
            )

        await here.pass_time(61)
        await eventually(removed)
        assert await content(here, SECRETS, "bucket") is not None


async def test_an_existing_object_is_not_overwritten_by_a_copy(api_server: ApiServer, second_server: ApiServer) -> None:
    async with two_clusters(api_server, second_server) as (here, east), here.operator(sources={"east": east.source}):
        await make(east, SECRETS, "bucket", data=encoded(key="theirs"))
        copies = [{"kind": "Secret", "name": "bucket"}]
        await here.submit(tiers=tiers(here, "spot-east"), workload=needing(SECRET), copies=copies)
        await eventually(lambda: degraded(here, "ReferencesMissing"))
        assert "does not exist in the home cluster" in (await here.condition("Degraded"))["message"]
        await make(here, SECRETS, "bucket", data=encoded(key="ours"))
        await here.pass_time(11)
        await eventually(lambda: degraded(here, "NameTaken"))
        assert "in cluster east is not a copy of this controller" in (await here.condition("Degraded"))["message"]
        assert await content(east, SECRETS, "bucket") == encoded(key="theirs")
        await here.client.merge(TIEREDJOBS, "digits", here.namespace, body={"spec": {"copies": []}})
        await eventually(lambda: east.rayjob(1))


async def test_incompatible_versions_are_a_warning(api_server: ApiServer) -> None:
    """The Deployment of KubeRay has an unsupported version: the job gets a warning and runs."""
    async with world(api_server) as here:
        release = {"name": KUBERAY, "namespace": "default", "labels": {"helm.sh/chart": "kuberay-operator-1.3.0"}}
        pod = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
        spec = {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": pod}
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": release, "spec": spec}
        await here.client.create(DEPLOYMENTS, body)
        try:
            async with here.operator():
                await here.submit()
                message = await eventually(lambda: preflight(here, "False"))
                assert message == "KubeRay 1.3.0 is not supported: choose one of 1.5, 1.6"
                assert (await here.condition("Preflight"))["reason"] == "VersionConflict"
                await eventually(lambda: here.rayjob(1))
        finally:
            await here.client.delete(DEPLOYMENTS, KUBERAY, "default")
