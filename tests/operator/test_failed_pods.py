"""Pods that fail and are deleted before a reconcile: on an API server in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from spotladder.core.model.codec import load_state
from spotladder.operator.inventory.failed_pods import KEPT_PODS, RETENTION, FailedPods
from spotladder.resources import PODS
from spotladder.workloads import names
from spotladder.workloads.records import PodRecord
from tests.kube.world import KubeWorld, eventually
from tests.operator.memory_world import filled_world


@pytest.fixture
async def kube() -> AsyncIterator[KubeWorld]:
    async with filled_world() as found, found.operator():
        yield found


async def fails_and_is_deleted(kube: KubeWorld, attempt: int) -> str:
    """A worker fails, and KubeRay deletes it in the same moment; returns its node."""
    worker = next(pod for pod in await kube.pods(attempt) if pod["metadata"]["labels"][names.ROLE] == "worker")
    name, node = worker["metadata"]["name"], worker["spec"]["nodeName"]
    ended = {"name": "self-test", "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}
    await kube.set_pod(name, phase="Failed", initContainerStatuses=[ended], conditions=[])
    await kube.client.delete(PODS, name, kube.namespace, grace=0)
    return str(node)


async def test_a_pod_of_a_running_attempt_that_is_deleted_when_it_fails_is_one_failure(kube: KubeWorld) -> None:
    await kube.submit()
    await kube.run(1)
    await eventually(lambda: kube.has_phase("Running"))
    node = await fails_and_is_deleted(kube, 1)

    async def counted() -> bool:
        return bool((await kube.status())["failures"])

    await eventually(counted)
    await kube.pass_time(5)
    status = await kube.status()
    assert status["failures"] == 1, "once, although the pod is seen again until it is forgotten"
    known = load_state(status["state"])
    assert [(entry.node, entry.failures) for entry in known.node_failures] == [(node, 1)]


def test_only_failed_pods_are_kept_the_newest_for_a_minute() -> None:
    def pod(number: int, phase: str = "Failed", job: str = "digits") -> PodRecord:
        return PodRecord(name=f"pod-{number}", namespace="team", uid=f"uid-{number}", job=job, phase=phase)

    failed = FailedPods()
    failed.deleted(pod(0, phase="Running"), 0)
    assert failed.of("team", "digits", 0) == []
    for number in range(1, KEPT_PODS + 2):
        failed.deleted(pod(number), number)
    assert next(iter(failed.of("team", "digits", KEPT_PODS))).uid == "uid-2"
    assert failed.of("team", "other", KEPT_PODS) == []
    later = KEPT_PODS + RETENTION
    assert [found.uid for found in failed.of("team", "digits", later)] == [f"uid-{KEPT_PODS}", f"uid-{KEPT_PODS + 1}"]
    failed.deleted(pod(99, job="other"), later + 2)
    assert failed.of("team", "digits", 0) == [], "its job is forgotten"


def test_a_job_whose_pods_fail_again_is_remembered_longer_than_others() -> None:
    def pod(job: str) -> PodRecord:
        return PodRecord(name=job, namespace="team", uid=job, job=job, phase="Failed")

    failed = FailedPods()
    for now, job in enumerate(["again", "once", "again"]):
        failed.deleted(pod(job), now)
    failed.deleted(pod("last"), RETENTION + 2)
    found = {job: len(failed.of("team", job, 0)) for job in ("again", "once", "last")}
    assert found == {"again": 2, "once": 0, "last": 1}
