"""The server of the page: it answers requests of this machine only and tells open pages about each change."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from typing import TypeVar

from aiohttp import web

from spotladder.errors import SpotladderError
from spotladder.places.place import Object, Place
from spotladder.web.fleet_page import fleet_page
from spotladder.web.output_page import Attempt, output_page
from spotladder.web.pages import job_page, jobs_page, missing_page
from spotladder.web.rows import ROW_AGE, Rows, Selection
from spotladder.web.tiers_page import tiers_page

MAX_PAGES = 250
"""Number of open pages that are told about changes."""

CHANGE_INTERVAL = 0.25
"""Seconds between two messages to the open pages, at least."""

KEEP_ALIVE_INTERVAL = 15.0
"""Seconds after which a page without a message gets an empty one, so that a lost connection is noticed."""

READ_TIMEOUT = 20.0
"""Seconds after which a page is shown without the records of its job."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Of every answer. The charts have their sizes in style attributes; no script but the page's own runs."""

STATIC = {"live.js": "text/javascript", "web.css": "text/css", "icon.svg": "image/svg+xml"}

T = TypeVar("T")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Pages:
    """The pages over these places."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._rows = Rows()
        self._renewed = asyncio.Event()
        self._changed = asyncio.Event()
        self._told = asyncio.Event()
        self._changes = 0
        self._open = 0

    def app(self) -> web.Application:
        """The application. The pages are as current as `follow` keeps them."""
        app = web.Application(middlewares=[_guarded])
        app.add_routes(
            [
                web.get("/", self._jobs),
                web.get("/tiers", self._tiers),
                web.get("/fleet", self._fleet),
                web.get("/jobs/{place}/{namespace}/{name}", self._job),
                web.get("/jobs/{place}/{namespace}/{name}/output", self._output),
                web.get("/changes", self._stream),
                web.get("/static/{name}", _static),
            ]
        )
        return app

    async def follow(self) -> None:
        """Keep the pages current until the task is cancelled, or until following a place fails."""
        async with asyncio.TaskGroup() as group:
            for place in self._places:
                group.create_task(place.follow(self._changed.set))
            group.create_task(self._renew())

    async def _renew(self) -> None:
        while True:
            changed = self._changed.is_set()
            self._changed.clear()
            jobs = [(place, job) for place in self._places for job in place.jobs()]
            await asyncio.to_thread(self._rows.renew, jobs, time.time())
            self._renewed.set()
            if changed:
                self._tell()
                await asyncio.sleep(CHANGE_INTERVAL)
            with suppress(TimeoutError):
                async with asyncio.timeout(ROW_AGE):
                    await self._changed.wait()

    def _tell(self) -> None:
        self._changes += 1
        self._told.set()
        self._told = asyncio.Event()

    async def _jobs(self, request: web.Request) -> web.StreamResponse:
        await self._renewed.wait()
        return _html(jobs_page(self._places, self._rows.all, Selection.of(request.query)))

    async def _tiers(self, _request: web.Request) -> web.StreamResponse:
        return _html(await asyncio.to_thread(tiers_page, self._places, time.time()))

    async def _fleet(self, _request: web.Request) -> web.StreamResponse:
        found = await asyncio.gather(*(place.clusters() for place in self._places))
        return _html(fleet_page(self._places, [each for clusters in found for each in clusters]))

    async def _job(self, request: web.Request) -> web.StreamResponse:
        place, job = self._found(**request.match_info)
        if place is None or job is None:
            return _missing(request)
        facts, gap = await _read("records", place.facts(*_name(job)))
        return _html(job_page(place, job, facts, time.time(), gap))

    async def _output(self, request: web.Request) -> web.StreamResponse:
        place, job = self._found(**request.match_info)
        if place is None or job is None:
            return _missing(request)
        attempt = Attempt.of(job, request.query)
        texts, gap = await _read("output", place.printed(*_name(job), attempt.number))
        return _html(output_page(place, job, attempt, texts or (), gap))

    def _found(self, place: str, namespace: str, name: str) -> tuple[Place | None, Object | None]:
        here = next((each for each in self._places if each.name == place), None)
        jobs = [] if here is None else here.jobs()
        return here, next((job for job in jobs if _name(job) == (namespace, name)), None)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: `changed` after each change."""
        if self._open >= MAX_PAGES:
            raise web.HTTPServiceUnavailable(text=f"more than {MAX_PAGES} pages are open: close one")
        answer = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        self._open += 1
        try:
            await answer.prepare(request)
            seen = self._changes
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(KEEP_ALIVE_INTERVAL):
                        while self._changes == seen:
                            await self._told.wait()
                told, seen = self._changes != seen, self._changes
                await answer.write(b"event: changed\ndata:\n\n" if told else b":\n\n")
        except ConnectionResetError:
            return answer
        finally:
            self._open -= 1


@asynccontextmanager
async def serving(places: Sequence[Place], host: str, port: int) -> AsyncIterator[int]:
    """Serve the pages at this address; yields the port. Raises OSError if the port is in use."""
    pages = Pages(places)
    runner = web.AppRunner(pages.app(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        async with asyncio.TaskGroup() as group:
            following = group.create_task(pages.follow())
            yield runner.addresses[0][1]
            following.cancel()
    finally:
        await runner.cleanup()


async def _read(what: str, reading: Awaitable[T]) -> tuple[T | None, str]:
    """What files, a bucket or a cluster have, or why it cannot be read."""
    try:
        async with asyncio.timeout(READ_TIMEOUT):
            return await reading, ""
    except TimeoutError:
        why = "it did not arrive in time; the next request tries again"
    except SpotladderError as error:
        why = str(error)
    return None, f"The {what} of the job cannot be read: {why}"


def _name(job: Object) -> tuple[str, str]:
    return job["metadata"]["namespace"], job["metadata"]["name"]


def _missing(request: web.Request) -> web.Response:
    name = "{namespace}/{name}".format(**request.match_info)
    return _html(missing_page("No such job", f"There is no job {name} here, or no longer."), status=404)


@web.middleware
async def _guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse requests that name another host, as those of a foreign page whose name resolves to this machine, and give
    every answer the headers."""
    host = request.host.rsplit(":", 1)[0].strip("[]")
    if host not in ("127.0.0.1", "localhost", "::1"):
        return web.Response(status=421, text="this page is only for this machine: open http://localhost\n")
    try:
        answer = await handler(request)
    except web.HTTPException as error:
        error.headers.update(HEADERS)
        raise
    if not answer.prepared:
        answer.headers.update(HEADERS)
    return answer


async def _static(request: web.Request) -> web.StreamResponse:
    name = request.match_info["name"]
    if name not in STATIC:
        raise web.HTTPNotFound
    body = files("spotladder.web").joinpath("static", name).read_bytes()
    return web.Response(body=body, content_type=STATIC[name], charset="utf-8")


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html")
