"""Attempts that cannot start: KubeRay rejects the RayJob, a webhook is down."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from spotladder.resources import APIResource
from tests.kube.apiserver import ApiServer
from tests.kube.conditions import message_of
from tests.kube.world import KubeWorld, eventually, ray_spec, world


async def test_a_rejected_rayjob_is_recreated_with_its_number_once_the_job_is_corrected(
    api_server: ApiServer,
) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit()
        first = await eventually(lambda: kube.rayjob(1))
        await kube.report(1, jobDeploymentStatus="ValidationFailed", reason="ValidationFailed", message="no such field")
        await message_of(kube, "Degraded", "True", "Blocked")
        await kube.pass_time(60)  # The invalid object is not created again repeatedly.
        assert (await kube.rayjob(1))["metadata"]["uid"] == first["metadata"]["uid"]
        await kube.patch(workload={"ray": {"template": {"spec": ray_spec(entrypoint="python right.py")}}})

        async def recreated() -> bool:
            return bool((await kube.rayjob(1))["spec"]["entrypoint"] == "python right.py")

        await eventually(recreated)
        await kube.run(1)
        await eventually(lambda: kube.has_phase("Running"))
        status = await kube.status()
        assert (status["attempt"], status["failures"]) == (1, 0)
        await message_of(kube, "Degraded", "False", "AsExpected")


WEBHOOKS = APIResource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)


@asynccontextmanager
async def webhook_without_server(kube: KubeWorld) -> AsyncIterator[None]:
    """A validating webhook for RayJobs whose server is down, like JobSet's while its controller is down."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": kube.namespace}}
    webhook = {
        "name": "vrayjob.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/validate"},
        "rules": [{"apiGroups": ["ray.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["rayjobs"]}],
        "namespaceSelector": selector,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    body = {"apiVersion": WEBHOOKS.api_version, "kind": WEBHOOKS.kind, "metadata": {"name": kube.namespace}}
    await kube.client.create(WEBHOOKS, {**body, "webhooks": [webhook]})
    try:
        yield
    finally:
        await kube.client.delete(WEBHOOKS, kube.namespace)


async def test_a_webhook_that_does_not_respond_exhausts_no_tier(api_server: ApiServer) -> None:
    async with world(api_server) as kube:
        async with webhook_without_server(kube):
            async with kube.operator():
                await kube.submit()
                message = await message_of(kube, "Degraded", "True", "OperatorSilent")
                assert message.startswith(f"RayJob {kube.namespace}/digits-a001 cannot be created: ")
                assert 'failed calling webhook "vrayjob.example.com"' in message
                for _ in range(3):
                    await kube.pass_time(900)  # The provisionTimeout is 600 s.
                assert await kube.is_on("spot-a", 1)
            await kube.clock.advance(900)
            async with kube.operator():  # a new controller without kept data
                await kube.pass_time(900)
                await kube.pass_time(1)
                status = await kube.status()
                assert (status["tier"], status["attempt"], status["failures"]) == ("spot-a", 1, 0)
                assert (await kube.condition("Degraded"))["reason"] == "OperatorSilent"
        async with kube.operator():
            await kube.run(1)
            await eventually(lambda: kube.has_phase("Running"))
            await message_of(kube, "Degraded", "False", "AsExpected")
