"""A job on all of its tiers, with simulated KubeRay, nodes and program."""

from __future__ import annotations

from spotladder.clusters.client import Client
from spotladder.clusters.connection import connect
from spotladder.core.contract import Variable
from spotladder.workloads.rayjob.records import RAYJOBS
from tests.kube.apiserver import ApiServer
from tests.kube.world import eventually, world


async def test_lost_workers_lead_to_the_next_tier_and_the_job_succeeds(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit(hangTimeout="90s")
        await kube.begin(1, "spot-a")
        (workers,) = (await kube.rayjob(1))["spec"]["rayClusterSpec"]["workerGroupSpecs"]
        variables = workers["template"]["spec"]["containers"][0]["env"]
        assert {"name": Variable.HANG_TIMEOUT, "value": "1m30s"} in variables
        kube.bucket.commit(kube.namespace, "digits", attempt=1, step=40)
        await kube.fall_back()
        await kube.succeed(2)
        status = await kube.status()
        assert status["attempts"][0]["reason"] == "MaxFailuresExceeded"
        assert status["failures"] == 2
        assert (await kube.condition("Completed"))["status"] == "True"
        events = await kube.events()
        assert "FellBack" in events
        assert "Completed" in events


async def test_kuberay_may_change_fields_of_the_rayjob(api_server: ApiServer) -> None:
    """KubeRay becomes the owner of these fields. The controller still recognizes the attempt, and never changes it. A
    changed spec applies to the next attempt, which starts at once because this one has never run."""
    async with (
        world(api_server) as kube,
        kube.operator(),
        Client(connect(str(api_server.kubeconfig)), manager="kuberay-operator") as kuberay,
    ):
        await kube.submit()
        made = await eventually(lambda: kube.rayjob(1))
        made["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["scaleStrategy"] = {"workersToDelete": ["none"]}
        await kuberay.replace(RAYJOBS, made)
        await kube.pass_time(1)
        await kube.patch(workload={"ray": {"template": {"spec": {"entrypoint": "python changed.py"}}}})
        changed = await eventually(lambda: kube.rayjob(2))
        assert changed["spec"]["entrypoint"] == "python changed.py"
        assert (await kube.condition("Degraded"))["status"] == "False"
        await kube.run(2)
        await eventually(lambda: kube.has_phase("Running"))
        assert await kube.rayjobs() == ["digits-a002"]
        assert (await kube.status())["failures"] == 0
