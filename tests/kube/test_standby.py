"""Standby attempts on a real API server: a changed workload, with `spec.overlap`."""

from __future__ import annotations

from typing import Any

from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.standby import report_held
from spotladder.clusters.transport import Object
from spotladder.core.codec import load_state
from spotladder.core.contract import Notice, NoticeKind, Variable
from spotladder.workloads import names
from tests.kube.apiserver import ApiServer
from tests.kube.world import KubeWorld, eventually, ray_spec, world

STOPPED = "Job failed due to an application error, Job entrypoint command failed with exit code 75"


def other_image() -> Object:
    spec = ray_spec()
    spec["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["image"] = "ray:other"
    return {"ray": {"template": {"spec": spec}}}


def variables(rayjob: Object) -> dict[str, str]:
    """The environment of the first worker container."""
    group = rayjob["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]
    env = group["template"]["spec"]["containers"][0]["env"]
    return {entry["name"]: entry.get("value", "") for entry in env}


async def notices(kube: KubeWorld, attempt: int) -> list[str]:
    pods = await kube.pods(attempt)
    return [(pod["metadata"].get("annotations") or {}).get(names.NOTICE, "") for pod in pods]


def log_of(kube: KubeWorld) -> CommitLog:
    return CommitLog(kube.bucket.store, "digits", namespace=kube.namespace)


async def training(kube: KubeWorld, **spec: Any) -> None:
    """Attempt 1 trains, with a library that can hold a standby attempt."""
    await kube.submit(overlap={"maxDuration": "20m"}, **spec)
    await kube.run(1)
    await eventually(lambda: kube.has_phase("Running"))
    log_of(kube).start(1, "spot-a", stands_by=True)
    await eventually(lambda: reads_the_log(kube))


async def reads_the_log(kube: KubeWorld) -> bool:
    """Whether the controller has read the start entry of the program that can hold a standby attempt."""
    await kube.pass_time(20)
    return load_state((await kube.status())["state"]).progress.stands_by


async def standby_of(kube: KubeWorld) -> Object:
    return (await kube.status()).get("standby") or {}


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


async def second_takes_over(kube: KubeWorld, tier: str = "spot-a") -> None:
    await eventually(lambda: kube.is_on(tier, 2))
    await eventually(lambda: kube.has_phase("Running"))


async def only_second_is_left(kube: KubeWorld) -> None:
    async def alone() -> bool:
        return await kube.rayjobs() == [names.attempt_name("digits", 2)]

    await eventually(alone)


async def test_a_changed_image_starts_the_next_attempt_beside_the_running_one(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await training(kube)
        await kube.patch(workload=other_image())
        await eventually(lambda: kube.rayjob(2))
        found = await standby_of(kube)
        assert (found["number"], found["tier"], found["reason"]) == (2, "spot-a", "SpecUpdated")
        status = await kube.status()
        assert (status["phase"], status["attempt"]) == ("Running", 1)
        assert (await kube.condition("Updated"))["reason"] == "Replacing"
        assert variables(await kube.rayjob(2))[Variable.STANDBY] == "true"
        assert Variable.STANDBY not in variables(await kube.rayjob(1))

        await kube.run(2)  # its pods are ready, its program is not
        await kube.pass_time(30)
        assert await kube.has_phase("Running")
        assert notices_are_empty(await notices(kube, 1))

        await release_first(kube)
        assert notices_are_empty(await notices(kube, 2)), "it waits until attempt 1 has ended"
        await stop_first(kube)
        await second_takes_over(kube)

        async def let_go() -> bool:
            return all(NoticeKind.TAKE_OVER in text for text in await notices(kube, 2))

        await eventually(let_go)
        status = await kube.status()
        assert "standby" not in status
        assert (status["failures"], status["attempts"][-1]["reason"]) == (0, "SpecUpdated")
        assert float(status["cost"]["overlap"]) > 0

        await only_second_is_left(kube)
        assert {"StandbyStarted", "Relieved"} <= set(await kube.events())


def notices_are_empty(texts: list[str]) -> bool:
    return bool(texts) and not any(texts)


async def asked_to_commit(kube: KubeWorld) -> int:
    """The number of pods of attempt 1 with a request to commit and to continue. No pod has another notice."""
    texts = [text for text in await notices(kube, 1) if text]
    assert [Notice.decode(text).kind for text in texts] == [NoticeKind.COMMIT] * len(texts)
    return len(texts)


async def test_the_next_tier_boots_during_a_notice_that_exhausts_the_tier(api_server: ApiServer) -> None:
    async with world(api_server, tiers=("on-demand",)) as kube, kube.operator():
        await kube.capacity("spot", notice="120s")
        limits = {"spot": 0, "on-demand": -1}
        tiers = [
            {"name": name, "capacityTier": f"{kube.namespace}-{name}", "maxFailures": allowed}
            for name, allowed in limits.items()
        ]
        await kube.submit(tiers=tiers, overlap={"maxDuration": "20m"})
        await kube.run(1)
        await eventually(lambda: kube.has_phase("Running"))
        log_of(kube).start(1, "spot", stands_by=True)
        await kube.announce(1)
        await eventually(lambda: kube.rayjob(2))
        found = await standby_of(kube)
        assert (found["number"], found["tier"], found["reason"]) == (2, "on-demand", "EvictionNotice")
        status = await kube.status()
        assert (status["phase"], status["attempt"], status["failures"]) == ("Running", 1, 1)
        await kube.run(2)
        await kube.pass_time(5)
        assert await kube.has_phase("Running")
        assert await asked_to_commit(kube) == 2, "the head and the noticed worker"
        await release_first(kube)
        await stop_first(kube)
        await second_takes_over(kube, "on-demand")
        status = await kube.status()
        assert (status["failures"], status["attempts"][-1]["reason"]) == (1, "EvictionNotice")
