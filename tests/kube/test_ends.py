"""Finishing, deleting, and the pods of an attempt that ends."""

from __future__ import annotations

from spotladder.api.stored import FORCE_DELETE
from spotladder.checkpoints.log import CommitLog
from spotladder.operator.reconcile.attempt_removal import SHORT_GRACE
from spotladder.resources import PODS, TIEREDJOBS
from spotladder.workloads import names
from spotladder.workloads.records import COMPLETION_INDEX, JOB_INDEX, REPLICATED_JOB
from tests.kube.apiserver import ApiServer
from tests.kube.world import KubeWorld, eventually, world


async def running(kube: KubeWorld, name: str = "digits") -> None:
    await kube.submit(name)
    await kube.run(1, name)
    await eventually(lambda: kube.has_phase("Running", name))


async def _no_rayjobs(kube: KubeWorld) -> bool:
    return await kube.rayjobs() == []


async def test_the_outcome_is_appended_to_the_log_once(api_server: ApiServer) -> None:
    async with world(api_server) as kube:
        async with kube.operator():
            await running(kube)
            kube.bucket.commit(kube.namespace, "digits", attempt=1, step=100)
            await kube.report(1, jobDeploymentStatus="Complete", jobStatus="SUCCEEDED")
            await eventually(lambda: _checkpointing(kube, "Ended"))
            await kube.collect(1)
            await kube.idle()
        assert kube.bucket.ended == [("digits", "Succeeded")]
        async with kube.operator():
            await kube.idle()
        assert kube.bucket.ended == [("digits", "Succeeded")]
        end = CommitLog(kube.bucket.store, "digits").read().end
        assert end is not None
        assert end.outcome == "Succeeded"


async def _checkpointing(kube: KubeWorld, reason: str) -> bool:
    return (await kube.condition("Checkpointing")).get("reason") == reason


async def test_a_deleted_job_reports_why_it_waits_and_can_be_forced(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await running(kube)
        pods = [pod["metadata"]["name"] for pod in await kube.pods(1)]
        for pod in pods:
            await kube.client.merge(PODS, pod, kube.namespace, body={"metadata": {"finalizers": ["test/stuck"]}})
        try:
            await kube.delete()
            for _ in range(12):
                await kube.pass_time(20)
            condition = await kube.condition("Degraded")
            assert condition["reason"] == "CleanupBlocked"
            assert FORCE_DELETE in condition["message"]
            body = {"metadata": {"annotations": {FORCE_DELETE: "true"}}}
            await kube.client.merge(TIEREDJOBS, "digits", kube.namespace, body=body)
            await eventually(kube.is_gone)
            await kube.idle()  # The deletion reaches the controller later.
            assert not kube.metrics._jobs
        finally:
            for pod in pods:
                await kube.client.merge(PODS, pod, kube.namespace, body={"metadata": {"finalizers": []}})


async def test_a_recreated_job_does_not_adopt_the_attempt_of_the_first(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await running(kube)
        await kube.delete()
        body = {"metadata": {"annotations": {FORCE_DELETE: "true"}}}
        await kube.client.merge(TIEREDJOBS, "digits", kube.namespace, body=body)
        await eventually(kube.is_gone)
        assert await kube.rayjobs() == ["digits-a001"]
        await kube.submit()
        await eventually(lambda: kube.rayjob(2))
        await eventually(lambda: _only(kube, "digits-a002"))


async def _only(kube: KubeWorld, name: str) -> bool:
    return await kube.rayjobs() == [name]


async def test_a_pod_that_is_being_deleted_on_a_silent_node_is_removed(api_server: ApiServer) -> None:
    """Kubernetes itself takes five minutes."""
    async with world(api_server) as kube, kube.operator():
        await running(kube)
        worker = next(pod for pod in await kube.pods(1) if pod["metadata"]["labels"][names.ROLE] == "worker")
        name, node = worker["metadata"]["name"], worker["spec"]["nodeName"]
        await kube.client.delete(PODS, name, kube.namespace, grace=300)  # as the node controller does
        assert name in [pod["metadata"]["name"] for pod in await kube.pods(1)]
        await kube.set_node(node, ready="Unknown")

        async def removed_and_counted() -> bool:
            left = [pod["metadata"]["name"] for pod in await kube.pods(1)]
            return name not in left and (await kube.status())["failures"] == 1

        await eventually(removed_and_counted)


async def test_a_pod_of_a_job_on_a_silent_node_is_marked_failed(api_server: ApiServer) -> None:
    """A Job keeps a deleted pod until its phase is final, and creates no replacement before."""
    async with world(api_server) as kube, kube.operator():
        await running(kube)
        worker = next(pod for pod in await kube.pods(1) if pod["metadata"]["labels"][names.ROLE] == "worker")
        name = worker["metadata"]["name"]
        labels = {REPLICATED_JOB: "workers", JOB_INDEX: "0", COMPLETION_INDEX: "0"}
        held = {"metadata": {"labels": labels, "finalizers": ["batch.kubernetes.io/job-tracking"]}}
        await kube.client.merge(PODS, name, kube.namespace, body=held)
        try:
            await kube.set_node(worker["spec"]["nodeName"], ready="Unknown")

            async def failed() -> bool:
                pod = await kube.client.get(PODS, name, kube.namespace)
                return pod["status"]["phase"] == "Failed" and "deletionTimestamp" in pod["metadata"]

            await eventually(failed)
        finally:
            await kube.client.merge(PODS, name, kube.namespace, body={"metadata": {"finalizers": []}})


async def test_pods_of_a_removed_attempt_get_a_short_grace_period(api_server: ApiServer) -> None:
    """Otherwise Ray would hold its node for the pod's whole grace period, which is as long as the cloud's notice."""
    async with world(api_server) as kube, kube.operator():
        await running(kube)
        await kube.patch(suspend=True)
        await eventually(lambda: kube.has_phase("Draining"))
        await kube.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed",
                          message="Job entrypoint command failed with exit code 75")  # fmt: skip
        await eventually(lambda: _no_rayjobs(kube))

        async def shortened() -> bool:
            return {pod["metadata"].get("deletionGracePeriodSeconds") for pod in await kube.pods(1)} == {SHORT_GRACE}

        await eventually(shortened)
