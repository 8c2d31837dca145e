"""Attempts that cannot start: KubeRay is not installed or rejects the RayJob, a quota forbids pods, an image is
missing."""

from __future__ import annotations

from typing import Any

from spotladder.resources import APIResource
from spotladder.workloads import names
from spotladder.workloads.rayjob.records import RAYCLUSTERS, RAYJOBS
from tests.kube import jobset
from tests.kube.apiserver import ApiServer
from tests.kube.conditions import message_of
from tests.kube.world import CRDS, crd_files, eventually, install_kinds, ray_spec, world
from tests.workloads.builders import jobset_template

QUOTAS = APIResource("", "v1", "resourcequotas", "ResourceQuota")


async def test_a_job_starts_once_kuberay_is_installed(api_server: ApiServer) -> None:
    async with world(api_server) as kube:
        for kind in ("rayjobs", "rayclusters"):
            await kube.client.delete(CRDS, f"{kind}.ray.io")

        async def gone() -> bool:
            return not await kube.client.exists(RAYJOBS)

        await eventually(gone)
        try:
            async with kube.operator():
                await kube.submit()
                message = await message_of(kube, "Degraded", "True", "NotInstalled")
                assert "KubeRay is not installed" in message
                await kube.pass_time(3600)  # Longer than any provisionTimeout: no tier is exhausted.
                assert await kube.is_on("spot-a", 1)
                await install_kinds(api_server, crd_files()[-2:])
                await kube.pass_time(60)

                async def launched() -> Any:
                    await kube.clock.advance(5)
                    return await kube.rayjob(1)

                await eventually(launched)
                await kube.run(1)
                await message_of(kube, "Degraded", "False", "AsExpected")
        finally:
            await install_kinds(api_server)


async def test_a_quota_that_forbids_the_rayjob_exhausts_no_tier(api_server: ApiServer) -> None:
    async with world(api_server) as kube:
        quota = {"count/rayjobs.ray.io": "0"}
        body = {"metadata": {"name": "none", "namespace": kube.namespace}, "spec": {"hard": quota}}
        await kube.client.create(QUOTAS, {"apiVersion": "v1", "kind": "ResourceQuota", **body})
        await kube.client.merge(
            QUOTAS, "none", kube.namespace, body={"status": {"hard": quota, "used": quota}}, subresource="status"
        )
        async with kube.operator():
            await kube.submit()
            message = await message_of(kube, "Degraded", "True", "LaunchRefused")
            assert "exceeded quota" in message
            for _ in range(4):
                await kube.pass_time(900)
            assert await kube.is_on("spot-a", 1)
            await kube.client.delete(QUOTAS, "none", kube.namespace)

            async def launched() -> Any:
                await kube.clock.advance(10)
                return await kube.rayjob(1)

            await eventually(launched)
            await kube.idle()
            assert await kube.is_on("spot-a", 1)


async def test_a_foreign_rayjob_with_the_attempts_name(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        theirs = {"apiVersion": RAYJOBS.api_version, "kind": "RayJob", "spec": ray_spec(entrypoint="python other.py")}
        theirs["metadata"] = {"name": names.attempt_name("digits", 1), "namespace": kube.namespace}
        await kube.client.create(RAYJOBS, theirs)
        await kube.submit()
        message = await message_of(kube, "Degraded", "True", "NameTaken")
        assert "digits-a001" in message
        assert (await kube.rayjob(1))["spec"]["entrypoint"] == "python other.py"


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


async def test_a_rejected_rayjob_is_deleted_when_its_job_is_suspended(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit()
        await eventually(lambda: kube.rayjob(1))
        await kube.report(1, jobDeploymentStatus="ValidationFailed", reason="ValidationFailed", message="no such field")
        await message_of(kube, "Degraded", "True", "Blocked")
        await kube.patch(suspend=True)
        await eventually(lambda: kube.has_phase("Suspended"))

        async def gone() -> bool:
            return await kube.rayjobs() == []

        await eventually(gone)


async def test_an_image_that_cannot_be_pulled_exhausts_no_tier_and_stops_the_timer(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit()
        await eventually(lambda: kube.rayjob(1))
        await kube.pod(1, "head", 0)
        pods = [await kube.pod(1, "worker", index, run=False) for index in range(2)]
        await kube.report(1, jobDeploymentStatus="Initializing")
        waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "typo"'}
        status = {"name": "ray", "image": "ray", "imageID": "", "ready": False, "restartCount": 0}
        for pod in pods:
            await kube.set_pod(pod, containerStatuses=[{**status, "state": {"waiting": waiting}}])
        message = await message_of(kube, "Degraded", "True", "ImageUnavailable")
        assert "ImagePullBackOff" in message
        assert "typo" in message
        for _ in range(4):
            await kube.pass_time(900)
        assert await kube.is_on("spot-a", 1)
        for pod in pods:
            await kube.set_pod(pod, containerStatuses=[{**status, "state": {"waiting": {"reason": "Starting"}}}])
        await message_of(kube, "Degraded", "False", "AsExpected")
        await kube.pass_time(500)  # The provisionTimeout is 600 s. The hour without the image does not count.
        assert await kube.is_on("spot-a", 1)
        await kube.pass_time(150)
        await eventually(lambda: kube.is_on("spot-b", 2))


async def test_pods_that_a_quota_forbids_exhaust_no_tier(api_server: ApiServer) -> None:
    """KubeRay reports this on the RayCluster."""
    async with world(api_server) as kube, kube.operator():
        await kube.submit()
        labels = (await eventually(lambda: kube.rayjob(1)))["metadata"]["labels"]
        body = {"apiVersion": RAYCLUSTERS.api_version, "kind": "RayCluster", "spec": ray_spec()["rayClusterSpec"]}
        body["metadata"] = {"name": "digits-a001-x", "namespace": kube.namespace, "labels": labels}
        await kube.client.create(RAYCLUSTERS, body)
        try:
            await kube.report(1, jobDeploymentStatus="Initializing")
            failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreateWorkerPod"}
            failure |= {"message": "pods is forbidden: exceeded quota", "lastTransitionTime": "2026-11-21T12:00:00Z"}
            await kube.client.merge(
                RAYCLUSTERS, "digits-a001-x", kube.namespace, body={"status": {"conditions": [failure]}},
                subresource="status",
            )  # fmt: skip
            assert "exceeded quota" in await message_of(kube, "Degraded", "True", "QuotaExceeded")
            for _ in range(4):
                await kube.pass_time(900)
            assert await kube.is_on("spot-a", 1)
        finally:
            await kube.client.delete(RAYCLUSTERS, "digits-a001-x", kube.namespace)


async def test_pods_of_a_jobset_that_a_quota_forbids_exhaust_no_tier(api_server: ApiServer) -> None:
    """Kubernetes' job controller reports this in an Event about the Job, which has none of spotladder's labels."""
    async with jobset.jobset_installed(api_server), world(api_server) as kube, kube.operator():
        await kube.submit(workload={"jobSet": {"template": jobset_template()}})
        await jobset.acted_on(kube, 1)
        job = {"name": "digits-a001-workers-0", "namespace": kube.namespace, "uid": "of-the-job"}
        said = 'Error creating: pods "digits-a001-workers-0-0-x" is forbidden: exceeded quota: gpu'
        await kube.record_event("FailedCreate", said, about={"kind": "Job", "metadata": job}, source="job-controller")
        assert "exceeded quota: gpu" in await message_of(kube, "Degraded", "True", "QuotaExceeded")
        for _ in range(4):
            await kube.pass_time(900)
        assert await kube.is_on("spot-a", 1)
