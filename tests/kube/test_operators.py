"""Other controllers that do not act on an attempt, and administrators who drain nodes or delete its objects."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from spotladder.checkpoints.log import CommitLog
from spotladder.resources import DISRUPTION_BUDGETS, NETWORK_POLICIES, NODES, PODS, APIResource
from spotladder.workloads import names
from tests.kube.apiserver import ApiServer
from tests.kube.world import WORKERS, KubeWorld, eventually, world

WEBHOOKS = APIResource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)


async def reason(kube: KubeWorld, kind: str, wanted: str) -> bool:
    return (await kube.condition(kind)).get("reason") == wanted


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
                await eventually(lambda: reason(kube, "Degraded", "OperatorSilent"))
                message = (await kube.condition("Degraded"))["message"]
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
            await eventually(lambda: reason(kube, "Degraded", "AsExpected"))


async def test_the_drain_of_a_node_ends_the_attempt_after_a_commit_without_a_failure(api_server: ApiServer) -> None:
    async with world(api_server, tiers=("on-demand",)) as kube, kube.operator():
        tier = {"name": "on-demand", "capacityTier": f"{kube.namespace}-on-demand", "maxFailures": 0}
        await kube.submit(tiers=[tier])
        await kube.run(1)
        await eventually(lambda: kube.has_phase("Running"))
        budget = await kube.client.get(DISRUPTION_BUDGETS, "digits-attempts", kube.namespace)
        assert budget["spec"]["minAvailable"] > 3, "the disruption budget must cover every pod"
        isolated = (await kube.client.get(NETWORK_POLICIES, "digits-attempts", kube.namespace))["spec"]["podSelector"]
        labels = [pod["metadata"]["labels"] for pod in await kube.pods(1)]
        assert all(isolated["matchLabels"].items() <= own.items() for own in labels), "the policy covers every pod"
        head = next(pod for pod in await kube.pods(1) if pod["metadata"]["labels"][names.ROLE] == "head")
        node = head["spec"]["nodeName"]
        await kube.client.merge(NODES, node, body={"spec": {"unschedulable": True}})
        await eventually(lambda: kube.has_phase("Draining"))
        running = await kube.condition("Running")
        assert running["reason"] == "Maintenance"
        assert f"node {node} is cordoned or drained: the job commits and moves off it" in running["message"]
        message = "Job entrypoint command failed with exit code 75"
        await kube.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed", message=message)
        await kube.collect(1)
        await eventually(lambda: kube.is_on("on-demand", 2))
        assert (await kube.status())["failures"] == 0
        assert "Maintenance" in await kube.events()


async def test_a_worker_on_a_cordoned_node_is_replaced_inside_the_attempt(api_server: ApiServer) -> None:
    async with world(api_server, tiers=("on-demand",)) as kube, kube.operator():
        tier = {"name": "on-demand", "capacityTier": f"{kube.namespace}-on-demand", "maxFailures": 0}
        await kube.submit(tiers=[tier])
        await kube.run(1)
        await kube.raycluster(1)
        await eventually(lambda: kube.has_phase("Running"))
        CommitLog(kube.bucket.store, "digits", namespace=kube.namespace).start(1, "", hands_over=True)
        going = next(pod for pod in await kube.pods(1) if pod["metadata"]["labels"][names.ROLE] == "worker")
        await kube.client.merge(NODES, going["spec"]["nodeName"], body={"spec": {"unschedulable": True}})

        async def asked() -> bool:
            return bool((await kube.worker_group(1))["replicas"] == WORKERS + 1)

        await eventually(asked)
        await kube.pass_time(120)
        assert await kube.has_phase("Running"), "it waits for the replacement longer than for a commit"
        await kube.pod(1, "worker", WORKERS)

        name = going["metadata"]["name"]

        async def named() -> bool:
            await kube.pass_time(1)
            group = await kube.worker_group(1)
            return bool(group["replicas"] == WORKERS and group["scaleStrategy"]["workersToDelete"] == [name])

        await eventually(named)
        await kube.client.delete(PODS, name, kube.namespace, grace=0)  # as KubeRay does
        await eventually(lambda: reason(kube, "Running", "HandedOver"))
        status = await kube.status()
        assert (status["attempt"], status["failures"], status["phase"]) == (1, 0, "Running")
        assert {"Replacing", "HandedOver", "Maintenance"} <= set(await kube.events())
