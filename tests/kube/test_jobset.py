"""Standby attempts of a JobSet on a real API server. JobSet cannot replace one pod early, so a notice
also starts a standby attempt."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.core.contract import NoticeKind, Variable
from spotladder.workloads import names
from spotladder.workloads.jobset.records import JOBSETS
from tests.kube import jobset
from tests.kube.apiserver import ApiServer
from tests.kube.crash import Crash
from tests.kube.test_standby import log_of, notices, notices_are_empty, reads_the_log, release_first
from tests.kube.world import KubeWorld, eventually, world
from tests.operator.failpoints import Point
from tests.workloads.builders import jobset_template


def workload(image: str = "example.org/train:1") -> dict[str, Any]:
    template = jobset_template()
    inner = template["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    inner["spec"]["containers"][0]["image"] = image
    return {"jobSet": {"template": template}}


def variables(found: dict[str, Any]) -> dict[str, str]:
    inner = found["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    return {entry["name"]: entry.get("value", "") for entry in inner["spec"]["containers"][0]["env"]}


async def training(kube: KubeWorld, **spec: Any) -> None:
    """Attempt 1 trains, with a library that can hold a standby attempt and continue without workers."""
    await kube.submit(overlap={"maxDuration": "20m"}, workload=workload(), **spec)
    await jobset.run(kube, 1)
    await eventually(lambda: kube.has_phase("Running"))
    log_of(kube).start(1, "spot-a", stands_by=True, hands_over=True)
    await eventually(lambda: reads_the_log(kube))


async def takes_over(kube: KubeWorld) -> None:
    """Attempt 2 is ready: attempt 1 commits and stops, then the program of attempt 2 starts."""
    assert variables(await jobset.jobset(kube, 2))[Variable.STANDBY] == "true"
    assert Variable.STANDBY not in variables(await jobset.jobset(kube, 1))
    await jobset.run(kube, 2)
    await kube.pass_time(30)
    assert await kube.has_phase("Running"), "the program of attempt 2 is not held yet"
    assert notices_are_empty(await notices(kube, 1))
    await release_first(kube)
    assert notices_are_empty(await notices(kube, 2)), "it waits until attempt 1 has ended"
    await eventually(lambda: notified(kube))
    await jobset.stop(kube, 1)
    await eventually(lambda: kube.is_on("spot-a", 2))
    await eventually(lambda: kube.has_phase("Running"))

    async def let_go() -> bool:
        return all(NoticeKind.TAKE_OVER in text for text in await notices(kube, 2))

    await eventually(let_go)

    async def alone() -> bool:
        return await jobsets(kube) == [names.attempt_name("digits", 2)]

    await eventually(alone)
    assert float((await kube.status())["cost"]["overlap"]) > 0


async def jobsets(kube: KubeWorld) -> list[str]:
    pages = kube.client.pages(JOBSETS, kube.namespace)
    found = [item["metadata"] async for page in pages for item in page.items]
    return [item["name"] for item in found if "deletionTimestamp" not in item]


async def notified(kube: KubeWorld) -> bool:
    """Whether all pods of attempt 1 are asked to stop."""
    return all(text and NoticeKind.COMMIT not in text for text in await notices(kube, 1))


TAKEOVER = [
    (Point.BEFORE_TAKE_OVER, 1),
    (Point.BETWEEN_NOTICES, 2),  # Attempt 1 with two pods is drained before.
    (Point.AFTER_TAKE_OVER, 1),
]


@pytest.mark.parametrize(("point", "turn"), TAKEOVER)
async def test_another_controller_continues_the_takeover_of_a_jobset_after_a_crash(
    api_server: ApiServer, point: Point, turn: int, crash: Crash
) -> None:
    async def play(kube: KubeWorld) -> None:
        await training(kube)
        await kube.patch(workload=workload("example.org/train:2"))
        await eventually(lambda: jobset.jobset(kube, 2))
        await takes_over(kube)
        await kube.collect(1)
        log_of(kube).start(2, "spot-a", stands_by=True)
        await jobset.succeed(kube, 2)
        await eventually(lambda: kube.has_phase("Succeeded"))
        await eventually(lambda: removed(kube))
        status = await kube.status()
        assert status["failures"] == 0
        assert [entry["number"] for entry in status["attempts"]] == [1, 2]
        assert [entry["reason"] for entry in status["attempts"]] == ["SpecUpdated", "Completed"]

    async def removed(kube: KubeWorld) -> bool:
        return await jobsets(kube) == []

    async with jobset.jobset_installed(api_server), world(api_server) as kube:
        await crash.during(play(kube), kube, point, turn)
