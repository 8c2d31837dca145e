from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from aiohttp import web

from spotladder.clusters import client as client_module
from spotladder.clusters import transport
from spotladder.clusters.client import PAGE_RETRY_INTERVAL, PAGE_TRIES, Client
from spotladder.clusters.clock import SystemClock
from spotladder.clusters.connection import Connection
from spotladder.clusters.credentials import Fixed
from spotladder.clusters.election import NotLeading
from spotladder.clusters.errors import ClusterUnreachable, Conflict, Expired, Invalid, NotFound, Throttled, api_error
from spotladder.clusters.transport import path_of
from spotladder.errors import SpotladderError, TooLarge
from spotladder.resources import NODES, PODS, SECRETS
from spotladder.workloads.rayjob.records import RAYJOBS
from tests.clusters.stepped_clock import SteppedClock

Answer = Callable[[web.Request], Any]


@asynccontextmanager
async def api(answer: Answer, **more: Any) -> AsyncIterator[Client]:
    app = web.Application()

    async def handle(request: web.Request) -> web.StreamResponse:
        found = answer(request)
        if hasattr(found, "__await__"):
            found = await found
        return found if isinstance(found, web.StreamResponse) else web.json_response(found)

    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    connection = Connection(f"http://127.0.0.1:{runner.addresses[0][1]}", more.pop("credentials", Fixed()))
    try:
        async with Client(connection, **more) as client:
            yield client
    finally:
        await runner.cleanup()


def refused(status: int, **headers: str) -> web.Response:
    body = {"kind": "Status", "reason": "Why", "message": "because\nof this", "code": status}
    return web.json_response(body, status=status, headers=headers)


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ((PODS, "ns", "a"), "/api/v1/namespaces/ns/pods/a"),
        ((NODES, "", "n"), "/api/v1/nodes/n"),
        ((RAYJOBS, "ns", "a", "status"), "/apis/ray.io/v1/namespaces/ns/rayjobs/a/status"),
        ((PODS, "ns/../x", "a b"), "/api/v1/namespaces/ns%2F..%2Fx/pods/a%20b"),
    ],
)
def test_api_paths_are_built_and_escaped(arguments: tuple[Any, ...], path: str) -> None:
    assert path_of(*arguments) == path


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (404, NotFound),
        (409, Conflict),
        (410, Expired),
        (422, Invalid),
        (500, ClusterUnreachable),
        (503, ClusterUnreachable),
    ],
)
async def test_status_codes_raise_the_matching_error(status: int, error: type[SpotladderError]) -> None:
    async with api(lambda _: refused(status)) as client:
        with pytest.raises(error) as raised:
            await client.get(PODS, "a", "ns")
        assert "because of this" in str(raised.value)
        assert "get pods/a" in str(raised.value)


def test_rejected_credentials_say_what_to_do() -> None:
    error = api_error(401, "Unauthorized", "Unauthorized", where="list tieredjobs")
    remedy = "the cluster rejects the credentials: log in again, or renew them"
    assert str(error) == f"list tieredjobs: 401 Unauthorized: {remedy}"


async def test_each_request_is_reported_with_its_rbac_verb_and_resource() -> None:
    reported: list[tuple[str, str, int]] = []

    def answer(request: web.Request) -> web.Response:
        return web.json_response({"items": [], "metadata": {}}) if "watch" not in request.query else web.Response()

    async with api(answer, watcher=lambda *said: reported.append(said)) as client:
        await client.get(PODS, "a", "ns")
        await client.get(NODES, "n")
        await client.merge(RAYJOBS, "a", "rayjobs", body={}, subresource="status")
        await client.merge(RAYJOBS, "a", "rayjobs", body={})
        async for _ in client.pages(RAYJOBS, "ns"):
            pass
        async for _ in client.watch(RAYJOBS, version="1"):
            pass
    assert reported == [
        ("get", "pods", 200),
        ("get", "nodes", 200),
        ("patch", "rayjobs/status", 200),
        ("patch", "rayjobs", 200),
        ("list", "rayjobs", 200),
        ("watch", "rayjobs", 200),
    ]


async def test_a_refused_connection_raises_cluster_unreachable() -> None:
    async with Client(Connection("http://127.0.0.1:9", Fixed())) as client:
        with pytest.raises(ClusterUnreachable):
            await client.get(PODS, "a", "ns")


async def test_a_429_response_is_retried_after_its_retry_after() -> None:
    waits: list[float] = []

    class Noting(SystemClock):
        async def sleep(self, seconds: float) -> None:
            waits.append(seconds)

    # A pod behind the proxy chooses its headers, and a timer of NaN seconds breaks the order of all timers.
    answers = [*(refused(429, **{"Retry-After": after}) for after in ("3", "nan")), refused(429), {"ok": True}]
    async with api(lambda _: answers.pop(0), clock=Noting()) as client:
        assert await client.get(PODS, "a", "ns") == {"ok": True}
    assert waits == [3.0, 0.0, 1.0]


async def test_repeated_429_responses_or_a_long_retry_after_raise_throttled() -> None:
    async with api(lambda _: refused(429, **{"Retry-After": "0"})) as client:
        with pytest.raises(Throttled):
            await client.get(PODS, "a", "ns")
    async with api(lambda _: refused(429, **{"Retry-After": "600"}), clock=SteppedClock()) as client:
        with pytest.raises(Throttled):
            await client.get(PODS, "a", "ns")


async def test_the_clock_of_the_cluster_is_read_from_its_responses() -> None:
    def answer(_: web.Request) -> web.Response:
        return web.json_response({}, headers={"Date": format_datetime(datetime.now(UTC) - timedelta(hours=1))})

    async with api(answer) as client:
        await client.ask("a", "b", 8265, "api/jobs/")
        assert client.ahead == 0.0, "the pod wrote this response, and all jobs depend on the clock"
        await client.get(PODS, "a", "b")
        assert client.ahead == pytest.approx(-3600, abs=3)


async def test_a_401_response_renews_the_credentials_once() -> None:
    class Renewed:
        async def headers(self, *, fresh: bool = False) -> dict[str, str]:
            return {"Authorization": "new" if fresh else "old"}

    def answer(request: web.Request) -> Any:
        return {"ok": True} if request.headers["Authorization"] == "new" else refused(401)

    async with api(answer, credentials=Renewed()) as client:
        assert await client.get(PODS, "a", "ns") == {"ok": True}


async def test_writes_check_the_leader_guard_and_reads_do_not() -> None:
    written: list[str] = []

    def answer(request: web.Request) -> Any:
        written.append(request.method)
        return {"metadata": {}}

    def guard() -> float:
        raise NotLeading("over")

    async with api(answer, guard=guard) as client:
        await client.get(PODS, "a", "ns")
        body = {"metadata": {"name": "a", "namespace": "ns"}}
        for write in (
            lambda: client.create(PODS, body),
            lambda: client.apply(PODS, body),
            lambda: client.replace(PODS, body),
            lambda: client.merge(PODS, "a", "ns", body={}),
            lambda: client.delete(PODS, "a", "ns"),
            lambda: client.delete_all(PODS, "ns", labels="a=b"),
        ):
            with pytest.raises(NotLeading):
                await write()
    assert written == ["GET"]


async def test_a_write_times_out_when_the_guard_expires_and_is_not_sent_after_that() -> None:
    never, written = asyncio.Event(), list[str]()

    class Awaited:
        async def headers(self, *, fresh: bool = False) -> dict[str, str]:
            await never.wait()
            return {}

    async def slowly(request: web.Request) -> Any:
        written.append(request.method)
        await never.wait()
        return web.json_response({})

    for credentials in (Fixed(), Awaited()):
        async with api(slowly, guard=lambda: 0.1, credentials=credentials) as client, asyncio.timeout(10):
            with pytest.raises(ClusterUnreachable, match="did not answer in time"):
                await client.delete(PODS, "a", "ns")
    assert written == ["DELETE"]


async def test_a_list_reads_all_pages() -> None:
    def answer(request: web.Request) -> Any:
        at = int(request.query.get("continue", "0"))
        more = str(at + 1) if at < 2 else ""
        return {"metadata": {"resourceVersion": "9", "continue": more}, "items": [{"n": at}]}

    async with api(answer) as client:
        assert [page.items[0]["n"] async for page in client.pages(PODS, "ns")] == [0, 1, 2]


async def test_a_page_without_an_answer_is_requested_again_and_the_pages_before_it_are_not() -> None:
    requested, clock = list[int](), SteppedClock()

    def answer(request: web.Request) -> Any:
        at = int(request.query.get("continue", "0"))
        requested.append(at)
        if at == 1 and requested.count(1) < PAGE_TRIES:
            return refused(504)
        return {"metadata": {"resourceVersion": "9", "continue": "1" if at == 0 else ""}, "items": [{"n": at}]}

    async with api(answer, clock=clock) as client:
        listing = asyncio.create_task(_numbers(client))
        while not listing.done():
            await asyncio.sleep(0.005)
            await clock.advance(PAGE_RETRY_INTERVAL)
        assert listing.result() == [0, 1]
    assert requested == [0, *[1] * PAGE_TRIES]


async def test_the_first_page_is_requested_once() -> None:
    requested = list[str]()

    def answer(request: web.Request) -> Any:
        requested.append(request.path)
        return refused(504)

    async with api(answer) as client:
        with pytest.raises(ClusterUnreachable):
            await _numbers(client)
    assert len(requested) == 1


async def _numbers(client: Client) -> list[int]:
    return [entry["n"] async for page in client.pages(PODS, "ns") for entry in page.items]


async def test_a_page_with_too_many_bytes_is_requested_again_with_fewer_objects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes, requested = [10, 10, 5_000, 5_000, 5_000, 10], list[tuple[int, int]]()

    def answer(request: web.Request) -> Any:
        at, limit = int(request.query.get("continue", "0")), int(request.query["limit"])
        requested.append((at, limit))
        items = [{"n": number, "text": "x" * sizes[number]} for number in range(at, min(at + limit, len(sizes)))]
        more = str(at + limit) if at + limit < len(sizes) else ""
        return {"metadata": {"resourceVersion": "9", "continue": more}, "items": items}

    monkeypatch.setattr(client_module, "PAGE_REDUCTION", 2)
    monkeypatch.setattr(transport, "LARGEST_RESPONSE", 6_000)
    async with api(answer) as client:
        assert [entry["n"] async for page in client.pages(PODS, limit=2) for entry in page.items] == list(range(6))
        assert requested == [(0, 2), (2, 2), (2, 1), (3, 1), (4, 1), (5, 1)]
        sizes[3] = 10_000
        with pytest.raises(TooLarge, match=r"list pods: has at least 6,001 bytes, and at most 6,000 are read"):
            await _numbers(client)


@pytest.mark.parametrize("items", [[], [{"n": 1}] * 500])
async def test_a_list_without_end_is_given_up(items: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MAX_OBJECTS", 40)
    async with api(lambda _: {"metadata": {"continue": "on"}, "items": items}) as client:
        with pytest.raises(TooLarge, match=r"list pods: has at least \d+ objects, and at most 40 are read"):
            await _numbers(client)


async def test_a_watch_event_without_end_is_given_up() -> None:
    async def answer(request: web.Request) -> Any:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(OSError):
            while True:
                await response.write(b"x" * (1 << 20))
        return response

    async with api(answer) as client:
        with pytest.raises(TooLarge, match="watch pods: has at least"):
            await anext(client.watch(PODS, version="1"))


async def test_a_watch_reads_lines_of_any_length_across_chunks() -> None:
    long = "x" * 300_000

    async def answer(request: web.Request) -> Any:
        assert request.query["allowWatchBookmarks"] == "true"
        response = web.StreamResponse()
        await response.prepare(request)
        text = f'{{"type":"ADDED","object":{{"v":"{long}"}}}}\n{{"type":"BOOKMARK","object":{{"v":"b"}}}}\n'
        for start in range(0, len(text), 65_537):
            await response.write(text[start : start + 65_537].encode())
        return response

    async with api(answer) as client:
        found = [(event.kind, len(event.object["v"])) async for event in client.watch(PODS, "ns", version="1")]
    assert found == [("ADDED", 300_000), ("BOOKMARK", 1)]


async def test_an_object_that_is_nested_too_deeply_does_not_keep_the_others_from_being_read() -> None:
    # The API server stores 10,000 levels in a field that it does not know, and lists the objects of all tenants.
    deep = '{"kept": "[", "a": ' + '{"\\"]": [' * 4_000 + "1" + "]}" * 4_000 + ', "z": []}'
    listed = f'{{"metadata": {{}}, "items": [{{"n": 0}}, {{"n": 1, "spec": {deep}}}, {{"n": 2}}]}}'
    event = f'{{"type": "ADDED", "object": {{"n": 1, "spec": {deep}}}}}\n'

    def answer(request: web.Request) -> web.Response:
        return web.Response(text=event if "watch" in request.query else listed)

    async with api(answer) as client:
        assert await _numbers(client) == [0, 1, 2]
        (found,) = [one.object async for one in client.watch(PODS, version="1")]
    spec = found["spec"]
    assert (found["n"], spec["kept"], spec["a"].keys(), spec["z"]) == (1, "[", {'"]'}, [])


async def test_a_watch_with_an_old_version_raises_expired_from_status_or_event() -> None:
    line = '{"type":"ERROR","object":{"code":410,"reason":"Expired","message":"too old"}}\n'
    for answer in (lambda _: refused(410), lambda _: web.Response(text=line)):
        async with api(answer) as client:
            with pytest.raises(Expired):
                async for _ in client.watch(PODS, "ns", version="1"):
                    pass


@pytest.mark.parametrize(
    "line", ['{"kind":"Status","status":"Failure","message":"upstream went away"}', '{"type":"ADDED"}', "[]", "3"]
)
async def test_an_invalid_watch_event_ends_the_watch_like_a_lost_connection(line: str) -> None:
    async with api(lambda _: web.Response(text=f"{line}\n")) as client:
        with pytest.raises(ClusterUnreachable, match="watch pods: expected a watch event"):
            async for _ in client.watch(PODS, "ns", version="1"):
                pass


async def test_only_the_metadata_of_objects_is_listed_and_watched_on_request() -> None:
    accepted = list[str]()

    def answer(request: web.Request) -> Any:
        accepted.append(request.headers["Accept"])
        if "watch" in request.query:
            return web.Response(body=json.dumps({"type": "ADDED", "object": {"metadata": {"name": "a"}}}))
        return {"metadata": {"resourceVersion": "9"}, "items": []}

    async with api(answer) as client:
        for metadata in (True, False):
            async for _page in client.pages(SECRETS, metadata=metadata):
                pass
            async for _event in client.watch(SECRETS, version="9", metadata=metadata):
                pass
    part = "application/json;as=PartialObjectMetadata"
    assert accepted == [f"{part}List;g=meta.k8s.io;v=v1", f"{part};g=meta.k8s.io;v=v1", *["application/json"] * 2]
