"""Suspending, resuming, draining, finishing and deleting."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spotladder.api.stored import FORCE_DELETE
from spotladder.checkpoints.log import CommitLog
from spotladder.operator.reconcile.attempt_removal import SHORT_GRACE
from spotladder.resources import NODES, PODS, TIEREDJOBS
from spotladder.workloads import names
from spotladder.workloads.rayjob.records import RAYJOBS
from spotladder.workloads.records import COMPLETION_INDEX, JOB_INDEX, REPLICATED_JOB
from tests.kube.apiserver import ApiServer
from tests.kube.world import KubeWorld, eventually, world


async def running(kube: KubeWorld, name: str = "digits") -> None:
    await kube.submit(name)
    await kube.run(1, name)
    await eventually(lambda: kube.has_phase("Running", name))


async def notices(kube: KubeWorld, attempt: int) -> list[dict[str, Any]]:
    found = [pod["metadata"].get("annotations", {}).get(names.NOTICE) for pod in await kube.pods(attempt)]
    return [json.loads(text) for text in found if text]


async def all_notified(kube: KubeWorld, attempt: int) -> list[dict[str, Any]]:
    async def complete() -> Any:
        found = await notices(kube, attempt)
        return len(found) == 3 and found

    return list(await eventually(complete))


async def test_suspend_drains_and_resume_starts_the_next_attempt(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await running(kube)
        await kube.patch(suspend=True)
        (notice, *others) = await all_notified(kube, 1)
        assert notice["kind"] == "drain"
        assert notice["reason"] == "SuspendRequested"
        assert notice["deadline"] > kube.clock.now()
        assert all(other == notice for other in others)
        await kube.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed",
                          message="Job entrypoint command failed with exit code 75")  # fmt: skip
        await eventually(lambda: _no_rayjobs(kube))
        await kube.collect(1)
        await eventually(lambda: kube.has_phase("Suspended"))
        await kube.pass_time(7200)
        assert await kube.rayjobs() == []
        await kube.patch(suspend=False)
        await eventually(lambda: kube.rayjob(2))
        assert await kube.is_on("spot-a", 2)


async def _no_rayjobs(kube: KubeWorld) -> bool:
    return await kube.rayjobs() == []


async def test_the_program_gets_the_notice_of_its_node(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await running(kube)
        worker = next(pod for pod in await kube.pods(1) if pod["metadata"]["labels"][names.ROLE] == "worker")
        taint = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
        await kube.set_node(worker["spec"]["nodeName"], ready="True", taints=[taint])
        (notice, *_) = await all_notified(kube, 1)
        assert notice["kind"] == "notice"
        assert notice["reason"] == "EvictionNotice"
        assert "EvictionNotice" in await kube.events()


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


async def test_delete_drains_the_attempt_and_then_removes_the_finalizer(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await running(kube)
        await kube.delete()
        (notice, *_) = await all_notified(kube, 1)
        assert notice["kind"] == "drain"
        assert not await kube.is_gone()
        await kube.pass_time(91)  # The program does not stop, and the grace period ends.
        await eventually(lambda: _no_rayjobs(kube))
        assert not await kube.is_gone()
        await kube.collect(1)
        await eventually(kube.is_gone)
        await kube.idle()  # The deletion reaches the controller later.
        assert not kube.metrics._jobs


async def test_a_job_can_be_deleted_before_its_first_pod(api_server: ApiServer) -> None:
    async with world(api_server) as kube:
        await kube.submit()
        async with kube.operator():
            await eventually(lambda: kube.rayjob(1))
            await kube.delete()
            await eventually(kube.is_gone)
            assert await kube.rayjobs() == []


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


@pytest.mark.parametrize("how", ["being deleted, node silent", "node silent", "node gone"])
async def test_pods_on_silent_and_deleted_nodes_are_removed(api_server: ApiServer, how: str) -> None:
    """Kubernetes itself takes a minute for pods of a deleted node, and five for pods of a silent one."""
    async with world(api_server) as kube, kube.operator():
        await running(kube)
        worker = next(pod for pod in await kube.pods(1) if pod["metadata"]["labels"][names.ROLE] == "worker")
        name, node = worker["metadata"]["name"], worker["spec"]["nodeName"]
        if how.startswith("being deleted"):
            await kube.client.delete(PODS, name, kube.namespace, grace=300)  # as the node controller does
        assert name in [pod["metadata"]["name"] for pod in await kube.pods(1)]
        if how.endswith("gone"):
            await kube.client.delete(NODES, node)
        else:
            await kube.set_node(node, ready="Unknown")

        async def pod_removed() -> bool:
            return name not in [pod["metadata"]["name"] for pod in await kube.pods(1)]

        async def counted() -> bool:
            return bool((await kube.status())["failures"] == 1)

        await eventually(pod_removed)
        await eventually(counted)


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


async def test_pods_of_a_node_in_graceful_shutdown_keep_their_grace_period(api_server: ApiServer) -> None:
    """The kubelet still ends these pods itself, and the program may be committing."""
    async with world(api_server) as kube, kube.operator():
        await running(kube)
        worker = next(pod for pod in await kube.pods(1) if pod["metadata"]["labels"][names.ROLE] == "worker")
        name = worker["metadata"]["name"]
        await kube.set_node(worker["spec"]["nodeName"], ready="False", message="node is shutting down")
        await eventually(lambda: kube.has_phase("Draining"))
        await kube.client.delete(PODS, name, kube.namespace, grace=300)
        await kube.idle()
        assert name in [pod["metadata"]["name"] for pod in await kube.pods(1)]


async def test_pods_of_a_removed_attempt_get_a_short_grace_period(api_server: ApiServer) -> None:
    """Otherwise Ray would hold its node for the pod's whole grace period, which is as long as the cloud's notice."""
    async with world(api_server) as kube, kube.operator():
        await running(kube)
        await kube.patch(suspend=True)
        await all_notified(kube, 1)
        await kube.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed",
                          message="Job entrypoint command failed with exit code 75")  # fmt: skip
        await eventually(lambda: _no_rayjobs(kube))

        async def shortened() -> bool:
            return {pod["metadata"].get("deletionGracePeriodSeconds") for pod in await kube.pods(1)} == {SHORT_GRACE}

        await eventually(shortened)


async def test_a_deleted_rayjob_is_a_failure_and_the_job_continues(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await running(kube)
        await kube.client.delete(RAYJOBS, "digits-a001", kube.namespace)
        await kube.collect(1)
        await eventually(lambda: kube.rayjob(2))
        assert await kube.is_on("spot-a", 2) or await kube.is_on("spot-b", 2)


async def test_delete_of_an_invalid_job_removes_its_attempt(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await running(kube)
        await kube.patch(policy="no-such")
        await eventually(lambda: _valid(kube, "False"))
        assert await kube.rayjobs() == ["digits-a001"]  # An invalid spec does not end the running attempt.
        await kube.delete()
        await eventually(lambda: _no_rayjobs(kube))
        await kube.collect(1)
        await kube.clock.advance(5)
        await eventually(kube.is_gone)


async def _valid(kube: KubeWorld, status: str) -> bool:
    return (await kube.condition("Valid")).get("status") == status
