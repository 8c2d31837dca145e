"""A job whose spec is edited while an attempt runs."""

from __future__ import annotations

from spotladder.clusters.transport import Object
from spotladder.workloads import names
from tests.kube.apiserver import ApiServer
from tests.kube.world import eventually, ray_spec, world


def with_workers(count: int) -> Object:
    spec = ray_spec()
    spec["rayClusterSpec"]["workerGroupSpecs"][0]["replicas"] = count
    return {"ray": {"template": {"spec": spec}}}


async def test_more_workers_apply_to_the_next_attempt_which_now_starts_at_once(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit(updateStrategy="AtNextAttempt")
        await kube.run(1)
        await eventually(lambda: kube.has_phase("Running"))
        await kube.program_starts(1)
        assert (await kube.condition("Updated"))["status"] == "True"

        await kube.patch(workload=with_workers(3))

        async def pending() -> bool:
            return (await kube.condition("Updated")).get("reason") == "PendingNextAttempt"

        await eventually(pending)
        assert "workers 2 → 3" in (await kube.condition("Updated"))["message"]
        await kube.pass_time(300)
        status = await kube.status()
        assert (status["phase"], status["attempt"], status["failures"]) == ("Running", 1, 0)

        await kube.patch(updateStrategy="Now")
        await eventually(lambda: kube.has_phase("Draining"))
        assert (await kube.condition("Updated"))["reason"] == "Replacing"

        async def notified() -> bool:
            pods = await kube.pods(1)
            return all(names.NOTICE in (pod["metadata"].get("annotations") or {}) for pod in pods)

        await eventually(notified)
        message = "Job failed due to an application error, Job entrypoint command failed with exit code 75"
        await kube.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed", message=message)
        await eventually(lambda: kube.is_on("spot-a", 2))
        await kube.collect(1)
        group = (await eventually(lambda: kube.rayjob(2)))["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]
        assert group["replicas"] == 3
        assert (await kube.status())["failures"] == 0
        assert "SpecUpdated" in await kube.events()
