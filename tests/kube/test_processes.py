"""`spotladder controller` as a process: health, metrics, leader election, a paused leader, shutdown."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.clusters.election import LEASES
from tests.kube.apiserver import ApiServer
from tests.kube.process import Process
from tests.kube.second_cluster import second_cluster
from tests.kube.world import KubeWorld, eventually, world


def configuration(kube: KubeWorld, folder: Path, **more: Any) -> Path:
    """The settings of a controller of this namespace, whose jobs may use this folder for checkpoints."""
    settings = {
        "settle": 0,
        "leaseNamespace": kube.namespace,
        "namespaces": [kube.namespace],
        "tenancy": [{"namespaces": [kube.namespace], "uris": [f"file://{folder}"], "clusters": ["*"]}],
    }
    config = folder / "controller.yaml"
    config.write_text(json.dumps({**settings, **more}), encoding="utf-8")
    return config


@asynccontextmanager
async def controllers(kube: KubeWorld, number: int, folder: Path, **settings: Any) -> AsyncIterator[list[Process]]:
    config = configuration(kube, folder, listen="127.0.0.1:0", **settings)
    started: list[Process] = []
    try:
        for _ in range(number):
            process = await Process.start(kube.server, config)
            started.append(process)
        yield started
    finally:
        for process in started:
            await process.close()


def checkpoints_in(folder: Path) -> dict[str, Any]:
    return {"uri": f"file://{folder}/checkpoints", "interval": "30s"}


async def test_health_metrics_and_shutdown(api_server: ApiServer, tmp_path: Path) -> None:
    async with world(api_server) as kube, controllers(kube, 1, tmp_path) as (process,):
        await process.wait_for("caught up")
        assert (await process.get("/healthz"))[0] == 200
        await kube.submit(checkpoints=checkpoints_in(tmp_path))
        await kube.run(1)
        await eventually(lambda: kube.has_phase("Running"))
        assert await process.get("/readyz") == (200, "leading\n")
        text = (await process.get("/metrics"))[1]
        assert f'spotladder_job_phase{{job="digits",namespace="{kube.namespace}",phase="Running"}} 1.0' in text
        for name in ("reconcile_seconds_count", "queue_depth", "leading 1.0", "fallback_seconds_count", "api_requests"):
            assert f"spotladder_{name}" in text
        began = time.monotonic()
        process.send(signal.SIGTERM)
        assert await process.ended() == 0
        assert time.monotonic() - began < 5
        lease = await kube.client.get(LEASES, "spotladder-controller", kube.namespace)
        assert lease["spec"]["holderIdentity"] == ""  # The next leader need not wait.
        moved = process.logged("moved")
        assert {"job", "attempt", "tier", "reason", "namespace"} <= moved[0].keys()


async def test_another_controller_takes_over_after_the_leader_is_killed(
    api_server: ApiServer, second_server: ApiServer, tmp_path: Path
) -> None:
    """It finds the attempt in the other cluster."""
    clusters = {"east": {"kubeconfig": {"file": str(second_server.kubeconfig), "context": "tests"}}}
    async with (
        world(api_server) as kube,
        second_cluster(second_server, kube) as east,
        controllers(kube, 2, tmp_path, clusters=clusters) as both,
    ):
        leader, follower = await _roles(both)
        assert await follower.get("/readyz") == (200, "standing by\n")
        await leader.wait_for("cluster is up")
        capacity = await kube.capacity("spot-east", cluster="east")
        tiers = [{"name": "spot-east", "capacityTier": capacity, "maxFailures": 1}]
        await kube.submit(checkpoints=checkpoints_in(tmp_path), tiers=tiers)
        await east.run(1)
        await eventually(lambda: kube.has_phase("Running"))
        assert 'spotladder_cluster_up{cluster="east"} 1.0' in (await leader.get("/metrics"))[1]
        leader.send(signal.SIGKILL)
        await follower.wait_for("cluster is up")
        await east.kill_worker(1)
        await eventually(lambda: _failures(kube, 1))
        assert await east.rayjobs() == ["digits-a001"]
        assert await kube.rayjobs() == []


async def test_a_paused_leader_stops_acting_when_it_continues(api_server: ApiServer, tmp_path: Path) -> None:
    async with world(api_server) as kube, controllers(kube, 2, tmp_path) as both:
        zombie, other = await _roles(both)
        await kube.submit(checkpoints=checkpoints_in(tmp_path))
        await kube.run(1)
        await eventually(lambda: kube.has_phase("Running"))
        store = open_store(checkpoints_in(tmp_path)["uri"])
        CommitLog(store, "digits", namespace=kube.namespace).start(1, "")  # by the program
        zombie.send(signal.SIGSTOP)
        await other.wait_for("leading")
        await kube.kill_worker(1)
        await kube.kill_worker(1)
        await eventually(lambda: kube.is_on("spot-b", 2))
        await kube.collect(1)
        await eventually(lambda: kube.rayjob(2))
        zombie.send(signal.SIGCONT)
        await zombie.wait_for("not leading")
        await kube.run(2)
        await eventually(lambda: kube.has_phase("Running"))
        assert await kube.rayjobs() == ["digits-a002"]
        assert [move["attempt"] for move in zombie.logged("moved")][-1] == 1
        assert len(other.logged("leading")) == 1
        assert not other.logged("not leading")


async def _roles(both: list[Process]) -> tuple[Process, Process]:
    async def one_leads() -> list[Process]:
        return [process for process in both if process.logged("caught up")]

    (leader,) = await eventually(one_leads)
    (follower,) = [process for process in both if process is not leader]
    await follower.wait_for("started")
    return leader, follower


async def _failures(kube: KubeWorld, number: int) -> bool:
    return (await kube.status()).get("failures") == number
