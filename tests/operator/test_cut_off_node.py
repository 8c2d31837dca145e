"""A node is cut off from the API server, and returns after its pod was counted as lost and replaced. Its program, which
had continued, then gets SIGTERM. On an API server in memory."""

from __future__ import annotations

from spotladder.checkpoints.log import CommitLog
from spotladder.core.codec import load_state
from spotladder.core.model import Stage
from spotladder.workloads import names
from tests.kube.test_impediments import limits, renewed
from tests.kube.world import KubeWorld, eventually
from tests.operator.memory_world import filled_world

INTERRUPTED = "Job entrypoint command failed with exit code 75, last available logs (truncated to 20,000 chars):\nx"


async def cut_off_worker(kube: KubeWorld) -> str:
    """The node of a worker, which does not renew its Lease."""
    pods = await kube.pods(1)
    cut = next(pod for pod in pods if pod["metadata"]["labels"][names.ROLE] == "worker")
    for pod in pods:
        await renewed(kube, pod["spec"]["nodeName"], seconds_ago=45 if pod is cut else 1)
    await kube.set_node(cut["spec"]["nodeName"], ready="Unknown")
    return str(cut["spec"]["nodeName"])


async def is_in(kube: KubeWorld, stage: Stage) -> bool:
    return load_state((await kube.status())["state"]).stage is stage


async def test_a_node_that_was_cut_off_and_returns_counts_once() -> None:
    async with filled_world() as kube, kube.operator():
        await kube.submit(tiers=limits(kube, max_failures=1))
        await kube.run(1)
        await eventually(lambda: kube.has_phase("Running"))
        CommitLog(kube.bucket.store, "digits", namespace=kube.namespace).start(1, "spot-a")
        await kube.pass_time(60)

        node = await cut_off_worker(kube)
        await eventually(lambda: is_in(kube, Stage.RECOVERING))
        assert (await kube.status())["failures"] == 1
        await kube.pod(1, "worker", 2)
        await eventually(lambda: is_in(kube, Stage.RUNNING))

        await kube.set_node(node, ready="True")
        await kube.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed", message=INTERRUPTED)
        await eventually(lambda: kube.rayjob(2))
        status = await kube.status()
        assert (status["failures"], status["attempts"][0]["reason"]) == (1, "Interrupted")
        assert await kube.is_on("spot-a", 2)
