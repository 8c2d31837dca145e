"""A job whose next attempt boots beside the live one: a changed workload, with `spec.overlap`."""

from __future__ import annotations

from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.standby import report_held
from spotladder.clusters.transport import Object
from spotladder.core.model.codec import load_state
from spotladder.workloads import names
from tests.kube.world import KubeWorld, eventually, ray_spec

STOPPED = "Job failed due to an application error, Job entrypoint command failed with exit code 75"


def other_image() -> Object:
    spec = ray_spec()
    spec["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["image"] = "ray:other"
    return {"ray": {"template": {"spec": spec}}}


async def notices(kube: KubeWorld, attempt: int) -> list[str]:
    pods = await kube.pods(attempt)
    return [(pod["metadata"].get("annotations") or {}).get(names.NOTICE, "") for pod in pods]


def log_of(kube: KubeWorld) -> CommitLog:
    return CommitLog(kube.bucket.store, "digits", namespace=kube.namespace)


async def training(kube: KubeWorld) -> None:
    """Attempt 1 trains, with a library that can hold a standby attempt."""
    await kube.submit(overlap={"maxDuration": "20m"})
    await kube.run(1)
    await eventually(lambda: kube.has_phase("Running"))
    log_of(kube).start(1, "spot-a", stands_by=True)
    await eventually(lambda: reads_the_log(kube))


async def reads_the_log(kube: KubeWorld) -> bool:
    """Whether the controller has read the start entry of the program that can hold a standby attempt."""
    await kube.pass_time(20)
    return load_state((await kube.status())["state"]).progress.stands_by


async def drained(kube: KubeWorld) -> bool:
    await kube.pass_time(3)
    return await kube.has_phase("Draining")


async def release_first(kube: KubeWorld) -> None:
    """The program of attempt 2 is held, so the controller asks attempt 1 to commit and to stop."""
    report_held(log_of(kube).store, 2)
    await eventually(lambda: drained(kube))


async def stop_first(kube: KubeWorld) -> None:
    """The program of attempt 1 commits and stops."""
    await kube.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed", message=STOPPED)


async def second_takes_over(kube: KubeWorld) -> None:
    await eventually(lambda: kube.is_on("spot-a", 2))
    await eventually(lambda: kube.has_phase("Running"))


def notices_are_empty(texts: list[str]) -> bool:
    return bool(texts) and not any(texts)
