"""Suspending, resuming, draining, finishing and deleting."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from spotladder.checkpoints.log import CommitLog
from spotladder.clusters import transport
from spotladder.clusters.errors import NotFound
from spotladder.custom_resources import FORCE_DELETE
from spotladder.errors import StoreUnavailable
from spotladder.operator.reconcile.apply import SHORT_GRACE
from spotladder.resources import NODES, PODS, TIEREDJOBS
from spotladder.workloads import names
from spotladder.workloads.rayjob.records import RAYJOBS
from spotladder.workloads.records import COMPLETION_INDEX, JOB_INDEX, REPLICATED_JOB
from tests.kube.apiserver import ApiServer
from tests.kube.world import World, eventually, world


async def running(here: World, name: str = "digits") -> None:
    await here.submit(name)
    await here.run(1, name)
    await eventually(lambda: here.has_phase("Running", name))


async def gone(here: World, name: str = "digits") -> bool:
    try:
        await here.job(name)
    except NotFound:
        return True
    return False


async def notices(here: World, attempt: int) -> list[dict[str, Any]]:
    found = [pod["metadata"].get("annotations", {}).get(names.NOTICE) for pod in await here.pods(attempt)]
    return [json.loads(text) for text in found if text]


async def all_told(here: World, attempt: int) -> list[dict[str, Any]]:
    async def told() -> Any:
        found = await notices(here, attempt)
        return len(found) == 3 and found

    return list(await eventually(told))


async def test_suspend_drains_and_resume_goes_on_with_the_next_attempt(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await running(here)
        await here.patch(suspend=True)
        (told, *others) = await all_told(here, 1)
        assert told["kind"] == "drain"
        assert told["reason"] == "SuspendRequested"
        assert told["deadline"] > here.clock.now()
        assert all(other == told for other in others)
        await here.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed",
                          message="Job entrypoint command failed with exit code 75")  # fmt: skip
        await eventually(lambda: _no_rayjobs(here))
        await here.collect(1)
        await eventually(lambda: here.has_phase("Suspended"))
        await here.pass_time(7200)
        assert await here.rayjobs() == []
        await here.patch(suspend=False)
        await eventually(lambda: here.rayjob(2))
        assert await here.is_on("spot-a", 2)


async def _no_rayjobs(here: World) -> bool:
    return await here.rayjobs() == []


async def test_a_node_that_will_be_reclaimed_is_told_to_the_program(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await running(here)
        worker = next(pod for pod in await here.pods(1) if pod["metadata"]["labels"][names.ROLE] == "worker")
        taint = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
        await here.set_node(worker["spec"]["nodeName"], ready="True", taints=[taint])
        (told, *_) = await all_told(here, 1)
        assert told["kind"] == "notice"
        assert told["reason"] == "EvictionNotice"
        assert "EvictionNotice" in await here.events()


@pytest.mark.parametrize("says_when", [False, True])
async def test_a_program_is_told_how_long_its_node_will_last(api_server: ApiServer, says_when: bool) -> None:
    """As long as the tier's notices last, unless the cloud says when: AKS does, in the message of a condition."""
    async with world(api_server, tiers=()) as here, here.operator():
        await here.capacity("spot", notice="30s")
        await here.submit(tiers=[{"name": "spot", "capacityTier": f"{here.namespace}-spot", "maxFailures": 3}])
        await here.run(1)
        await eventually(lambda: here.has_phase("Running"))
        worker = next(pod for pod in await here.pods(1) if pod["metadata"]["labels"][names.ROLE] == "worker")
        node, began = worker["spec"]["nodeName"], here.clock.now()
        if says_when:
            await here.client.merge(NODES, node, body=preempted_at(began + 13), subresource="status")
        else:
            taint = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
            await here.set_node(node, ready="True", taints=[taint])
        (told, *_) = await all_told(here, 1)
        assert told["deadline"] - began == pytest.approx(12.5 if says_when else 31.0, abs=1.5)


@pytest.mark.parametrize("ahead", [-3600.0, 3600.0])
async def test_a_notice_is_dated_by_the_clusters_clock(
    api_server: ApiServer, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    """The cluster's clock is an hour off this machine's: the time left to commit is the same, and it is told."""
    monkeypatch.setattr(transport, "time", SimpleNamespace(time=lambda: time.time() - ahead))
    async with world(api_server, tiers=()) as here, here.operator():
        await here.capacity("spot")
        await here.submit(tiers=[{"name": "spot", "capacityTier": f"{here.namespace}-spot", "maxFailures": 3}])
        await here.run(1)
        await eventually(lambda: here.has_phase("Running"))
        worker = next(pod for pod in await here.pods(1) if pod["metadata"]["labels"][names.ROLE] == "worker")
        began = here.clock.now()
        gone = preempted_at(began + 13 + ahead)
        await here.client.merge(NODES, worker["spec"]["nodeName"], body=gone, subresource="status")
        (told, *_) = await all_told(here, 1)
        assert told["deadline"] - began == pytest.approx(12.5, abs=2.5)
        skewed = await here.condition("Degraded")
        assert skewed["reason"] == "ClockSkewed"
        assert f"60 minutes {'ahead of' if ahead > 0 else 'behind'} the controller's" in skewed["message"]


def preempted_at(at: float) -> dict[str, Any]:
    """A Node's status, as AKS announces that it takes the machine."""
    message = f"Preempt Scheduled: {datetime.fromtimestamp(int(at), UTC):%a, %d %b %Y %H:%M:%S} GMT. EventId: 2B1A"
    gone = {"type": "PreemptionScheduled", "status": "True", "reason": "SpotEvictionIncoming", "message": message}
    return {"status": {"conditions": [{"type": "Ready", "status": "True"}, gone]}}


async def test_the_outcome_is_noted_in_the_log_once(api_server: ApiServer) -> None:
    async with world(api_server) as here:
        async with here.operator():
            await running(here)
            here.bucket.commit(here.namespace, "digits", attempt=1, step=100)
            await here.report(1, jobDeploymentStatus="Complete", jobStatus="SUCCEEDED")
            await eventually(lambda: _checkpointing(here, "Ended"))
            await here.collect(1)
            await here.quiet()
        assert here.bucket.ended == [("digits", "Succeeded")]
        async with here.operator():
            await here.quiet()
        assert here.bucket.ended == [("digits", "Succeeded")]
        end = CommitLog(here.bucket.store, "digits").read().end
        assert end is not None
        assert end.outcome == "Succeeded"


async def test_an_end_is_told_with_the_last_commit(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await running(here)
        await here.quiet()  # the log was looked at, and is not due again for long
        for step in range(60, 101, 10):
            here.bucket.commit(here.namespace, "digits", attempt=1, step=step)
        await here.report(1, jobDeploymentStatus="Complete", jobStatus="SUCCEEDED")
        await eventually(lambda: here.has_phase("Succeeded"))
        await eventually(lambda: _checkpointing(here, "Ended"))
        assert [commit.step for commit in CommitLog(here.bucket.store, "digits").commits()] == [80, 90, 100]
        status = await here.status()
        assert status["progress"]["text"] == "100/100"
        assert status["attempts"][-1]["endStep"] == 100


async def _checkpointing(here: World, reason: str) -> bool:
    return (await here.condition("Checkpointing")).get("reason") == reason


async def test_a_job_whose_checkpoints_are_gone_does_not_begin_at_step_0(api_server: ApiServer) -> None:
    async with world(api_server) as here:
        async with here.operator():
            await running(here)
            here.bucket.commit(here.namespace, "digits", attempt=1, step=40)
            await here.patch(suspend=True)
            await all_told(here, 1)
            await here.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed",
                              message="Job entrypoint command failed with exit code 75")  # fmt: skip
            await eventually(lambda: _no_rayjobs(here))
            await here.collect(1)
            await eventually(lambda: here.has_phase("Suspended"))
        here.bucket.store.objects.clear()
        async with here.operator():
            await here.patch(suspend=False)

            async def told() -> bool:
                condition = await here.condition("Degraded")
                return condition.get("reason") == "CheckpointsGone" and "step 40 was committed" in condition["message"]

            await eventually(told)
            assert await here.rayjobs() == []


async def test_credentials_that_the_bucket_refuses_are_no_failure(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await running(here)
        await here.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed",
                          message="Job entrypoint command failed with exit code 77")  # fmt: skip
        await eventually(lambda: _no_rayjobs(here))
        await here.collect(1)

        async def told() -> bool:
            return (await here.condition("Degraded")).get("reason") == "AccessDenied"

        await eventually(told)
        assert await here.rayjobs() == []
        await here.pass_time(15)
        await eventually(lambda: here.rayjob(2))
        status = await here.status()
        assert (status["tier"], status.get("failures", 0)) == ("spot-a", 0)


async def test_a_bucket_that_does_not_take_the_outcome_is_asked_again(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await running(here)
        here.bucket.broken = StoreUnavailable("s3://bucket: down")
        await here.report(1, jobDeploymentStatus="Complete", jobStatus="SUCCEEDED")
        await eventually(lambda: _checkpointing(here, "CheckpointsUnreadable"))
        assert await here.has_phase("Succeeded")
        here.bucket.broken = None
        await here.clock.advance(61)
        await eventually(lambda: _checkpointing(here, "Ended"))


async def test_delete_drains_removes_and_lets_go(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await running(here)
        await here.delete()
        (told, *_) = await all_told(here, 1)
        assert told["kind"] == "drain"
        assert not await gone(here)
        await here.pass_time(91)  # it does not stop by itself: grace is over
        await eventually(lambda: _no_rayjobs(here))
        assert not await gone(here)
        await here.collect(1)
        await eventually(lambda: gone(here))
        await here.quiet()  # the API server lets it go before the operator has heard so
        assert not here.metrics._jobs


async def test_delete_before_anything_began(api_server: ApiServer) -> None:
    async with world(api_server) as here:
        await here.submit()
        async with here.operator():
            await eventually(lambda: here.rayjob(1))
            await here.delete()
            await eventually(lambda: gone(here))
            assert await here.rayjobs() == []


async def test_delete_of_an_invalid_job_removes_what_there_is(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await running(here)
        await here.patch(policy={"name": "no-such"})
        await eventually(lambda: _valid(here, "False"))
        assert await here.rayjobs() == ["digits-a001"]  # what runs is not ended by a mistake
        await here.delete()
        await eventually(lambda: _no_rayjobs(here))
        await here.collect(1)
        await here.clock.advance(5)
        await eventually(lambda: gone(here))


async def _valid(here: World, status: str) -> bool:
    return (await here.condition("Valid")).get("status") == status


async def test_a_deleted_job_says_what_it_waits_for_and_can_be_forced(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await running(here)
        pods = [pod["metadata"]["name"] for pod in await here.pods(1)]
        for pod in pods:
            await here.client.merge(PODS, pod, here.namespace, body={"metadata": {"finalizers": ["test/stuck"]}})
        try:
            await here.delete()
            for _ in range(12):
                await here.pass_time(20)
            condition = await here.condition("Degraded")
            assert condition["reason"] == "CleanupBlocked"
            assert FORCE_DELETE in condition["message"]
            body = {"metadata": {"annotations": {FORCE_DELETE: "true"}}}
            await here.client.merge(TIEREDJOBS, "digits", here.namespace, body=body)
            await eventually(lambda: gone(here))
        finally:
            for pod in pods:
                await here.client.merge(PODS, pod, here.namespace, body={"metadata": {"finalizers": []}})


async def test_a_job_made_again_under_its_name_does_not_take_over_what_the_first_left(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await running(here)
        await here.delete()
        body = {"metadata": {"annotations": {FORCE_DELETE: "true"}}}
        await here.client.merge(TIEREDJOBS, "digits", here.namespace, body=body)
        await eventually(lambda: gone(here))
        assert await here.rayjobs() == ["digits-a001"]
        await here.submit()
        await eventually(lambda: here.rayjob(2))
        await eventually(lambda: _only(here, "digits-a002"))


async def _only(here: World, name: str) -> bool:
    return await here.rayjobs() == [name]


@pytest.mark.parametrize("how", ["being deleted, node silent", "node silent", "node gone"])
async def test_pods_on_a_silent_node_are_let_go_of(api_server: ApiServer, how: str) -> None:
    """At once: Kubernetes takes a minute for pods of a node that is gone, and five for those of a silent one."""
    async with world(api_server) as here, here.operator():
        await running(here)
        worker = next(pod for pod in await here.pods(1) if pod["metadata"]["labels"][names.ROLE] == "worker")
        name, node = worker["metadata"]["name"], worker["spec"]["nodeName"]
        if how.startswith("being deleted"):
            await here.client.delete(PODS, name, here.namespace, grace=300)  # what the node controller does
        assert name in [pod["metadata"]["name"] for pod in await here.pods(1)]
        if how.endswith("gone"):
            await here.client.delete(NODES, node)
        else:
            await here.set_node(node, ready="Unknown")

        async def let_go() -> bool:
            return name not in [pod["metadata"]["name"] for pod in await here.pods(1)]

        async def counted() -> bool:
            return (await here.status())["failures"] == 1

        await eventually(let_go)
        await eventually(counted)


async def test_a_pod_of_a_job_on_a_silent_node_has_failed(api_server: ApiServer) -> None:
    """A Job keeps its pod, though deleted, until it has ended, and makes none in its place."""
    async with world(api_server) as here, here.operator():
        await running(here)
        worker = next(pod for pod in await here.pods(1) if pod["metadata"]["labels"][names.ROLE] == "worker")
        name = worker["metadata"]["name"]
        labels = {REPLICATED_JOB: "workers", JOB_INDEX: "0", COMPLETION_INDEX: "0"}
        held = {"metadata": {"labels": labels, "finalizers": ["batch.kubernetes.io/job-tracking"]}}
        await here.client.merge(PODS, name, here.namespace, body=held)
        try:
            await here.set_node(worker["spec"]["nodeName"], ready="Unknown")

            async def failed() -> bool:
                pod = await here.client.get(PODS, name, here.namespace)
                return pod["status"]["phase"] == "Failed" and "deletionTimestamp" in pod["metadata"]

            await eventually(failed)
        finally:
            await here.client.merge(PODS, name, here.namespace, body={"metadata": {"finalizers": []}})


async def test_pods_of_a_node_that_shuts_down_in_good_order_keep_their_grace(api_server: ApiServer) -> None:
    """Its kubelet still answers, and ends them itself: they may be committing."""
    async with world(api_server) as here, here.operator():
        await running(here)
        worker = next(pod for pod in await here.pods(1) if pod["metadata"]["labels"][names.ROLE] == "worker")
        name = worker["metadata"]["name"]
        await here.set_node(worker["spec"]["nodeName"], ready="False", message="node is shutting down")
        await eventually(lambda: here.has_phase("Draining"))
        await here.client.delete(PODS, name, here.namespace, grace=300)
        await here.quiet()
        assert name in [pod["metadata"]["name"] for pod in await here.pods(1)]


async def test_pods_of_an_attempt_that_is_removed_get_seconds_to_end(api_server: ApiServer) -> None:
    """Ray would hold its node for as long as the pod's grace, which is as long as the cloud's notice."""
    async with world(api_server) as here, here.operator():
        await running(here)
        await here.patch(suspend=True)
        await all_told(here, 1)
        await here.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed",
                          message="Job entrypoint command failed with exit code 75")  # fmt: skip
        await eventually(lambda: _no_rayjobs(here))

        async def hastened() -> bool:
            return {pod["metadata"].get("deletionGracePeriodSeconds") for pod in await here.pods(1)} == {SHORT_GRACE}

        await eventually(hastened)


async def test_rayjob_removed_by_hand_is_a_failure_and_the_job_goes_on(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await running(here)
        await here.client.delete(RAYJOBS, "digits-a001", here.namespace)
        await here.collect(1)
        await eventually(lambda: here.rayjob(2))
        assert await here.is_on("spot-a", 2) or await here.is_on("spot-b", 2)
