"""Other controllers that do not act on an attempt, and administrators who drain nodes or delete its objects."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from spotladder.checkpoints.log import CommitLog
from spotladder.resources import DISRUPTION_BUDGETS, NETWORK_POLICIES, NODES, PODS, APIResource
from spotladder.workloads import names
from spotladder.workloads.operators import SILENCE
from spotladder.workloads.rayjob.records import RAYCLUSTERS
from tests.kube.apiserver import ApiServer
from tests.kube.world import WORKERS, KubeWorld, eventually, world

WEBHOOKS = APIResource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)


async def reason(here: KubeWorld, kind: str, wanted: str) -> bool:
    return (await here.condition(kind)).get("reason") == wanted


async def test_a_silent_kuberay_exhausts_no_tier(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit()
        await eventually(lambda: here.rayjob(1))
        await here.pass_time(SILENCE + 1)
        await eventually(lambda: reason(here, "Degraded", "OperatorSilent"))
        assert "KubeRay does not act: RayJob digits-a001 has no status" in (await here.condition("Degraded"))["message"]
        for _ in range(4):
            await here.pass_time(900)  # The provisionTimeout is 600 s.
        status = await here.status()
        assert (status["tier"], status["attempt"], status["failures"]) == ("spot-a", 1, 0)
        await here.run(1)
        await eventually(lambda: here.has_phase("Running"))
        await eventually(lambda: reason(here, "Degraded", "AsExpected"))


@asynccontextmanager
async def webhook_without_server(here: KubeWorld) -> AsyncIterator[None]:
    """A validating webhook for RayJobs whose server is down, like JobSet's while its controller is down."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": here.namespace}}
    webhook = {
        "name": "vrayjob.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/validate"},
        "rules": [{"apiGroups": ["ray.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["rayjobs"]}],
        "namespaceSelector": selector,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    body = {"apiVersion": WEBHOOKS.api_version, "kind": WEBHOOKS.kind, "metadata": {"name": here.namespace}}
    await here.client.create(WEBHOOKS, {**body, "webhooks": [webhook]})
    try:
        yield
    finally:
        await here.client.delete(WEBHOOKS, here.namespace)


async def test_a_webhook_that_does_not_respond_exhausts_no_tier(api_server: ApiServer) -> None:
    async with world(api_server) as here:
        async with webhook_without_server(here):
            async with here.operator():
                await here.submit()
                await eventually(lambda: reason(here, "Degraded", "OperatorSilent"))
                message = (await here.condition("Degraded"))["message"]
                assert message.startswith(f"RayJob {here.namespace}/digits-a001 cannot be created: ")
                assert 'failed calling webhook "vrayjob.example.com"' in message
                for _ in range(3):
                    await here.pass_time(900)  # The provisionTimeout is 600 s.
                assert await here.is_on("spot-a", 1)
            await here.clock.advance(900)
            async with here.operator():  # a new controller without kept data
                await here.pass_time(900)
                await here.pass_time(1)
                status = await here.status()
                assert (status["tier"], status["attempt"], status["failures"]) == ("spot-a", 1, 0)
                assert (await here.condition("Degraded"))["reason"] == "OperatorSilent"
        async with here.operator():
            await here.run(1)
            await eventually(lambda: here.has_phase("Running"))
            await eventually(lambda: reason(here, "Degraded", "AsExpected"))


async def test_a_silent_scheduler_exhausts_no_tier(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit()
        await eventually(lambda: here.rayjob(1))
        await here.report(1, jobDeploymentStatus="Initializing")
        await here.pod(1, "head", 0)
        for index in range(2):
            pod = await here.pod(1, "worker", index, run=False)
            await here.set_pod(pod, conditions=[])
        await here.pass_time(SILENCE + 1)
        await eventually(lambda: reason(here, "Degraded", "OperatorSilent"))
        assert "the scheduler does not act" in (await here.condition("Degraded"))["message"]
        for _ in range(4):
            await here.pass_time(900)
        assert await here.is_on("spot-a", 1)


async def test_the_drain_of_a_node_ends_the_attempt_after_a_commit_without_a_failure(api_server: ApiServer) -> None:
    async with world(api_server, tiers=("on-demand",)) as here, here.operator():
        tier = {"name": "on-demand", "capacityTier": f"{here.namespace}-on-demand", "maxFailures": 0}
        await here.submit(tiers=[tier])
        await here.run(1)
        await eventually(lambda: here.has_phase("Running"))
        budget = await here.client.get(DISRUPTION_BUDGETS, "digits-a001", here.namespace)
        assert budget["spec"]["minAvailable"] == 3, "the disruption budget must cover every pod"
        isolated = (await here.client.get(NETWORK_POLICIES, "digits-a001", here.namespace))["spec"]["podSelector"]
        labels = [pod["metadata"]["labels"] for pod in await here.pods(1)]
        assert all(isolated["matchLabels"].items() <= own.items() for own in labels), "the policy covers every pod"
        head = next(pod for pod in await here.pods(1) if pod["metadata"]["labels"][names.ROLE] == "head")
        node = head["spec"]["nodeName"]
        await here.client.merge(NODES, node, body={"spec": {"unschedulable": True}})
        await eventually(lambda: here.has_phase("Draining"))
        running = await here.condition("Running")
        assert running["reason"] == "Maintenance"
        assert f"node {node} is cordoned or drained: the job commits and moves off it" in running["message"]
        message = "Job entrypoint command failed with exit code 75"
        await here.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed", message=message)
        await here.collect(1)
        await eventually(lambda: here.is_on("on-demand", 2))
        assert (await here.status())["failures"] == 0
        assert "Maintenance" in await here.events()


async def test_a_worker_on_a_cordoned_node_is_replaced_inside_the_attempt(api_server: ApiServer) -> None:
    async with world(api_server, tiers=("on-demand",)) as here, here.operator():
        tier = {"name": "on-demand", "capacityTier": f"{here.namespace}-on-demand", "maxFailures": 0}
        await here.submit(tiers=[tier])
        await here.run(1)
        await here.raycluster(1)
        await eventually(lambda: here.has_phase("Running"))
        CommitLog(here.bucket.store, "digits", namespace=here.namespace).start(1, "", hands_over=True)
        going = next(pod for pod in await here.pods(1) if pod["metadata"]["labels"][names.ROLE] == "worker")
        await here.client.merge(NODES, going["spec"]["nodeName"], body={"spec": {"unschedulable": True}})

        async def asked() -> bool:
            return bool((await here.worker_group(1))["replicas"] == WORKERS + 1)

        await eventually(asked)
        await here.pass_time(120)
        assert await here.has_phase("Running"), "it waits for the replacement longer than for a commit"
        await here.pod(1, "worker", WORKERS)

        name = going["metadata"]["name"]

        async def named() -> bool:
            await here.pass_time(1)
            group = await here.worker_group(1)
            return bool(group["replicas"] == WORKERS and group["scaleStrategy"]["workersToDelete"] == [name])

        await eventually(named)
        await here.client.delete(PODS, name, here.namespace, grace=0)  # as KubeRay does
        await eventually(lambda: reason(here, "Running", "HandedOver"))
        status = await here.status()
        assert (status["attempt"], status["failures"], status["phase"]) == (1, 0, "Running")
        assert {"Replacing", "HandedOver", "Maintenance"} <= set(await here.events())


async def test_a_deleted_raycluster_is_one_failure(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit()
        rayjob = await eventually(lambda: here.rayjob(1))
        labels = rayjob["metadata"]["labels"]
        metadata = {"name": "digits-a001-x", "namespace": here.namespace, "labels": labels}
        spec = rayjob["spec"]["rayClusterSpec"]
        body = {"apiVersion": RAYCLUSTERS.api_version, "kind": RAYCLUSTERS.kind, "metadata": metadata, "spec": spec}
        await here.client.create(RAYCLUSTERS, body)
        await here.run(1)
        await here.report(1, rayClusterName="digits-a001-x")
        await eventually(lambda: here.has_phase("Running"))
        await here.client.delete(RAYCLUSTERS, "digits-a001-x", here.namespace)
        for pod in await here.pods(1):
            await here.client.delete(PODS, pod["metadata"]["name"], here.namespace, grace=0)
        await eventually(lambda: here.is_on("spot-a", 2))
        assert (await here.status())["failures"] == 1
        assert "HeadLost" in await here.events()
