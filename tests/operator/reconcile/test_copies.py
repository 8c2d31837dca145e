"""Copies in member clusters: the cleanup keeps those that a job needs, and lost ones are recreated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

from spotladder.clusters.client import Page
from spotladder.clusters.clock import SteppedClock
from spotladder.clusters.errors import NotFound
from spotladder.clusters.transport import Object
from spotladder.core.model import Phase
from spotladder.custom_resources import JobRecord
from spotladder.operator.inventory.clusters import Clusters, WorkloadCluster
from spotladder.operator.reconcile.copies import RESYNC_INTERVAL, Copies
from spotladder.resources import CONFIG_MAPS, SECRETS, APIResource
from spotladder.workloads.references import Reference


class CopyApi:
    """A fake API server. While `gate` is closed, requests for metadata are not answered."""

    def __init__(self) -> None:
        self.objects: dict[tuple[APIResource, str, str], Object] = {}
        self.gate = asyncio.Event()
        self.gate.set()

    async def get(self, kind: APIResource, name: str, namespace: str) -> Object:
        return {"metadata": {"name": name, "namespace": namespace, "uid": f"u-{name}", "resourceVersion": "1"}}

    async def metadata(self, kind: APIResource, name: str, namespace: str) -> Object:
        await self.gate.wait()
        try:
            return self.objects[kind, namespace, name]
        except KeyError:
            raise NotFound(404, "NotFound", name) from None

    async def apply(self, kind: APIResource, body: Object) -> Object:
        metadata = body["metadata"]
        made = {**body, "metadata": {**metadata, "uid": f"c-{metadata['name']}"}}
        self.objects[kind, metadata["namespace"], metadata["name"]] = made
        return made

    async def pages(self, kind: APIResource, namespace: str, labels: str = "") -> AsyncIterator[Page]:
        yield Page([found for (of, _, _), found in self.objects.items() if of == kind], "1")

    async def delete(self, kind: APIResource, name: str, namespace: str, uid: str = "") -> None:
        del self.objects[kind, namespace, name]


@dataclass
class Far:
    """A member cluster; `at_work` are the jobs that have an attempt in it."""

    client: CopyApi = field(default_factory=CopyApi)
    at_work: set[tuple[str, str]] = field(default_factory=set)
    name: str = "east"
    home: str = "home"
    selector: str = "spotladder.io/home=home"

    @property
    def inventory(self) -> Far:
        return self

    def attempts(self, key: tuple[str, str], _uid: str) -> dict[int, object]:
        return {1: object()} if key in self.at_work else {}


@dataclass
class CopyingJobs:
    found: list[JobRecord]
    caches: tuple[()] = ()

    def all(self) -> list[JobRecord]:
        return self.found


def job(name: str, *copies: Reference) -> JobRecord:
    return JobRecord(name=name, namespace="team-a", uid=f"u-{name}", copies=copies, phase=Phase.RUNNING)


def keeping(jobs: CopyingJobs, far: Far, clock: SteppedClock) -> Copies:
    class FakeClusters:
        home = Far(CopyApi())
        others = (far,)

    return Copies(cast("Clusters", FakeClusters()), cast("Any", jobs), namespaces=(), clock=clock)


async def test_a_job_that_starts_during_the_cleanup_of_copies_keeps_its_copies() -> None:
    bucket, settings = Reference(SECRETS, "bucket"), Reference(CONFIG_MAPS, "settings")
    jobs, far, clock = CopyingJobs([job("old", bucket)]), Far(), SteppedClock()
    copies = keeping(jobs, far, clock)
    assert await copies.bring(cast("WorkloadCluster", far), "team-a", [bucket, settings]) is None
    far.client.gate.clear()  # the cleanup has begun and waits for the Secret
    running = asyncio.create_task(copies.run())
    try:
        await clock.advance(RESYNC_INTERVAL)
        jobs.found.append(job("new", settings))
        far.client.gate.set()
        await clock.advance(1)
        assert (CONFIG_MAPS, "team-a", "settings") in far.client.objects
        jobs.found.pop()
        await clock.advance(RESYNC_INTERVAL)
        assert (CONFIG_MAPS, "team-a", "settings") not in far.client.objects
    finally:
        running.cancel()


async def test_a_deleted_copy_is_recreated_in_the_cluster_of_its_job() -> None:
    bucket = Reference(SECRETS, "bucket")
    far, clock = Far(at_work={("team-a", "here")}), SteppedClock()
    jobs = CopyingJobs([job("here", bucket), job("elsewhere", Reference(SECRETS, "other"))])
    running = asyncio.create_task(keeping(jobs, far, clock).run())
    try:
        await clock.advance(RESYNC_INTERVAL)
        assert list(far.client.objects) == [(SECRETS, "team-a", "bucket")]
    finally:
        running.cancel()
