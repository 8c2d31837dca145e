"""The API calls of the controller for one fallback. Each of them costs the API server CPU time in a storm of
evictions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from spotladder.resources import NODES, APIResource
from tests.clusters.fake import FakeClient
from tests.kube.kuberay import KubeRay
from tests.kube.world import WORKERS, KubeWorld, eventually
from tests.operator.crash import VERBS
from tests.operator.memory_world import NAMESPACE, filled_world
from tests.operator.reconcile.test_reconciler import server_of

TIERS = [
    {"name": tier, "capacityTier": f"{NAMESPACE}-{tier}", "maxFailures": 0, "provisionTimeout": "10m"}
    for tier in ("spot-a", "spot-b", "on-demand")
]
MAX_RECONCILES = 8
"""Six without the other tasks of the test's process; before the changes of one job were reconciled together, ten."""


def counting_client(kube: KubeWorld) -> tuple[FakeClient, Counter[str]]:
    """A client, and the number of its calls but lists and watches, by verb and kind."""
    calls = Counter[str]()

    def counted(method: Callable[..., Awaitable[Any]], verb: str) -> Callable[..., Any]:
        async def call(client: FakeClient, kind: APIResource, *given: Any, **more: Any) -> Any:
            calls[f"{verb} {kind.plural}"] += 1
            return await method(client, kind, *given, **more)

        return call

    methods = {name: counted(getattr(FakeClient, name), verb) for name, verb in {**VERBS, "get": "get"}.items()}
    return type("CountingClient", (FakeClient,), methods)(server_of(kube), kube.clock), calls


@pytest.mark.parametrize("leaders", [1, 2], ids=["the first leader", "a new leader"])
async def test_a_fallback_takes_only_the_calls_that_it_cannot_do_without(tmp_path: Path, leaders: int) -> None:
    async with filled_world() as kube:
        client, counted = counting_client(kube)
        for name in ("n1", "n2", "n3"):
            await kube.client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
            await kube.set_node(name, ready="True")
        kuberay = KubeRay(kube.client, NAMESPACE, ["n1", "n2", "n3"], tmp_path)
        playing = asyncio.create_task(kuberay.run())
        await kube.submit(tiers=TIERS)
        for leader in range(1, leaders + 1):
            async with kube.operator(client=client):
                await eventually(lambda: kube.has_phase("Running"))
                await kube.program_starts(1)
                await kube.pass_time(1)
                await kube.events()
                if leader < leaders:
                    continue
                counted.clear()
                before, kuberay.capacity = reconciles(kube), asyncio.Event()
                await kuberay.evict("digits")
                await eventually(lambda: kube.rayjob(2))
                await kube.idle()
                calls = {call: count for call, count in counted.items() if call != "create events"}
                assert calls.pop("patch tieredjobs") <= 2, "the end of the old attempt, and the next one"
                assert calls.pop("get namespaces", 0) <= leaders - 1, "the Pod Security level is kept for a minute"
                assert next(iter(calls)) == "create rayjobs", "the next attempt waits for no removal"
                assert calls == {"delete rayjobs": 1, "delete pods": WORKERS, "create rayjobs": 1}
                assert reconciles(kube) - before <= MAX_RECONCILES
        playing.cancel()


def reconciles(kube: KubeWorld) -> float:
    found = (sample for metric in kube.metrics.registry.collect() for sample in metric.samples)
    return next(sample.value for sample in found if sample.name == "spotladder_reconcile_seconds_count")
