"""The controller process on an API server in memory: the lease, its health server, and the end of its term."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from spotladder.api.tenancy import TenantRule
from spotladder.clusters.election import DURATION, LEASES, RENEW_INTERVAL
from spotladder.errors import EnvironmentFailure
from spotladder.operator import controller as module
from spotladder.operator.controller import Controller
from spotladder.operator.reporting.health import Health, HealthServer
from spotladder.operator.reporting.metrics import Metrics
from spotladder.operator.settings import Settings
from tests.clusters.fake import FakeClient
from tests.clusters.stepped_clock import SteppedClock
from tests.kube.world import KubeWorld, eventually
from tests.operator.memory_world import NAMESPACE, filled_world

LEASE = "spotladder-controller"


@pytest.fixture
async def kube(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KubeWorld]:
    async with filled_world() as found:
        server = found.client.server  # type: ignore[attr-defined]

        @asynccontextmanager
        async def client(_connection: object, *, guard: Any = None, **_: object) -> AsyncIterator[FakeClient]:
            made = FakeClient(server, found.clock)
            made.guard = guard
            yield made

        monkeypatch.setattr(module, "connect", lambda *_: SimpleNamespace(server="memory", namespace=NAMESPACE))
        monkeypatch.setattr(module, "Client", client)
        yield found


def controller(kube: KubeWorld, **more: Any) -> Controller:
    settings = Settings(
        namespaces=(NAMESPACE,),
        listen="127.0.0.1:0",
        tenancy=(TenantRule.model_validate({"namespaces": ["*"], "uris": ["file:///"]}),),
        **more,
    )
    return Controller(settings, clock=kube.clock)


@asynccontextmanager
async def run(controller: Controller, clock: SteppedClock) -> AsyncIterator[asyncio.Task[None]]:
    async def tick() -> None:
        while True:
            await asyncio.sleep(0.01)
            await clock.advance(0.1)

    running, ticking = asyncio.create_task(controller.run()), asyncio.create_task(tick())
    try:
        yield running
    finally:
        controller.stop()
        await asyncio.wait_for(running, 600)
        ticking.cancel()


async def holder(kube: KubeWorld) -> str:
    lease = await kube.client.get(LEASES, LEASE, NAMESPACE)
    return str(lease["spec"]["holderIdentity"])


async def submit(kube: KubeWorld) -> None:
    await kube.submit(checkpoints={"uri": "file:///checkpoints", "interval": "30s"})


async def test_secrets_of_member_clusters_are_read_in_the_namespace_of_the_lease(
    kube: KubeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def sources(_clusters: object, *, namespace: str, **_: object) -> dict[str, Any]:
        asked.append(namespace)
        return {}

    monkeypatch.setattr(module, "sources", sources)
    for one in (controller(kube), controller(kube, lease_namespace="platform")):
        async with run(one, kube.clock):
            await eventually(lambda one=one: leads(one))  # type: ignore[misc]
    assert asked == [NAMESPACE, "platform"]
    assert (await kube.client.get(LEASES, LEASE, "platform"))["spec"]["holderIdentity"] == ""


async def test_a_controller_leads_until_it_is_stopped_and_the_next_one_takes_over(kube: KubeWorld) -> None:
    first, second = controller(kube), controller(kube)
    assert first.identity != second.identity
    async with run(second, kube.clock), run(first, kube.clock):
        await eventually(lambda: one_of(first, second))
        leader, follower = (first, second) if first._leader else (second, first)
        await eventually(lambda: is_ready(leader))
        assert await holder(kube) == leader.identity
        assert (leader._ready().state, leader._ready().cause) == ("leading", "")
        assert (follower._ready().state, follower._ready().cause) == ("standing by", "")
        assert leading(leader) == 1.0
        assert leading(follower) == 0.0
        leader.stop()
        await eventually(lambda: leads(follower))
        assert await holder(kube) == follower.identity
        assert leading(leader) == 0.0
    assert await holder(kube) == ""


async def test_a_leader_that_loses_its_lease_stops_and_takes_it_again_later(kube: KubeWorld) -> None:
    only = controller(kube)
    async with run(only, kube.clock) as running:
        await eventually(lambda: leads(only))
        kube.client.server.down = True  # type: ignore[attr-defined]
        await kube.clock.advance(DURATION + RENEW_INTERVAL)
        await eventually(lambda: stands_by(only))
        assert leading(only) == 0.0
        assert not running.done()
        kube.client.server.down = False  # type: ignore[attr-defined]
        await kube.clock.advance(DURATION)
        await eventually(lambda: leads(only))


async def leads(controller: Controller) -> bool:
    return controller._leader is not None


async def stands_by(controller: Controller) -> bool:
    return controller._leader is None


async def is_ready(controller: Controller) -> bool:
    return controller._ready().cause == ""


async def one_of(*controllers: Controller) -> bool:
    return sum(controller._leader is not None for controller in controllers) == 1


def leading(controller: Controller) -> float | None:
    return controller._metrics.registry.get_sample_value("spotladder_leading")


async def test_the_health_server_answers_with_the_state_and_its_cause() -> None:
    causes = iter(("", "tieredjobs: no permission"))

    def ready() -> Health:
        return Health("leading", next(causes))

    metrics = Metrics(SteppedClock())
    async with (
        HealthServer("127.0.0.1:0", metrics=metrics, ready=ready) as server,
        aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as session,
    ):
        found = []
        for path in ("/healthz", "/readyz", "/readyz"):
            async with session.get(path) as response:
                found.append((response.status, await response.text()))
        assert found == [(200, "alive\n"), (200, "leading\n"), (503, "leading: tieredjobs: no permission\n")]
        async with session.get("/metrics") as response:
            assert "spotladder_leading 0.0" in await response.text()
        with pytest.raises(EnvironmentFailure, match=f"^listen 127.0.0.1:{server.port}: .*: use another address$"):
            async with HealthServer(f"127.0.0.1:{server.port}", metrics=metrics, ready=ready):
                pass


@pytest.mark.parametrize(
    "address", ["8080", "localhost", "localhost:", "localhost:http", "127.0.0.1:65536", f"127.0.0.1:{'9' * 30}"]
)
def test_an_invalid_address_of_the_health_server_is_rejected(address: str) -> None:
    with pytest.raises(EnvironmentFailure, match=f"^listen {address}: expected HOST:PORT, such as 127.0.0.1:8080$"):
        HealthServer(address, metrics=Metrics(SteppedClock()), ready=lambda: Health("leading"))
