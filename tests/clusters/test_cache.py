from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from spotladder.clusters.cache import Cache, Scoped
from spotladder.clusters.client import Client, Page, WatchEvent
from spotladder.clusters.errors import ClusterUnreachable, Expired, Forbidden, NotFound
from spotladder.resources import PODS
from tests.clusters.stepped_clock import SteppedClock


@dataclass(frozen=True)
class CachedThing:
    name: str
    uid: str
    resource_version: str = field(compare=False)
    value: str = ""

    @classmethod
    def of(cls, thing: dict[str, Any]) -> CachedThing:
        meta = thing["metadata"]
        return cls(meta["name"], meta["uid"], meta["resourceVersion"], thing.get("value", ""))


def thing(name: str, version: int, value: str = "", uid: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}, "value": value}


class WatchServer:
    """A fake server: lists return `things` at `version`; a watch returns the events in `stream`, and an exception
    ends it."""

    def __init__(self) -> None:
        self.things: dict[str, dict[str, Any]] = {}
        self.version = 1
        self.refuse: Exception | None = None
        self.stream: asyncio.Queue[WatchEvent | Exception | None] = asyncio.Queue()
        self.watched_from: list[str] = []
        self.during_list: Callable[[], object] = lambda: None

    async def pages(self, kind: object, namespace: str, **_: object) -> AsyncIterator[Page]:
        if self.refuse:
            raise self.refuse
        items = list(self.things.values())
        yield Page(items[:2], str(self.version))
        self.during_list()
        yield Page(items[2:], str(self.version))

    async def watch(self, kind: object, namespace: str, *, version: str, **_: object) -> AsyncIterator[WatchEvent]:
        self.watched_from.append(version)
        while True:
            event = await self.stream.get()
            if event is None:
                return
            if isinstance(event, Exception):
                raise event
            yield event

    def send(self, kind: str, found: dict[str, Any]) -> None:
        self.version = int(found["metadata"]["resourceVersion"])
        self.stream.put_nowait(WatchEvent(kind, found))


@asynccontextmanager
async def cached(server: WatchServer) -> AsyncIterator[tuple[Cache[CachedThing], SteppedClock, list[tuple[str, str]]]]:
    clock, seen = SteppedClock(), list[tuple[str, str]]()
    cache: Cache[CachedThing] = Cache(
        cast("Client", server), PODS, CachedThing.of, clock=clock, group=lambda found: found.value, jitter=lambda: 0.5,
        changed=lambda before, after: seen.append((before.value if before else "–", after.value if after else "–")),
    )  # fmt: skip
    task = asyncio.create_task(cache.run())
    try:
        await clock.advance(0)
        yield cache, clock, seen
    finally:
        task.cancel()


async def test_the_cache_lists_all_pages_and_then_watches() -> None:
    server = WatchServer()
    server.things = {name: thing(name, 1, "x") for name in "abc"}
    async with cached(server) as (cache, clock, seen):
        assert len(cache) == 3
        assert len(cache.of("x")) == 3
        server.send("MODIFIED", thing("a", 5, "y"))
        server.send("DELETED", thing("b", 6, "x"))
        server.send("ADDED", thing("d", 7, "x"))
        await clock.advance(0)
        assert sorted(found.name for found in cache.all()) == ["a", "c", "d"]
        assert [found.name for found in cache.of("y")] == ["a"]
        assert seen[3:] == [("x", "y"), ("x", "–"), ("–", "x")]


async def test_an_update_without_a_relevant_change_triggers_no_callback() -> None:
    server = WatchServer()
    server.things = {"a": thing("a", 1, "x")}
    async with cached(server) as (cache, clock, seen):
        server.send("MODIFIED", thing("a", 9, "x"))
        await clock.advance(0)
        assert len(seen) == 1
        found = cache.get("a")
        assert found is not None
        assert found.resource_version == "9"


async def test_an_interrupted_watch_resumes_from_its_last_event_or_bookmark() -> None:
    server = WatchServer()
    async with cached(server) as (cache, clock, _):
        server.send("ADDED", thing("a", 5))
        server.send("BOOKMARK", thing("", 40))
        server.stream.put_nowait(ClusterUnreachable("cut"))
        await clock.advance(1)
        server.stream.put_nowait(None)
        await clock.advance(1)
        assert server.watched_from == ["1", "40", "40"]
        assert cache.lists == 1


@pytest.mark.parametrize(("tries", "restored"), [(1, False), (8, True)])
async def test_watch_retries_without_an_answer_for_some_seconds_are_an_interruption(tries: int, restored: bool) -> None:
    server = WatchServer()
    async with cached(server) as (cache, clock, _):
        for _ in range(tries):
            server.stream.put_nowait(ClusterUnreachable("cut"))
        await clock.advance(60)
        assert cache.restored_at is None, "the server has not answered yet"
        server.send("MODIFIED", thing("a", 5))
        await clock.advance(0)
        assert (cache.restored_at == clock.ticks()) is restored


async def test_a_410_response_relists_and_reports_deleted_objects() -> None:
    server = WatchServer()
    server.things = {"a": thing("a", 1, "x"), "b": thing("b", 1, "x")}
    async with cached(server) as (cache, clock, seen):
        server.things = {"b": thing("b", 20, "y")}
        server.version = 30
        server.stream.put_nowait(Expired(410, "Expired", "too old"))
        await clock.advance(1)
        assert cache.lists == 2
        assert [found.name for found in cache.all()] == ["b"]
        assert sorted(seen[2:]) == [("x", "y"), ("x", "–")]
        assert server.watched_from[-1] == "30"


async def test_a_response_that_is_no_list_removes_no_object() -> None:
    server = WatchServer()
    server.things = {"a": thing("a", 1)}
    async with cached(server) as (cache, clock, _):
        server.things, server.version = {}, cast("int", "")  # such as the {} of a proxy
        server.stream.put_nowait(Expired(410, "Expired", "too old"))
        await clock.advance(5)
        assert (len(cache), cache.silent, cache.lists) == (1, True, 1)


async def test_an_object_that_replaced_another_one_unobserved_is_a_deletion_and_a_new_object() -> None:
    server = WatchServer()
    server.things = {"a": thing("a", 1, "x", uid="first")}
    async with cached(server) as (cache, clock, seen):
        server.things, server.version = {"a": thing("a", 6, "y", uid="second")}, 6
        server.stream.put_nowait(Expired(410, "Expired", "too old"))
        await clock.advance(1)
        assert seen == [("–", "x"), ("x", "–"), ("–", "y")]
        assert [found.uid for found in cache.of("y")] == ["second"]
        assert cache.of("x") == []


async def test_an_expired_first_list_is_restarted_and_the_cache_has_not_synced_before() -> None:
    server = WatchServer()
    server.things = {"a": thing("a", 1)}
    server.refuse = Expired(410, "Expired", "the continue token is too old")
    async with cached(server) as (cache, clock, _):
        synced = asyncio.create_task(cache.wait_for_sync())
        await clock.advance(0)
        assert not synced.done()
        server.refuse = None
        await clock.advance(2)
        assert synced.done()
        assert len(cache) == 1


async def test_an_internal_error_is_reported_and_the_cache_relists() -> None:
    server = WatchServer()
    server.things = {"a": thing("a", 1)}
    async with cached(server) as (cache, clock, _):
        server.send("MODIFIED", {"metadata": {"name": "a", "resourceVersion": "2"}})  # has no uid
        await clock.advance(0)
        assert cache.problem == "KeyError: 'uid'"
        server.things = {"a": thing("a", 3), "b": thing("b", 4)}
        server.version = 4
        await clock.advance(2)
        assert cache.problem == ""
        assert len(cache) == 2
        assert server.watched_from == ["1", "4"]


async def test_an_own_write_is_visible_at_once_and_not_reverted_by_older_events() -> None:
    server = WatchServer()
    server.things = {"a": thing("a", 1, "old")}
    async with cached(server) as (cache, clock, _):
        cache.put(thing("a", 8, "ours"))
        server.send("MODIFIED", thing("a", 6, "late"))
        await clock.advance(0)
        found = cache.get("a")
        assert found is not None
        assert found.value == "ours"
        server.send("MODIFIED", thing("a", 9, "newer"))
        await clock.advance(0)
        found = cache.get("a")
        assert found is not None
        assert found.value == "newer"


def test_the_event_of_an_own_write_is_not_processed_again() -> None:
    trimmed: list[str] = []

    def trim(found: dict[str, Any]) -> CachedThing:
        trimmed.append(found["metadata"]["resourceVersion"])
        return CachedThing.of(found)

    cache: Cache[CachedThing] = Cache(cast("Client", None), PODS, trim, clock=SteppedClock())
    for version in (7, 7, 8, 7):
        cache.put(thing("a", version, str(version)))
    assert trimmed == ["7", "8", "7"]
    assert [found.value for found in cache.all()] == ["8"]


async def test_an_own_write_during_a_list_is_kept_if_it_is_newer_than_the_list() -> None:
    server = WatchServer()
    server.things = {"a": thing("a", 1, "old")}
    async with cached(server) as (cache, clock, _):
        server.version = 40
        written = thing("a", 50, "ours"), thing("new", 51), thing("gone", 30)
        server.during_list = lambda: list(map(cache.put, written))
        server.stream.put_nowait(Expired(410, "Expired", ""))
        await clock.advance(1)
        assert sorted((found.name, found.value) for found in cache.all()) == [("a", "ours"), ("new", "")]


async def test_objects_of_a_cluster_that_was_created_again_replace_those_with_higher_versions() -> None:
    server = WatchServer()
    server.things, server.version = {"a": thing("a", 900, "x", uid="first"), "b": thing("b", 901, "x")}, 901
    async with cached(server) as (cache, clock, seen):
        server.things, server.version = {"a": thing("a", 5, "y", uid="second")}, 6
        server.stream.put_nowait(Expired(410, "Expired", "too old"))
        await clock.advance(1)
        assert [(found.uid, found.value) for found in cache.all()] == [("second", "y")]
        assert sorted(seen[2:]) == [("x", "–"), ("x", "–"), ("–", "y")]


async def test_the_response_to_a_write_does_not_restore_a_deleted_object() -> None:
    server = WatchServer()
    server.things = {"a": thing("a", 1), "b": thing("b", 1)}
    async with cached(server) as (cache, clock, _):
        server.send("DELETED", thing("a", 5))
        await clock.advance(0)
        cache.put(thing("a", 4))
        assert cache.get("a") is None
        cache.put(thing("a", 9, uid="another"))
        assert cache.get("a") is not None
        server.things, server.version = {}, 20
        server.stream.put_nowait(Expired(410, "Expired", "too old"))
        await clock.advance(1)
        cache.put(thing("b", 15))
        assert cache.get("b") is None, "it was deleted while no watch ran"


async def test_an_object_newer_than_the_cache_is_not_reported_as_gone() -> None:
    server = WatchServer()
    server.things = {"a": thing("a", 1)}
    async with cached(server) as (cache, clock, _):
        assert not cache.is_gone("new", "", at="7")  # a pod of version 7 names it; this cache is at 1
        assert cache.is_gone("old", "", at="1")
        server.send("BOOKMARK", thing("", 8))
        await clock.advance(0)
        assert cache.is_gone("new", "", at="7")
        server.send("DELETED", thing("a", 9))
        await clock.advance(0)
        assert cache.is_gone("a", "", at="1000")
        assert not cache.is_gone("b", "", at="1000")


async def test_a_missing_crd_is_reported_and_found_once_installed() -> None:
    server = WatchServer()
    server.refuse = NotFound(404, "NotFound", "the server could not find the requested resource")
    async with cached(server) as (cache, clock, _):
        await cache.wait_for_sync()
        assert cache.absent
        assert not cache.has_synced
        server.refuse, server.things = None, {"a": thing("a", 1)}
        await clock.advance(30)
        assert (cache.absent, cache.problem, len(cache)) == (False, "", 1)


async def test_revoked_permissions_are_reported() -> None:
    server = WatchServer()
    async with cached(server) as (cache, clock, _):
        server.refuse = Forbidden(403, "Forbidden", "no")
        server.stream.put_nowait(Expired(410, "Expired", ""))
        await clock.advance(5)
        assert "403" in cache.problem
        server.refuse = None
        await clock.advance(30)
        assert cache.problem == ""


async def test_a_server_that_ends_every_watch_at_once_is_polled_with_backoff() -> None:
    server = WatchServer()
    async with cached(server) as (_, clock, _):
        for _ in range(1000):
            server.stream.put_nowait(None)
        await clock.advance(60)
        assert len(server.watched_from) < 20


def test_a_scoped_cache_returns_its_empty_cache_of_a_namespace() -> None:
    cache: Cache[CachedThing] = Cache(
        cast("Client", WatchServer()), PODS, CachedThing.of, clock=SteppedClock(), namespace="team-a"
    )
    scoped = Scoped([cache])
    assert scoped.within("team-a") is cache
    assert scoped.within("team-b") is None
    scoped.put({**thing("a", 3), "metadata": {**thing("a", 3)["metadata"], "namespace": "team-a"}})
    assert scoped.get("a", "team-a") is not None
