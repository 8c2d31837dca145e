"""What a job's pods name must exist in the cluster of each tier, or be copied there."""

from __future__ import annotations

import base64
from typing import Any

from spotladder.clusters.errors import NotFound
from spotladder.operator.installed import DEPLOYMENTS, KUBERAY
from spotladder.resources import CONFIG_MAPS, PRIORITY_CLASSES, SECRETS, SERVICE_ACCOUNTS, TIEREDJOBS, APIResource
from spotladder.workloads import names
from tests.kube.apiserver import ApiServer
from tests.kube.test_clusters import degraded, gone, tiers, two_clusters, up
from tests.kube.world import World, eventually, ray_spec, world


def needing(*entries: dict[str, Any], **pod: Any) -> dict[str, Any]:
    """A workload whose workers read these as their environment."""
    spec = ray_spec()
    group = spec["rayClusterSpec"]["workerGroupSpecs"][0]
    container = {"name": "ray", "image": "rayproject/ray:2.58.1", "envFrom": list(entries)}
    group["template"] = {"spec": {"containers": [container], **pod}}
    return {"ray": {"template": {"spec": spec}}}


SECRET, SETTINGS = {"secretRef": {"name": "bucket"}}, {"configMapRef": {"name": "settings"}}


async def make(there: World, kind: APIResource, name: str, **fields: Any) -> None:
    metadata = {"name": name, **({"namespace": there.namespace} if kind.namespaced else {})}
    await there.client.create(kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields})


def encoded(**values: str) -> dict[str, str]:
    return {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}


async def content(there: World, kind: APIResource, name: str) -> Any:
    try:
        return (await there.client.get(kind, name, there.namespace)).get("data")
    except NotFound:
        return None


async def ahead(here: World, status: str) -> str:
    found = await here.condition("Preflight")
    return (found.get("message") or found.get("reason", "")) if found.get("status") == status else ""


async def test_what_is_missing_at_home_holds_the_attempt_back_and_spends_nothing(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit(workload=needing(SECRET, priorityClassName="no-such"))
        await eventually(lambda: degraded(here, "ReferencesMissing"))
        said = f"namespace {here.namespace} lacks PriorityClass no-such, Secret bucket: create it there"
        assert (await here.condition("Degraded"))["message"] == said
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


async def test_what_a_later_tier_lacks_is_told_from_the_beginning(
    api_server: ApiServer, second_server: ApiServer
) -> None:
    async with (
        two_clusters(api_server, second_server) as (here, east),
        here.operator(sources={"east": east.source}) as session,
    ):
        await up(session)
        await make(here, SECRETS, "bucket")
        await here.submit(tiers=tiers(here, "spot-a", "spot-east"), workload=needing(SECRET))
        await here.run(1)  # the first tier has what it needs
        said = f"cluster east, namespace {here.namespace} lacks Secret bucket: create it there"
        assert await eventually(lambda: ahead(here, "False")) == said
        await make(east, SECRETS, "bucket")
        await here.pass_time(60)
        assert await eventually(lambda: ahead(here, "True")) == "AllFound"
        assert not await degraded(here, "ReferencesMissing")


async def test_copies_are_made_followed_and_removed(api_server: ApiServer, second_server: ApiServer) -> None:
    async with two_clusters(api_server, second_server) as (here, east), here.operator(sources={"east": east.source}):
        await make(here, SECRETS, "bucket", data=encoded(key="1"), type="spotladder.io/test")
        await make(here, CONFIG_MAPS, "settings", data={"a": "1"})
        await make(here, SERVICE_ACCOUNTS, "trainer")
        copies = [{"kind": "Secret", "name": "bucket"}, {"kind": "ConfigMap", "name": "settings"},
                  {"kind": "ServiceAccount", "name": "trainer"}]  # fmt: skip
        workload = needing(SECRET, SETTINGS, serviceAccountName="trainer")
        for name in ("digits", "letters"):
            await here.submit(name, tiers=tiers(here, "spot-east"), workload=workload, copies=copies)
            await eventually(lambda name=name: east.rayjob(1, name))
        assert await eventually(lambda: ahead(here, "True")) == "AllFound"
        made = await east.client.get(SECRETS, "bucket", east.namespace)
        assert made["type"] == "spotladder.io/test"
        assert made["data"] == encoded(key="1")
        assert made["metadata"]["labels"][names.COPY] == "true"
        await here.client.merge(SECRETS, "bucket", here.namespace, body={"data": encoded(key="2")})

        async def followed() -> bool:
            return bool(await content(east, SECRETS, "bucket") == encoded(key="2"))

        await here.pass_time(61)
        await eventually(followed)
        await here.delete()
        await here.pass_time(91)
        await eventually(lambda: gone(here))
        await here.pass_time(61)
        assert await content(east, SECRETS, "bucket") is not None  # the other job needs it
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


async def test_what_is_there_and_no_copy_is_left_alone(api_server: ApiServer, second_server: ApiServer) -> None:
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


async def test_versions_that_do_not_work_together_are_a_warning(api_server: ApiServer) -> None:
    """The API server tells its version, a Deployment that of KubeRay: the job is warned, and runs."""
    async with world(api_server) as here:
        release = {"name": KUBERAY, "namespace": "default", "labels": {"helm.sh/chart": "kuberay-operator-1.3.0"}}
        pod = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
        spec = {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": pod}
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": release, "spec": spec}
        await here.client.create(DEPLOYMENTS, body)
        try:
            async with here.operator():
                await here.submit()
                said = await eventually(lambda: ahead(here, "False"))
                assert said == "KubeRay 1.3.0 is not supported: choose one of 1.5, 1.6"
                assert (await here.condition("Preflight"))["reason"] == "VersionConflict"
                await eventually(lambda: here.rayjob(1))
        finally:
            await here.client.delete(DEPLOYMENTS, KUBERAY, "default")
