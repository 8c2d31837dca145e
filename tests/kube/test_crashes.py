"""The controller crashes at each of its changes, on an API server in memory, and at some of them on a real one. Another
controller continues from the objects that it left."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from spotladder.core.acting import ACTION_RETRY_INTERVAL
from spotladder.core.contract import NoticeKind
from spotladder.core.facts.elastic import BEGIN_DELAY
from spotladder.core.model.codec import load_state
from spotladder.resources import DISRUPTION_BUDGETS, NETWORK_POLICIES, PODS
from spotladder.workloads import names
from spotladder.workloads.rayjob.records import RAYCLUSTERS
from tests.kube.apiserver import ApiServer
from tests.kube.standby import (
    log_of,
    notices,
    notices_are_empty,
    other_image,
    release_first,
    second_takes_over,
    stop_first,
    training,
)
from tests.kube.world import WORKERS, KubeWorld, eventually, world
from tests.operator.crash import Crash, Point
from tests.operator.member_cluster import two_clusters_in_memory
from tests.operator.memory_world import filled_world

# --- what everything except the controller does: the user, KubeRay, the scheduler, the nodes and the program ---


async def suspend_and_resume(kube: KubeWorld) -> None:
    """An attempt is drained, and the next one succeeds."""
    await kube.submit()
    await kube.run(1)
    await eventually(lambda: kube.has_phase("Running"))
    kube.bucket.commit(kube.namespace, "digits", attempt=1, step=40)
    await kube.patch(suspend=True)
    await eventually(lambda: kube.has_phase("Draining"))
    await eventually(lambda: _notified(kube))
    await kube.clock.advance(2 * ACTION_RETRY_INTERVAL)  # No program stops, so the controller notifies again.
    await kube.report(1, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed", message="exit code 75")
    await kube.patch(suspend=False)
    await eventually(lambda: _removed(kube, "digits-a001"))
    await kube.collect(1)
    await kube.run(2)
    await eventually(lambda: kube.is_on("spot-a", 2))
    await succeed(kube, 2)


async def begin_with_fewer_workers(kube: KubeWorld) -> None:
    """An elastic job begins without the worker that has no node, and gets it later."""
    await kube.submit(elastic={"min": 1})
    await kube.pod(1, "head", 0)
    await kube.pod(1, "worker", 0)
    left_out = await kube.pod(1, "worker", 1, run=False)
    await kube.raycluster(1)
    await kube.report(1, jobDeploymentStatus="Initializing")
    await eventually(lambda: _removes(kube, left_out, requested=1, after=BEGIN_DELAY / 2))
    await kube.client.delete(PODS, left_out, kube.namespace, grace=0)
    await kube.report(1, jobDeploymentStatus="Running", jobStatus="RUNNING")
    log_of(kube).start(1, "spot-a", hands_over=True, workers=1)
    await eventually(lambda: _requests(kube, WORKERS))
    await kube.pod(1, "worker", WORKERS)
    log_of(kube).start(1, "spot-a", hands_over=True, workers=WORKERS)
    await succeed(kube, 1)


async def hand_over(kube: KubeWorld) -> None:
    """A worker with a notice is replaced inside the attempt."""
    going = await _notice(kube)
    await eventually(lambda: _requests(kube, WORKERS + 1))
    await kube.pass_time(ACTION_RETRY_INTERVAL)
    assert await _requests(kube, WORKERS + 1), "one replacement, however often it is requested"
    await kube.pod(1, "worker", WORKERS)
    await eventually(lambda: _hands_over(kube, going))
    await eventually(lambda: _removes(kube, going, requested=WORKERS, after=1))
    await kube.client.delete(PODS, going, kube.namespace, grace=0)
    await eventually(lambda: _replaced(kube))
    log_of(kube).start(1, "spot", hands_over=True)
    await succeed(kube, 1, failures=1)


async def take_over(kube: KubeWorld) -> None:
    """A standby attempt boots beside the live one and takes over from it."""
    await training(kube)
    await kube.patch(workload=other_image())
    await eventually(lambda: kube.rayjob(2))
    await kube.run(2)
    await release_first(kube)
    assert notices_are_empty(await notices(kube, 2)), "attempt 1 may still write"
    await stop_first(kube)
    await second_takes_over(kube)
    await eventually(lambda: _let_go(kube))
    log_of(kube).start(2, "spot-a", stands_by=True)
    await eventually(lambda: _removed(kube, "digits-a001"))
    await kube.collect(1)
    await succeed(kube, 2)


async def succeed(kube: KubeWorld, last: int, *, failures: int = 0) -> None:
    """The program of this attempt, the last one, ends. No failure is counted twice, and nothing is left of the job."""
    await eventually(lambda: kube.has_phase("Running"))
    assert await kube.rayjobs() == [names.attempt_name("digits", last)]
    await kube.report(last, jobDeploymentStatus="Complete", jobStatus="SUCCEEDED")
    await eventually(lambda: _succeeded(kube))
    await eventually(lambda: _removed(kube, names.attempt_name("digits", last)))
    await kube.client.delete_all(RAYCLUSTERS, kube.namespace, labels="")  # as the garbage collector does
    await kube.collect(last)
    await eventually(lambda: _outcome_appended(kube))
    end = log_of(kube).read().end
    assert end is not None
    assert end.outcome == "Succeeded"
    status = await kube.status()
    assert status["failures"] == failures
    assert [entry["number"] for entry in status["attempts"]] == list(range(1, last + 1))
    await kube.delete()
    await eventually(kube.is_gone)
    assert [page.items async for page in kube.client.pages(PODS, kube.namespace)] == [[]]


async def _notice(kube: KubeWorld) -> str:
    """Attempt 1 trains with a program that can hand over; then a worker gets a notice. Returns the worker's name."""
    tier = {"name": "spot", "capacityTier": await kube.capacity("spot", notice="120s"), "maxFailures": 1}
    await kube.submit(tiers=[tier])
    await kube.run(1)
    await kube.raycluster(1)
    log_of(kube).start(1, "spot", hands_over=True)
    await eventually(lambda: kube.has_phase("Running"))
    await eventually(lambda: _can_hand_over(kube))
    return await kube.announce(1)


async def _notified(kube: KubeWorld) -> bool:
    return all(text and NoticeKind.COMMIT not in text for text in await notices(kube, 1))


async def _let_go(kube: KubeWorld) -> bool:
    return all(NoticeKind.TAKE_OVER in text for text in await notices(kube, 2))


async def _removed(kube: KubeWorld, name: str) -> bool:
    return name not in await kube.rayjobs()


async def _succeeded(kube: KubeWorld) -> bool:
    """Whether the job has succeeded; no loss explains the end of its program once the attribution window is over."""
    await kube.pass_time(5)
    return await kube.has_phase("Succeeded")


async def _outcome_appended(kube: KubeWorld) -> bool:
    return (await kube.condition("Checkpointing")).get("reason") == "Ended"


async def _can_hand_over(kube: KubeWorld) -> bool:
    """Whether the controller has read in the log that the program can continue without workers."""
    await kube.pass_time(20)
    return load_state((await kube.status())["state"]).progress.hands_over


async def _requests(kube: KubeWorld, workers: int) -> bool:
    return bool((await kube.worker_group(1))["replicas"] == workers)


async def _removes(kube: KubeWorld, pod: str, *, requested: int, after: float) -> bool:
    """Whether the controller lets KubeRay remove this worker after some more time, and requests that many others."""
    await kube.pass_time(after)
    group = await kube.worker_group(1)
    return (group["replicas"], (group.get("scaleStrategy") or {}).get("workersToDelete")) == (requested, [pod])


async def _hands_over(kube: KubeWorld, going: str) -> bool:
    """Whether this pod, and no other one, has the notice of a handover."""
    annotations = {pod["metadata"]["name"]: pod["metadata"].get("annotations", {}) for pod in await kube.pods(1)}
    return [pod for pod, found in annotations.items() if NoticeKind.HANDOVER in found.get(names.NOTICE, "")] == [going]


async def _replaced(kube: KubeWorld) -> bool:
    """Whether the attempt trains, and the replacement is forgotten."""
    await kube.pass_time(1)
    state = load_state((await kube.status())["state"])
    assert state.last_number == 1
    return await kube.has_phase("Running") and state.attempt is not None and not state.attempt.notice.leaving


async def submit_to_both(kube: KubeWorld, east: str) -> None:
    """Submit a job with a tier in the other cluster, and one in the home cluster."""
    names_ = {"spot-east": east, "on-demand": f"{kube.namespace}-on-demand"}
    await kube.submit(tiers=[{"name": name, "capacityTier": of, "maxFailures": 1} for name, of in names_.items()])


async def play_in_two_clusters(kube: KubeWorld, east: KubeWorld) -> None:
    """The first tier is in another cluster and loses two workers; the job continues in the home cluster."""
    await east.run(1)
    await eventually(lambda: kube.has_phase("Running"))
    await east.kill_worker(1)
    await east.kill_worker(1)
    await eventually(lambda: _removed(east, "digits-a001"))
    await east.collect(1)
    await kube.run(2)
    await eventually(lambda: kube.is_on("on-demand", 2))
    await eventually(lambda: kube.has_phase("Running"))
    assert await east.rayjobs() == []
    assert await kube.rayjobs() == ["digits-a002"]
    for kind in (DISRUPTION_BUDGETS, NETWORK_POLICIES):
        assert [page.items async for page in east.client.pages(kind, east.namespace)] == [[]]
    assert (await kube.status())["failures"] == 2


# --- the crashes ---

Play = Callable[[KubeWorld], Coroutine[Any, Any, None]]

PLAYS: tuple[Play, ...] = (suspend_and_resume, begin_with_fewer_workers, hand_over, take_over)


MAX_RUNS = 900
"""Seconds for a play, which takes a run for each of its changes."""

LEAST_CHANGES = 12
"""Every play has more changes than this."""


@pytest.mark.timeout(MAX_RUNS)
@pytest.mark.parametrize("play", PLAYS)
async def test_another_controller_continues_whatever_change_was_the_last(play: Play) -> None:
    for turn in itertools.count(1):
        crash = Crash(Point("before", turn=turn))
        async with filled_world() as kube:
            await crash.during(play(kube), kube)
        if not crash.happened.is_set():
            break
    assert turn > LEAST_CHANGES


@pytest.mark.timeout(MAX_RUNS)
async def test_another_controller_continues_between_two_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    for turn in itertools.count(1):
        crash = Crash(Point("before", turn=turn))
        with monkeypatch.context() as patches:
            async with two_clusters_in_memory(patches) as (kube, east):
                await submit_to_both(kube, f"{kube.namespace}-spot-east")
                await crash.during(play_in_two_clusters(kube, east), kube, sources={"east": east.source})
        if not crash.happened.is_set():
            break
    assert turn > LEAST_CHANGES


@pytest.mark.parametrize(
    ("play", "point"),
    [
        (suspend_and_resume, "before patch tieredjobs@3"),
        (suspend_and_resume, "after create rayjobs"),
        (begin_with_fewer_workers, "after patch rayclusters"),
        (hand_over, "after patch pods"),
    ],
)
async def test_another_controller_continues_after_a_crash(api_server: ApiServer, play: Play, point: str) -> None:
    async with world(api_server) as kube:
        crash = Crash(Point.parse(point))
        await crash.during(play(kube), kube)
        assert crash.happened.is_set()
