"""The end of a term of leadership."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spotladder.clusters.election import NotLeading
from spotladder.operator.inventory.clusters import Clusters
from spotladder.operator.inventory.inventory import JobKey
from spotladder.operator.leader import LeaderRuntime
from spotladder.operator.reporting.metrics import Metrics
from spotladder.operator.settings import Settings
from tests.clusters.stepped_clock import SteppedClock
from tests.kube.world import KubeWorld
from tests.operator.memory_world import filled_world

LOST, BUSY = ("team-a", "lost"), ("team-a", "busy")


class Reconciles:
    """The reconcile of one job finds that the lease is lost, while that of another hides its cancellation."""

    def __init__(self) -> None:
        self.started, self.lease_lost = asyncio.Event(), asyncio.Event()

    def touch(self, key: JobKey) -> None: ...

    async def __call__(self, key: JobKey) -> float | None:
        if key == LOST:
            await self.lease_lost.wait()
            raise NotLeading("the lease was not renewed in time")
        self.started.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
        return None


def runtime_of(here: KubeWorld) -> LeaderRuntime:
    return LeaderRuntime(
        client=here.client,
        sources={},
        settings=Settings(namespaces=(here.namespace,)),
        metrics=Metrics(here.clock),
        clock=here.clock,
        identity="operator-under-test",
        open_log=here.bucket.open,
    )


async def ended(running: asyncio.Task[None]) -> bool:
    done, _ = await asyncio.wait({running}, timeout=5.0)
    return bool(done)


@pytest.mark.parametrize("cause", ["lease lost", "cancelled"])
async def test_the_term_ends_although_a_reconcile_hides_its_cancellation(cause: str) -> None:
    async with filled_world() as here:
        runtime, reconciles = runtime_of(here), Reconciles()
        runtime.reconcile = reconciles  # type: ignore[assignment]
        running = asyncio.create_task(runtime.run())
        for key in (LOST, BUSY):
            runtime.queue.add(key)
        while not reconciles.started.is_set():
            await asyncio.sleep(0)
            await here.clock.advance(0.1)
        if cause == "cancelled":
            running.cancel()
        else:
            reconciles.lease_lost.set()
        assert await ended(running)
        if cause == "lease lost":
            assert isinstance(running.exception(), BaseExceptionGroup)
        else:
            assert running.cancelled()


async def hide_one_cancellation() -> None:
    """A background task of the term."""
    for _ in range(2):
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None
            if task.cancelling() > 1:
                raise


async def test_the_monitor_of_a_cluster_ends_although_it_hides_its_first_cancellation() -> None:
    home = SimpleNamespace(client=SimpleNamespace(get=home_namespace))
    east = SimpleNamespace(monitor=SimpleNamespace(run=hide_one_cancellation))
    clusters = Clusters(
        cast("Any", home),
        {"east": cast("Any", None)},
        join=cast("Any", lambda *_: east),
        clock=SteppedClock(),
        changed=lambda _name: None,
    )
    running = asyncio.create_task(clusters.run())
    for _ in range(2):
        await SteppedClock().advance(0)
        assert not running.done()
        running.cancel()
    assert await ended(running)


async def home_namespace(*_: object) -> Any:
    return {"metadata": {"uid": "home-uid"}}
