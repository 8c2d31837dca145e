"""A program that hangs on a cluster, as its heartbeat in the store reports it: on an API server in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from spotladder.checkpoints import heartbeat
from spotladder.checkpoints.heartbeat import StoredHeartbeat
from spotladder.checkpoints.log import CommitLog
from spotladder.core.codec import load_state
from spotladder.core.contract import Variable
from spotladder.core.model import JobState
from tests.kube.test_standby import variables
from tests.kube.world import KubeWorld, eventually
from tests.operator.memory_world import filled_world

HUNG = "no step for 70 s (a step takes 1 s); the stacks of its ranks are in their output"


@pytest.fixture
async def kube() -> AsyncIterator[KubeWorld]:
    async with filled_world() as found, found.operator():
        yield found


async def state(kube: KubeWorld) -> JobState:
    return load_state((await kube.status())["state"])


async def test_a_hang_ends_the_attempt_with_a_failure_and_the_next_one_gets_the_count(kube: KubeWorld) -> None:
    await kube.submit(hangTimeout="90s")
    await kube.run(1)
    await eventually(lambda: kube.has_phase("Running"))
    log = CommitLog(kube.bucket.store, "digits", namespace=kube.namespace)
    start = log.start(1, "spot-a").start
    heartbeat.write(log.store, 1, StoredHeartbeat(start.seq, 12, 100))
    assert variables(await kube.rayjob(1))[Variable.HANG_TIMEOUT] == "1m30s"
    assert Variable.HANGS not in variables(await kube.rayjob(1))
    await kube.pass_time(60)
    assert await kube.has_phase("Running")

    heartbeat.write(log.store, 1, StoredHeartbeat(start.seq, 12, 100, HUNG))

    async def ended() -> bool:
        await kube.pass_time(20)
        return bool((await kube.status()).get("attempts"))

    await eventually(ended)
    status = await kube.status()
    first = status["attempts"][0]
    assert (first["reason"], first["failures"], status["failures"]) == ("Stalled", 1, 1)
    known = await state(kube)
    assert known.hangs == 1
    assert known.history[0].steps[-1].last == 12, "the steps after the last commit are known"
    assert known.total == 100, "so is the number of steps"
    await eventually(lambda: kube.rayjob(2))
    assert variables(await kube.rayjob(2))[Variable.HANGS] == "1"
    assert "Stalled" in await kube.events()
