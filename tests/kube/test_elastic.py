"""An elastic job on a real API server: its program begins without the workers that have no node."""

from __future__ import annotations

from spotladder.core.codec import load_state
from spotladder.core.elastic import BEGIN_DELAY
from spotladder.core.model import Stage
from spotladder.resources import PODS
from tests.kube.apiserver import ApiServer
from tests.kube.test_standby import log_of, variables
from tests.kube.world import eventually, world


async def test_an_elastic_job_begins_without_the_workers_that_have_no_node(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit(elastic={"min": 1})
        assert variables(await eventually(lambda: kube.rayjob(1)))["SPOTLADDER_SIZES"] == "1,2"
        await kube.pod(1, "head", 0)
        await kube.pod(1, "worker", 0)
        left_out = await kube.pod(1, "worker", 1, run=False)
        await kube.raycluster(1)
        await kube.report(1, jobDeploymentStatus="Initializing")
        await kube.pass_time(BEGIN_DELAY / 2)
        status = await kube.status()
        assert (status["phase"], (await kube.worker_group(1))["replicas"]) == ("Pending", 2)
        assert status["waiting"]["timer"] == "elastic.min"
        await kube.pass_time(BEGIN_DELAY / 2)

        async def requested() -> int:
            return int((await kube.worker_group(1))["replicas"])

        async def one_is_left_out() -> bool:
            return await requested() == 1

        await eventually(one_is_left_out)
        assert (await kube.worker_group(1))["scaleStrategy"] == {"workersToDelete": [left_out]}

        await kube.client.delete(PODS, left_out, kube.namespace, grace=0)
        await kube.report(1, jobDeploymentStatus="Running", jobStatus="RUNNING")
        await eventually(lambda: kube.has_phase("Running"))

        async def all_are_asked_for() -> bool:
            return await requested() == 2

        await eventually(all_are_asked_for)
        await kube.pod(1, "worker", 2, run=False)
        log_of(kube).start(1, "spot-a", hands_over=True, workers=1)
        await kube.pass_time(600)
        state = load_state((await kube.status())["state"])
        assert (state.stage, state.last_number, state.failures) == (Stage.RUNNING, 1, 0)
        assert state.message == "1 of 2 workers"
