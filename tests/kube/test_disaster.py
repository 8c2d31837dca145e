"""Recovery after the loss of a cluster, as docs/disaster-recovery.md describes it, and with a wrong clock."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.clusters import transport
from spotladder.resources import TIEREDJOBS
from spotladder.workloads.rayjob.records import RAYJOBS
from tests.kube.apiserver import ApiServer
from tests.kube.world import KubeWorld, eventually, world


async def lost(kube: KubeWorld, backup: dict[str, Any], *, status: bool) -> dict[str, Any]:
    """Remove the job and its objects as the loss of the cluster does, and restore the job from a backup."""
    await kube.client.merge(TIEREDJOBS, "digits", kube.namespace, body={"metadata": {"finalizers": None}})
    await kube.client.delete(TIEREDJOBS, "digits", kube.namespace)
    for name in await kube.rayjobs():
        await kube.collect(int(name[-3:]))
    await kube.client.delete_all(RAYJOBS, kube.namespace, labels="")
    metadata = {key: backup["metadata"][key] for key in ("name", "namespace", "finalizers")}
    body = {"apiVersion": backup["apiVersion"], "kind": "TieredJob", "metadata": metadata, "spec": backup["spec"]}
    restored = await kube.client.create(TIEREDJOBS, body)
    assert restored["metadata"]["uid"] != backup["metadata"]["uid"]
    if status:
        await kube.client.merge(
            TIEREDJOBS, "digits", kube.namespace, body={"status": backup["status"]}, subresource="status"
        )
    return restored


@pytest.mark.parametrize("status", [False, True])
async def test_a_job_restored_into_a_new_cluster_takes_its_log_over(api_server: ApiServer, status: bool) -> None:
    async with world(api_server) as kube:
        async with kube.operator():
            await kube.submit()
            for step in (20, 40):
                number = step // 20
                await kube.run(number)
                await eventually(lambda: kube.has_phase("Running"))
                kube.bucket.commit(kube.namespace, "digits", attempt=number, step=step)
                if number == 1:
                    await kube.kill_worker(1)
                    await kube.kill_worker(1)
                    await eventually(lambda: kube.rayjob(2))
            backup = await kube.job()
        await lost(kube, backup, status=status)
        async with kube.operator():
            await kube.run(3)
            await eventually(lambda: kube.has_phase("Running"))
            kube.bucket.commit(kube.namespace, "digits", attempt=3, step=60)
            await kube.succeed(3)
            assert (await kube.status())["progress"]["step"] >= 60


async def at_step(kube: KubeWorld, step: int) -> bool:
    await kube.pass_time(1)
    return bool(((await kube.status()).get("progress") or {}).get("step") == step)


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_leader_whose_clock_is_an_hour_off_ends_no_attempt(
    api_server: ApiServer, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(api_server) as kube:
        async with kube.operator():
            await kube.submit()
            await kube.run(1)
            await eventually(lambda: kube.has_phase("Running"))
            kube.bucket.commit(kube.namespace, "digits", attempt=1, step=10)
            await eventually(lambda: at_step(kube, 10))
        kube.clock._now += hours * 3600
        monkeypatch.setattr(transport, "ahead", lambda *_: -hours * 3600.0)
        async with kube.operator():
            await kube.pass_time(5)
            assert (await kube.status())["attempt"] == 1
            assert await kube.has_phase("Running")
