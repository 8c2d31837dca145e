"""The controller crashes at every fail point; another one continues from the objects that it left."""

from __future__ import annotations

import asyncio

import pytest

from spotladder.checkpoints.log import CommitLog
from spotladder.clusters.errors import NotFound
from spotladder.core.acting import ACTION_RETRY_INTERVAL
from spotladder.operator import failpoints
from spotladder.operator.failpoints import Point
from spotladder.resources import DISRUPTION_BUDGETS, NETWORK_POLICIES
from spotladder.workloads import names
from tests.kube.apiserver import ApiServer
from tests.kube.second_cluster import second_cluster
from tests.kube.world import KubeWorld, eventually, world


class _Died(BaseException):
    """A crash of the controller, which no code catches."""


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Makes `crash` of a fail point end the controller under test instead of the process. The event is set at the
    crash."""
    died = asyncio.Event()

    def act(point: Point, action: str) -> None:
        died.set()
        raise _Died(point)

    monkeypatch.setattr(failpoints, "_act", act)
    return died


async def play(kube: KubeWorld) -> None:
    """Everything except the controller: the user, KubeRay and the program."""
    await kube.run(1)
    await eventually(lambda: kube.has_phase("Running"), limit=60)
    kube.bucket.commit(kube.namespace, "digits", attempt=1, step=40)
    await kube.patch(suspend=True)  # A drain …
    await eventually(lambda: kube.has_phase("Draining"), limit=60)
    await eventually(lambda: _notified(kube), limit=60)
    await kube.clock.advance(2 * ACTION_RETRY_INTERVAL)  # No program stops, so the controller notifies again.
    await kube.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed", message="exit code 75")
    await kube.patch(suspend=False)
    await eventually(lambda: _removed(kube, "digits-a001"), limit=60)
    await kube.collect(1)
    await kube.run(2)  # … and the next attempt, which succeeds.
    await eventually(lambda: kube.is_on("spot-a", 2), limit=60)
    await eventually(lambda: kube.has_phase("Running"), limit=60)
    await kube.report(2, jobDeploymentStatus="Complete", jobStatus="SUCCEEDED")
    await eventually(lambda: kube.has_phase("Succeeded"), limit=60)
    await eventually(lambda: _removed(kube, "digits-a002"), limit=60)
    await kube.collect(2)
    await eventually(lambda: _outcome_appended(kube), limit=60)
    end = CommitLog(kube.bucket.store, "digits").read().end
    assert end is not None
    assert end.outcome == "Succeeded"
    status = await kube.status()
    assert status["failures"] == 0
    assert [entry["number"] for entry in status["attempts"]] == [1, 2]
    await kube.delete()
    await eventually(lambda: _gone(kube), limit=60)


async def _notified(kube: KubeWorld) -> bool:
    return all(names.NOTICE in (pod["metadata"].get("annotations") or {}) for pod in await kube.pods(1))


async def _removed(kube: KubeWorld, name: str) -> bool:
    return name not in await kube.rayjobs()


async def _outcome_appended(kube: KubeWorld) -> bool:
    return (await kube.condition("Checkpointing")).get("reason") == "Ended"


ONCE = (Point.BEFORE_FINISH, Point.AFTER_FINISH, Point.BEFORE_RELEASE)
"""These points are reached once in the life of a job."""


@pytest.mark.parametrize(
    ("point", "turn"), [(point, turn) for point in Point for turn in (1, 2) if turn == 1 or point not in ONCE]
)
async def test_another_controller_continues_after_a_crash(
    api_server: ApiServer, point: Point, turn: int, dying: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    armed = failpoints._armed(f"{point}:crash@{turn}")
    monkeypatch.setattr(failpoints, "_points", armed)
    async with world(api_server) as kube:
        await kube.submit()
        playing = asyncio.create_task(play(kube))
        try:
            died_first = asyncio.create_task(dying.wait())
            try:
                async with kube.operator():
                    await asyncio.wait({playing, died_first}, return_when=asyncio.FIRST_COMPLETED)
            except BaseExceptionGroup as group:
                if not group.subgroup(_Died):
                    raise
            died_first.cancel()
            assert armed[point].hits == turn, f"{point} was reached {armed[point].hits} times"
            async with kube.operator():
                await playing
        finally:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)


async def _gone(kube: KubeWorld) -> bool:
    try:
        await kube.job()
    except NotFound:
        return True
    return False


async def play_in_two_clusters(kube: KubeWorld, east: KubeWorld) -> None:
    """The first tier is in another cluster and loses two workers; the job continues in the home cluster."""
    await east.run(1)
    await eventually(lambda: kube.has_phase("Running"), limit=60)
    await east.kill_worker(1)
    await east.kill_worker(1)
    await eventually(lambda: _removed(east, "digits-a001"), limit=60)
    await east.collect(1)
    await kube.run(2)
    await eventually(lambda: kube.is_on("on-demand", 2), limit=60)
    await eventually(lambda: kube.has_phase("Running"), limit=60)
    assert await east.rayjobs() == []
    assert await kube.rayjobs() == ["digits-a002"]
    for kind in (DISRUPTION_BUDGETS, NETWORK_POLICIES):
        assert [page.items async for page in east.client.pages(kind, east.namespace)] == [[]]
    assert (await kube.status())["failures"] == 2


@pytest.mark.parametrize(
    "point", [Point.BETWEEN_OBJECTS, Point.AFTER_LAUNCH, Point.BETWEEN_DELETES, Point.AFTER_DELETE]
)
async def test_another_controller_continues_after_a_crash_between_two_clusters(
    api_server: ApiServer,
    second_server: ApiServer,
    point: Point,
    dying: asyncio.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    armed = failpoints._armed(f"{point}:crash@1")
    monkeypatch.setattr(failpoints, "_points", armed)
    async with world(api_server) as kube, second_cluster(second_server, kube) as east:
        capacity = await kube.capacity("spot-east", cluster="east")
        names_ = {"spot-east": capacity, "on-demand": f"{kube.namespace}-on-demand"}
        await kube.submit(tiers=[{"name": name, "capacityTier": of, "maxFailures": 1} for name, of in names_.items()])
        playing = asyncio.create_task(play_in_two_clusters(kube, east))
        try:
            died_first = asyncio.create_task(dying.wait())
            try:
                async with kube.operator(sources={"east": east.source}):
                    await asyncio.wait({playing, died_first}, return_when=asyncio.FIRST_COMPLETED)
            except BaseExceptionGroup as group:
                if not group.subgroup(_Died):
                    raise
            died_first.cancel()
            assert armed[point].hits == 1
            async with kube.operator(sources={"east": east.source}):
                await playing
        finally:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)
