"""What is looked for before an attempt, on an API server that is a few lines of this file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from aiohttp import web

from spotladder.clusters.clock import SteppedClock
from spotladder.clusters.registry import HOME
from spotladder.operator.clusters import Cluster, Clusters
from spotladder.operator.inventory import Inventory, JobKey
from spotladder.operator.preflight import FOUND_TTL, LATER, MISSING_RETRY_INTERVAL, Preflight, Wanted, lacking, needs
from spotladder.workloads.references import CONFIG_MAPS, PRIORITY_CLASSES, SECRETS, Reference
from tests.clusters.test_client import api, refused
from tests.workloads.builders import job, ray_template, tier, worker_spec

KEY: JobKey = ("team-a", "digits")
BUCKET, SETTINGS = Reference(SECRETS, "bucket"), Reference(CONFIG_MAPS, "settings")


class Place:
    """An API server; `there` are the paths that exist, `refuses` what it answers to all others."""

    def __init__(self) -> None:
        self.there: set[str] = set()
        self.refuses = 404
        self.asked: list[str] = []

    def __call__(self, request: web.Request) -> Any:
        assert "PartialObjectMetadata" in request.headers["Accept"]
        self.asked.append(request.path)
        return {"metadata": {}} if request.path in self.there else refused(self.refuses)


class Scene:
    def __init__(self, place: Place, home: Cluster) -> None:
        self.place, self.home = place, home
        self.clock = SteppedClock()
        self.woken: list[JobKey] = []
        clusters = Clusters(home, {}, join=cast("Any", None), clock=self.clock, changed=lambda _name: None)
        self.preflight = Preflight(clusters, clock=self.clock, changed=self.woken.append)

    def look(self, version: object = 1, *references: Reference) -> str | None:
        return self.preflight.look(KEY, version, lambda: (Wanted(HOME, references or (BUCKET,)),))

    async def woke(self) -> None:
        for _ in range(400):
            if self.woken:
                self.woken.clear()
                return
            await asyncio.sleep(0.005)
        raise AssertionError("nobody was woken")


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    place = Place()
    async with api(place) as client:
        made = Scene(place, Cluster(HOME, client, cast("Inventory", None), most=1))
        async with made.preflight:
            yield made


async def test_what_is_missing_is_asked_for_again_and_what_is_there_is_not() -> None:
    async with scene() as here:
        here.place.there.add("/api/v1/namespaces/team-a/configmaps/settings")
        for _ in range(2):
            assert await here.preflight.missing(here.home, "team-a", [BUCKET, SETTINGS]) == (BUCKET,)
        assert [path.rpartition("/")[2] for path in here.place.asked] == ["bucket", "settings", "bucket"]
        await here.clock.advance(FOUND_TTL)
        await here.preflight.missing(here.home, "team-a", [SETTINGS])
        assert len(here.place.asked) == 4


async def test_what_may_not_be_read_counts_as_there_and_classes_have_no_namespace() -> None:
    async with scene() as here:
        high = Reference(PRIORITY_CLASSES, "high")
        assert await here.preflight.missing(here.home, "team-a", [high]) == (high,)
        assert here.place.asked == ["/apis/scheduling.k8s.io/v1/priorityclasses/high"]
        here.place.refuses = 403
        assert await here.preflight.missing(here.home, "team-a", [BUCKET]) == ()


async def test_looking_ahead_holds_nobody_up_and_wakes_the_job_with_news() -> None:
    async with scene() as here:
        assert here.look() is None
        assert here.look() is None  # under way
        await here.woke()
        assert here.look() == "namespace team-a lacks Secret bucket: create it there"
        here.place.there.add("/api/v1/namespaces/team-a/secrets/bucket")
        await here.clock.advance(MISSING_RETRY_INTERVAL)
        assert here.look() != ""
        await here.woke()
        assert here.look() == ""
        asked = len(here.place.asked)
        await here.clock.advance(LATER - 1)
        here.look()
        await asyncio.sleep(0.05)
        assert len(here.place.asked) == asked
        assert here.look(2, SETTINGS) is None  # another version of the job needs something else
        await here.woke()
        assert "ConfigMap settings" in (here.look(2) or "")
        here.preflight.forget(KEY)
        assert here.look(2) is None


def test_what_is_copied_must_exist_at_home_and_the_rest_there() -> None:
    template = ray_template()
    container = worker_spec(template)["containers"][0]
    container["envFrom"] = [{"secretRef": {"name": "bucket"}}, {"configMapRef": {"name": "settings"}}]
    of = job(template)
    east = tier(of, cluster="east")
    assert needs(of, [east], [BUCKET]) == (Wanted("east", (SETTINGS,)), Wanted(HOME, (BUCKET,)))
    assert needs(of, [tier(of)], [BUCKET]) == (Wanted(HOME, (BUCKET, SETTINGS)),)


def test_it_says_where() -> None:
    away = cast("Cluster", type("East", (), {"name": "east", "monitor": object()})())
    assert lacking(away, "team-a", [BUCKET]) == "cluster east, namespace team-a lacks Secret bucket: create it there"
