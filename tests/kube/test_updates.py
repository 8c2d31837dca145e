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
    async with world(api_server) as here, here.operator():
        await here.submit(updateStrategy="AtNextAttempt")
        await here.run(1)
        await eventually(lambda: here.has_phase("Running"))
        assert (await here.condition("Updated"))["status"] == "True"

        await here.patch(workload=with_workers(3))

        async def pending() -> bool:
            return (await here.condition("Updated")).get("reason") == "PendingNextAttempt"

        await eventually(pending)
        assert "workers 2 → 3" in (await here.condition("Updated"))["message"]
        await here.pass_time(300)
        status = await here.status()
        assert (status["phase"], status["attempt"], status["failures"]) == ("Running", 1, 0)

        await here.patch(updateStrategy="Now")
        await eventually(lambda: here.has_phase("Draining"))
        assert (await here.condition("Updated"))["reason"] == "Replacing"

        async def notified() -> bool:
            pods = await here.pods(1)
            return all(names.NOTICE in (pod["metadata"].get("annotations") or {}) for pod in pods)

        await eventually(notified)
        message = "Job failed due to an application error, Job entrypoint command failed with exit code 75"
        await here.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed", message=message)
        await eventually(lambda: here.is_on("spot-a", 2))
        await here.collect(1)
        group = (await eventually(lambda: here.rayjob(2)))["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]
        assert group["replicas"] == 3
        assert (await here.status())["failures"] == 0
        assert "SpecUpdated" in await here.events()
