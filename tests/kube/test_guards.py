"""Guards and tokens of running attempts that someone deletes."""

from __future__ import annotations

import pytest

from spotladder.clusters.transport import Object
from spotladder.resources import DISRUPTION_BUDGETS, NETWORK_POLICIES, PODS, SECRETS, APIResource
from spotladder.workloads import names
from spotladder.workloads.rayjob.authentication import KEY, TOKEN
from spotladder.workloads.records import TOKEN_VARIABLE
from tests.kube.apiserver import ApiServer
from tests.kube.world import KubeWorld, eventually, world

GUARDS = (DISRUPTION_BUDGETS, NETWORK_POLICIES)


async def guard(kube: KubeWorld, kind: APIResource, name: str = "digits-attempts") -> Object:
    return await kube.client.get(kind, name, kube.namespace)


async def is_new(kube: KubeWorld, kind: APIResource, before: Object) -> bool:
    return bool((await guard(kube, kind, before["metadata"]["name"]))["metadata"]["uid"] != before["metadata"]["uid"])


async def names_of(kube: KubeWorld, kind: APIResource) -> list[str]:
    return sorted([
        found["metadata"]["name"]
        async for page in kube.client.pages(kind, kube.namespace)
        for found in page.items
    ])  # fmt: skip


async def test_deleted_guards_of_a_running_attempt_are_created_again(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit()
        await kube.begin(1, "spot-a")
        for kind in GUARDS:
            before = await guard(kube, kind)
            began = kube.clock.ticks()
            await kube.client.delete(kind, "digits-attempts", kube.namespace)
            await eventually(lambda kind=kind, before=before: is_new(kube, kind, before))  # type: ignore[misc]
            assert kube.clock.ticks() - began < 5
            after = await guard(kube, kind)
            for part in ("labels", "ownerReferences"):
                assert after["metadata"][part] == before["metadata"][part]
            assert after["spec"] == before["spec"]


async def test_the_guards_of_a_job_that_is_being_deleted_are_not_created_again(api_server: ApiServer) -> None:
    """Kubernetes may delete them before the job has stopped."""
    async with world(api_server) as kube, kube.operator():
        await kube.submit()
        await kube.begin(1, "spot-a")
        await kube.delete()
        await eventually(lambda: kube.has_phase("Draining"))
        for kind in GUARDS:
            await kube.client.delete(kind, "digits-attempts", kube.namespace)
        await kube.pass_time(3)
        assert [await names_of(kube, kind) for kind in GUARDS] == [[], []]


@pytest.mark.parametrize("used", [True, False], ids=["used", "unused"])
async def test_a_deleted_token_is_created_again_while_pods_use_it(api_server: ApiServer, used: bool) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit()
        await kube.begin(1, "spot-a")
        await kube.program_starts(1)
        if used:
            await with_token(kube)
        before = await guard(kube, SECRETS, TOKEN)
        await kube.client.delete(SECRETS, TOKEN, kube.namespace)
        if used:
            await eventually(lambda: is_new(kube, SECRETS, before))
        else:
            await kube.pass_time(30)
            assert TOKEN not in await names_of(kube, SECRETS)
            await kube.fall_back()
            assert await is_new(kube, SECRETS, before), "the next attempt needs it"


async def with_token(kube: KubeWorld) -> None:
    """A head whose container has the token, as KubeRay creates it."""
    (head,) = (pod for pod in await kube.pods(1) if pod["metadata"]["labels"][names.ROLE] == "head")
    source = {"secretKeyRef": {"name": TOKEN, "key": KEY}}
    metadata = {"name": "with-token", "namespace": kube.namespace, "labels": head["metadata"]["labels"]}
    container = {"name": "ray", "image": "ray", "env": [{"name": TOKEN_VARIABLE, "valueFrom": source}]}
    spec = {"containers": [container], "nodeName": head["spec"]["nodeName"]}
    await kube.client.delete(PODS, head["metadata"]["name"], kube.namespace, grace=0)
    await kube.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]
    await kube.set_pod("with-token", phase="Running", conditions=conditions)


async def test_guards_that_are_deleted_again_and_again_cost_a_bounded_number_of_writes(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit(stallTimeout="1h")
        await kube.begin(1, "spot-a")
        found = set()
        for _ in range(60):
            for kind in GUARDS:
                if "digits-attempts" in await names_of(kube, kind):
                    found.add((await guard(kube, kind))["metadata"]["uid"])
                    await kube.client.delete(kind, "digits-attempts", kube.namespace)
            await kube.pass_time(1)
        assert 4 * len(GUARDS) <= len(found) <= 8 * len(GUARDS), "at once, and after pauses of 10 s"
        await kube.pass_time(30)
        for kind in GUARDS:
            assert await names_of(kube, kind) == ["digits-attempts"]
