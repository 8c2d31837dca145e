"""All nodes of a job stop: the controller reads in the checkpoint store that the program has stopped, and launches the
next attempt before Kubernetes marks the nodes. On an API server in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from spotladder.checkpoints import heartbeat
from spotladder.checkpoints.heartbeat import StoredHeartbeat
from spotladder.checkpoints.log import CommitLog
from spotladder.clusters.errors import ClusterUnreachable
from spotladder.clusters.fake import FakeClient
from spotladder.errors import StoreUnavailable
from tests.kube.test_impediments import renewed
from tests.kube.world import KubeWorld, eventually
from tests.operator.memory_world import filled_world

RENEWAL = 10.0
"""Seconds between two renewals of a Lease by a kubelet."""

BEAT = 5.0
"""Seconds between two heartbeats of a program."""

LIMIT = 40.0
"""Maximum seconds from the loss of all nodes to the next attempt."""


class Gang:
    """The nodes of attempt 1 and its program. `nodes_live`: the kubelets renew their Leases and answer.
    `program_lives`: rank 0 writes heartbeats."""

    def __init__(self, kube: KubeWorld) -> None:
        self.kube = kube
        self.nodes_live = self.program_lives = True
        self.nodes: list[str] = []
        self.pods: set[str] = set()
        self._log = CommitLog(kube.bucket.store, "digits", namespace=kube.namespace)
        self._start = 0
        self._seconds = 0

    async def begin(self) -> None:
        await self.kube.submit()
        await self.kube.run(1)
        for pod in await self.kube.pods(1):
            running = {"name": "ray", "image": "ray", "imageID": "", "ready": True, "restartCount": 0,
                       "state": {"running": {"startedAt": "2026-11-21T12:00:00Z"}}}  # fmt: skip
            await self.kube.set_pod(pod["metadata"]["name"], containerStatuses=[running])
        await eventually(lambda: self.kube.has_phase("Running"))
        pods = await self.kube.pods(1)
        self.nodes = [pod["spec"]["nodeName"] for pod in pods]
        self.pods = {pod["metadata"]["name"] for pod in pods}
        self._start = self._log.start(1, "spot-a").start.seq
        await self.live(2 * RENEWAL)

    async def live(self, seconds: float) -> None:
        """Time passes, second by second."""
        for _ in range(int(seconds)):
            await self.second()

    async def second(self) -> None:
        for number, node in enumerate(("another", *self.nodes)):
            if (self.nodes_live or node == "another") and (self._seconds + 3 * number) % RENEWAL == 0:
                await renewed(self.kube, node, seconds_ago=0)
        if self.program_lives and self._seconds % BEAT == 0:
            beat = StoredHeartbeat(self._start, self._seconds, 10_000, beat=self._seconds, every=BEAT)
            heartbeat.write(self._log.store, 1, beat)
        self._seconds += 1
        await self.kube.pass_time(1.0)
        await asyncio.sleep(0.01)  # The log is read in a thread.


@pytest.fixture
async def gang(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gang]:
    async with filled_world() as kube:
        made = Gang(kube)

        async def log(_self: FakeClient, pod: str, *_: object, **__: object) -> AsyncIterator[bytes]:
            if pod in made.pods and not made.nodes_live:
                raise ClusterUnreachable("log of pod: the API server answers 500: no route to host")
            yield b"step 7\n"

        monkeypatch.setattr(FakeClient, "log", log)
        async with kube.operator():
            await made.begin()
            yield made


@pytest.mark.parametrize("moment", [0, 3, 7])
async def test_all_nodes_stop_and_the_next_attempt_begins_before_they_are_marked(gang: Gang, moment: int) -> None:
    await gang.live(moment)
    gang.nodes_live = gang.program_lives = False
    began = gang.kube.clock.ticks()
    while (await gang.kube.status())["attempt"] == 1:
        await gang.second()
        assert gang.kube.clock.ticks() - began < LIMIT
    status = await gang.kube.status()
    assert (status["tier"], status["failures"], status["attempts"][0]["reason"]) == ("spot-b", 3, "MaxFailuresExceeded")
    assert "NodeLost" in await gang.kube.events()
    await eventually(lambda: gang.kube.rayjob(2))


async def test_a_program_that_commits_on_nodes_without_contact_is_left_alone(gang: Gang) -> None:
    gang.nodes_live = False
    await gang.live(2 * LIMIT)
    status = await gang.kube.status()
    assert (status["attempt"], status["failures"], status["phase"]) == (1, 0, "Running")


async def test_a_program_without_heartbeats_on_healthy_nodes_is_left_alone(gang: Gang) -> None:
    gang.program_lives = False
    await gang.live(2 * LIMIT)
    status = await gang.kube.status()
    assert (status["attempt"], status["failures"], status["phase"]) == (1, 0, "Running")


async def test_while_the_bucket_does_not_answer_missing_heartbeats_prove_nothing(gang: Gang) -> None:
    gang.kube.bucket.broken = StoreUnavailable("s3://bucket: no answer")
    gang.nodes_live = gang.program_lives = False
    await gang.live(2 * LIMIT)
    status = await gang.kube.status()
    assert (status["attempt"], status["failures"]) == (1, 0)
