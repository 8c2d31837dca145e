"""The leader runtime: how it connects member clusters, what it reports as its health, and which jobs it requeues."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import generate_latest
from structlog.testing import capture_logs

from spotladder.clusters.cache import Cache
from spotladder.clusters.election import NotLeading
from spotladder.clusters.errors import ClusterUnreachable
from spotladder.operator.inventory.clusters import Busy
from spotladder.operator.inventory.monitor import LONGEST_PAUSE
from spotladder.operator.leader import CALL, RESTART_INTERVAL, LeaderRuntime
from spotladder.operator.reconcile.preflight import Preflight
from spotladder.operator.reconcile.reconciler import Reconciler
from spotladder.operator.reporting.health import Health
from spotladder.resources import CAPACITYTIERS, PODS, TIEREDJOBS
from tests.kube.test_clusters import up
from tests.kube.world import KubeWorld, eventually
from tests.operator.member_cluster import two_clusters_in_memory
from tests.operator.memory_world import NAMESPACE
from tests.operator.reconcile.test_reconciler import memory


async def test_a_member_cluster_has_its_own_limits_and_the_guard_of_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    async with two_clusters_in_memory(monkeypatch) as (kube, east):
        kube.client.guard = lambda: 7.0
        async with kube.operator(sources={"east": east.source}, workers=5, calls_per_second=1.0, burst=2) as runtime:
            await up(runtime)
            (client,) = east.controllers
            assert (client.given["timeout"], client.given["guard"]) == (CALL, kube.client.guard)
            cluster = runtime.clusters.of("east")
            assert cluster is not None
            with cluster.turn(), cluster.turn(), pytest.raises(Busy), cluster.turn():
                pass
            throttle = client.given["throttle"]
            assert throttle is not kube.client._throttle
            await throttle.take()
            await throttle.take()
            third = asyncio.create_task(throttle.take())
            await asyncio.sleep(0)
            assert not third.done(), "the burst is used up"
            await kube.clock.advance(1.0)
            await third


async def test_the_calls_and_the_state_of_a_member_cluster_have_its_name_in_the_metrics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reconnected: list[str] = []
    monkeypatch.setattr(Preflight, "reconnected", lambda _self, name: reconnected.append(name))
    async with (
        two_clusters_in_memory(monkeypatch) as (kube, east),
        kube.operator(sources={"east": east.source}) as runtime,
    ):
        await up(runtime)
        (client,) = east.controllers
        assert client.watcher is not None
        client.watcher("get", "pods", 200)
        lines = generate_latest(kube.metrics.registry).decode().splitlines()
        assert 'spotladder_api_requests_total{cluster="east",code="200",resource="pods",verb="get"} 1.0' in lines
        assert 'spotladder_cluster_up{cluster="east"} 1.0' in lines
        await east.cut()
        await eventually(lambda: is_down(runtime))
        lines = generate_latest(kube.metrics.registry).decode().splitlines()
        assert 'spotladder_cluster_up{cluster="east"} 0.0' in lines
        assert reconnected == ["east"]
        east.mend()
        await kube.clock.advance(LONGEST_PAUSE)
        await up(runtime)
        assert reconnected == ["east"] * 2, "its versions are read again"


class Defect(Exception):
    """An exception that no code expects."""


async def is_down(runtime: LeaderRuntime) -> bool:
    return "east.example" in runtime.clusters.problem("east")


async def test_the_health_of_a_leader_names_the_kind_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async with memory() as kube:
        assert kube.runtime
        assert kube.runtime.health == Health("leading")
        (pods,) = (cache for cache in kube.runtime.caches if cache.kind == PODS)
        monkeypatch.setattr(pods, "problem", "403 Forbidden")
        assert kube.runtime.health == Health("leading", f"pods in {NAMESPACE}: 403 Forbidden")
        (tiers,) = (cache for cache in kube.runtime.caches if cache.kind == CAPACITYTIERS)
        monkeypatch.setattr(tiers, "problem", "404 NotFound")
        assert kube.runtime.health == Health("leading", "capacitytiers: 404 NotFound")
        monkeypatch.setattr(tiers, "absent", True)
        advice = "capacitytiers: the cluster does not have the kind: install the chart spotladder-crds"
        assert kube.runtime.health == Health("leading", advice)


async def test_a_leader_whose_caches_are_being_filled_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    async with memory() as kube:
        assert kube.runtime
        monkeypatch.setattr(Cache, "has_synced", False)
        assert kube.runtime.health == Health("leading", f"{TIEREDJOBS.plural} are being listed")


async def test_a_background_task_that_crashes_is_started_again_after_a_delay() -> None:
    async with memory() as kube:
        assert kube.runtime
        starts: list[float] = []

        async def works() -> None:
            starts.append(kube.clock.ticks())
            if len(starts) < 3:
                raise RuntimeError("a defect")

        restarting = asyncio.create_task(kube.runtime._restarting(works))
        while not restarting.done():
            await kube.clock.advance(0.5)
            await asyncio.sleep(0)
        delays = [later - earlier for earlier, later in pairwise(starts)]
        assert len(delays) == 2
        assert all(RESTART_INTERVAL <= delay < RESTART_INTERVAL + 1.0 for delay in delays)


async def test_a_background_task_ends_with_the_lease() -> None:
    async with memory() as kube:
        assert kube.runtime
        starts = []

        async def works() -> None:
            starts.append(1)
            raise NotLeading("the lease is lost")

        await kube.runtime._restarting(works)
        assert starts == [1]


async def queued(kube: KubeWorld, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The jobs that the runtime adds to its queue from now on."""
    assert kube.runtime
    added: list[Any] = []
    for name in ("add", "add_changed"):
        monkeypatch.setattr(kube.runtime.queue, name, added.append)
    return added


async def test_a_deleted_job_requeues_the_jobs_that_share_its_checkpoint_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with memory() as kube:
        assert kube.runtime
        for name in ("first", "second", "other"):
            await kube.submit(name)
        await kube.idle()
        first = kube.runtime.jobs.get("first", NAMESPACE)
        assert first is not None
        shared = [SimpleNamespace(key=(NAMESPACE, "second"))]
        monkeypatch.setattr(
            kube.runtime, "jobs", SimpleNamespace(of=lambda folder: shared if folder == first.folder else [])
        )
        added = await queued(kube, monkeypatch)
        kube.runtime._job_changed(first, None)
        assert added == [(NAMESPACE, "first"), (NAMESPACE, "second")]
        added.clear()
        kube.runtime._job_changed(None, first)
        assert added == [(NAMESPACE, "first")]
        kube.runtime._job_changed(first, first)
        assert added == [(NAMESPACE, "first")] * 2


@pytest.mark.parametrize(
    ("error", "level", "event", "cause"),
    [
        (ClusterUnreachable("no answer"), "warning", "a reconcile failed", "no answer"),
        (Defect("no such field"), "error", "a reconcile failed with an unexpected error", None),
    ],
)
async def test_a_failed_reconcile_is_counted_logged_and_retried(
    monkeypatch: pytest.MonkeyPatch, error: Exception, level: str, event: str, cause: str | None
) -> None:
    async with memory() as kube:
        await kube.submit()
        await kube.idle()
        assert kube.runtime
        runtime, calls = kube.runtime, list[Any]()

        async def fails(_reconciler: Reconciler, key: Any) -> None:
            calls.append(key)
            if len(calls) < 3:
                raise error

        monkeypatch.setattr(Reconciler, "__call__", fails)
        with capture_logs() as logs:
            runtime.queue.add((NAMESPACE, "digits"))
            for _ in range(200):
                await kube.clock.advance(1.0)
                await asyncio.sleep(0)
        assert calls[:3] == [(NAMESPACE, "digits")] * 3
        entries = [entry for entry in logs if entry["event"] == event]
        assert [(entry["namespace"], entry["job"], entry["failures"]) for entry in entries] == [
            (NAMESPACE, "digits", 1),
            (NAMESPACE, "digits", 2),
        ]
        assert {entry["log_level"] for entry in entries} == {level}
        assert all(entry.get("error") == cause for entry in entries)
        assert all((entry.get("exc_info") is error) == (cause is None) for entry in entries)
        value = kube.metrics.registry.get_sample_value(
            "spotladder_reconcile_errors_total", {"error": type(error).__name__}
        )
        assert value == 2.0
