"""A namespace on an API server in memory."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from tests.clusters.fake import FakeApiServer, FakeClient
from tests.clusters.stepped_clock import SteppedClock
from tests.kube.world import KubeWorld

NAMESPACE = "team-a"


def world_in_memory() -> KubeWorld:
    """The namespace, which does not exist yet. Its clock is also that of the API server."""
    clock = SteppedClock()
    kube = KubeWorld(FakeClient(FakeApiServer(clock), clock), None, NAMESPACE)  # type: ignore[arg-type]
    kube.clock = clock
    return kube


@asynccontextmanager
async def filled_world(
    _server: None = None, *, tiers: Sequence[str] = ("spot-a", "spot-b", "on-demand")
) -> AsyncIterator[KubeWorld]:
    """The namespace with CapacityTiers, as `tests.kube.world.world` makes it on a real API server."""
    kube = world_in_memory()
    await kube.make_namespace()
    for tier in tiers:
        await kube.capacity(tier, capacityType="on-demand" if tier == "on-demand" else "spot")
    yield kube
    assert defects(kube) == [], "a reconcile that fails is repeated, so that nothing else shows the defect"


def defects(kube: KubeWorld) -> list[str]:
    """The exceptions of Python's own with which reconciles have failed so far."""
    found = (metric for metric in kube.metrics.registry.collect() if metric.name == "spotladder_reconcile_errors")
    errors = {sample.labels["error"] for metric in found for sample in metric.samples}
    return sorted(error for error in errors if hasattr(builtins, error))
