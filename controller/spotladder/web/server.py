"""The server of the page: it shows each user what the user may see, and tells open pages about each change."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from importlib.resources import files
from typing import ParamSpec, TypeVar

from aiohttp import web

from spotladder.errors import SpotladderError
from spotladder.places.place import FollowedPlace, Object, Place
from spotladder.web.access import MAX_PAGES, OnThisMachine, Users, View
from spotladder.web.fleet_page import fleet_page
from spotladder.web.output_page import Attempt, output_page
from spotladder.web.pages import job_page, jobs_page, missing_page
from spotladder.web.plans import Plan, Plans, no_plan
from spotladder.web.rows import ROW_AGE, Rows, Selection
from spotladder.web.tiers_page import tiers_page

KEEP_ALIVE_INTERVAL = 15.0
"""Seconds after which a page without a message gets an empty one, so that a lost connection is noticed."""

VIEW_TIMEOUT = 10.0
"""Seconds after which a request is refused because the API server does not say what its user may see."""

RENDERED_AT_ONCE = 2
"""Number of pages that are rendered at the same time, each in a thread."""

KEPT_BODIES = 64
"""Number of different lists of jobs that are kept until the next change."""

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
"""Headers of every response. The charts have their sizes in style attributes; no script but the page's own runs."""

STREAM = {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
"""Headers of the stream of changes, which proxies must not buffer."""

STATIC = {"live.js": "text/javascript", "web.css": "text/css", "icon.svg": "image/svg+xml"}

HEALTH = "/healthz"
"""The path for probes, which needs no authentication."""

T = TypeVar("T")
P = ParamSpec("P")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Pages:
    """The pages over these places, for these users. `plan` finds the place of an ended job in its plan."""

    def __init__(self, places: Sequence[FollowedPlace], users: Users, plan: Plan = no_plan) -> None:
        self._places, self._users = places, users
        self._plans = Plans(plan, self._note)
        self._rows = Rows()
        self._renewed = asyncio.Event()
        self._changed = asyncio.Event()
        self._pending: set[str] = set()
        self._told = asyncio.Event()
        self._version = 0
        self._changes: dict[str, int] = {}
        self._open = Counter[str]()
        self._rendering = asyncio.Semaphore(RENDERED_AT_ONCE)
        self._bodies: dict[tuple[object, ...], asyncio.Task[str]] = {}

    def app(self) -> web.Application:
        """The application. The pages are as current as `follow` keeps them."""
        app = web.Application(middlewares=[self._guarded])
        app.add_routes(
            [
                web.get("/", self._jobs),
                web.get("/tiers", self._tiers),
                web.get("/fleet", self._fleet),
                web.get("/jobs/{place}/{namespace}/{name}", self._job),
                web.get("/jobs/{place}/{namespace}/{name}/output", self._output),
                web.get("/changes", self._stream),
                web.get("/static/{name}", _static),
                web.get(HEALTH, _health),
            ]
        )
        return app

    async def follow(self) -> None:
        """Keep the pages current until the task is cancelled, or until following a place fails."""
        async with asyncio.TaskGroup() as group:
            for place in self._places:
                group.create_task(place.follow(self._note))
            group.create_task(self._renew())

    def _note(self, namespace: str) -> None:
        self._pending.add(namespace)
        self._changed.set()

    async def _renew(self) -> None:
        while True:
            changed, self._pending = self._pending, set()
            self._changed.clear()
            jobs = [(place, job) for place in self._places for job in place.jobs()]
            await asyncio.to_thread(self._rows.renew, jobs, time.time())
            self._bodies = {}
            self._renewed.set()
            self._version += 1
            self._changes = {
                each: self._version if each in changed else self._changes.get(each, 0)
                for each in ("", *_namespaces(job for _, job in jobs))
            }
            if changed:
                self._told.set()
                self._told = asyncio.Event()
                await asyncio.sleep(self._users.interval)
            with suppress(TimeoutError):
                async with asyncio.timeout(ROW_AGE):
                    await self._changed.wait()

    async def _view(self, request: web.Request, namespaces: Iterable[str] | None = None) -> View:
        """What the user who asks sees of these namespaces, by default of those of all jobs. Raises TimeoutError."""
        if namespaces is None:
            namespaces = _namespaces(job for place in self._places for job in place.jobs())
        async with asyncio.timeout(VIEW_TIMEOUT):
            return await View.of(await self._users.of(request.headers), namespaces)

    async def _jobs(self, request: web.Request) -> web.StreamResponse:
        await self._renewed.wait()
        view, chosen = await self._view(request), Selection.of(request.query)
        key = (view.namespaces, chosen, *(place.problem for place in self._places))
        if key not in self._bodies:
            if len(self._bodies) >= KEPT_BODIES:
                self._bodies = {}
            self._bodies[key] = asyncio.create_task(self._rendered(self._list, view, chosen))
        return _html(await asyncio.shield(self._bodies[key]))

    def _list(self, view: View, chosen: Selection) -> str:
        return jobs_page(view.places(self._places), view.rows(self._rows.all), chosen, self._users.none)

    async def _rendered(self, page: Callable[P, str], *args: P.args, **kwargs: P.kwargs) -> str:
        async with self._rendering:
            return await asyncio.to_thread(page, *args, **kwargs)

    async def _tiers(self, request: web.Request) -> web.StreamResponse:
        places = (await self._view(request)).places(self._places)
        return _html(await self._rendered(tiers_page, places, time.time()))

    async def _fleet(self, request: web.Request) -> web.StreamResponse:
        places = (await self._view(request)).places(self._places)
        found = await asyncio.gather(*(place.clusters() for place in places))
        return _html(fleet_page(places, [each for clusters in found for each in clusters]))

    async def _job(self, request: web.Request) -> web.StreamResponse:
        place, job = await self._found(request, **request.match_info)
        if place is None or job is None:
            return _missing(request)
        facts, gap = await _read("records", place.facts(*_name(job)))
        if facts is not None:
            facts = replace(facts, plan=self._plans.of(facts))
        return _html(job_page(place, job, facts, time.time(), gap))

    async def _output(self, request: web.Request) -> web.StreamResponse:
        place, job = await self._found(request, **request.match_info)
        if place is None or job is None:
            return _missing(request)
        attempt = Attempt.of(job, request.query)
        texts, gap = await _read("output", place.printed(*_name(job), attempt.number))
        return _html(output_page(place, job, attempt, texts or (), gap))

    async def _found(
        self, request: web.Request, place: str, namespace: str, name: str
    ) -> tuple[Place | None, Object | None]:
        """The job, if the user sees it. A job that others see is missing as one that does not exist."""
        view = await self._view(request, [namespace])
        here = next((each for each in view.places(self._places) if each.name == place), None)
        jobs = [] if here is None else here.jobs()
        return here, next((job for job in jobs if _name(job) == (namespace, name)), None)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: `changed` after each change of what the user sees, until the user may see nothing."""
        name = (await self._users.of(request.headers)).name
        for is_open, most in ((self._open[name], self._users.pages), (self._open.total(), MAX_PAGES)):
            if is_open >= most:
                text = f"{is_open} pages are open, the maximum (no setting raises this limit): close one\n"
                raise web.HTTPServiceUnavailable(text=text)
        answer = web.StreamResponse(headers={**HEADERS, **STREAM})
        self._open[name] += 1
        try:
            seen = await self._changes_of(request)
            await answer.prepare(request)
            while True:
                before = seen
                with suppress(TimeoutError):
                    async with asyncio.timeout(KEEP_ALIVE_INTERVAL):
                        while seen == before:
                            told = self._told
                            if (seen := await self._changes_of(request)) == before:
                                await told.wait()
                await answer.write(b"event: changed\ndata:\n\n" if seen != before else b":\n\n")
        except (ConnectionResetError, web.HTTPException, SpotladderError, TimeoutError):
            if not answer.prepared:
                raise
            return answer
        finally:
            self._open -= Counter([name])

    async def _changes_of(self, request: web.Request) -> Mapping[str, int]:
        """The newest change of each part that the user may still see: rights may be lost during a request."""
        changes = self._changes
        view = await self._view(request, changes)
        return {namespace: version for namespace, version in changes.items() if view.shows(namespace)}

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse requests that name another host, as those of a foreign page whose name resolves to this one, and
        requests without a known user. Give every answer the headers."""
        if request.path == HEALTH:
            return await handler(request)
        host = request.host.rsplit(":", 1)[0].strip("[]").lower()
        if host not in self._users.hosts:
            return web.Response(status=421, text=f"this page is served only at {self._users.hosts[0]}\n")
        try:
            async with asyncio.timeout(VIEW_TIMEOUT):
                self._users.admit(await self._users.of(request.headers))
            answer = await handler(request)
        except web.HTTPException as error:
            error.headers.update(HEADERS)
            raise
        except (SpotladderError, TimeoutError):
            answer = web.Response(status=503, text="the cluster does not say what you may see: try again in a minute\n")
        if not answer.prepared:
            answer.headers.update(HEADERS)
        return answer


@asynccontextmanager
async def serving(
    places: Sequence[FollowedPlace], host: str | None, port: int, users: Users | None = None, plan: Plan = no_plan
) -> AsyncIterator[int]:
    """Serve the pages at this address, or with None at all addresses of this machine. Yields the port. The users are by
    default the one of this machine. Raises OSError if the port is in use."""
    pages = Pages(places, users or OnThisMachine(), plan)
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
    """The result of reading files, a bucket or a cluster, or the reason why they cannot be read."""
    try:
        async with asyncio.timeout(READ_TIMEOUT):
            return await reading, ""
    except TimeoutError:
        why = "it did not arrive in time; the next request tries again"
    except SpotladderError as error:
        why = str(error)
    return None, f"The {what} of the job cannot be read: {why}"


def _namespaces(jobs: Iterable[Object]) -> set[str]:
    return {job["metadata"]["namespace"] for job in jobs}


def _name(job: Object) -> tuple[str, str]:
    return job["metadata"]["namespace"], job["metadata"]["name"]


def _missing(request: web.Request) -> web.Response:
    name = "{namespace}/{name}".format(**request.match_info)
    return _html(missing_page("No such job", f"There is no job {name} here, or no longer."), status=404)


async def _health(_request: web.Request) -> web.StreamResponse:
    return web.Response(text="ok\n")


async def _static(request: web.Request) -> web.StreamResponse:
    name = request.match_info["name"]
    if name not in STATIC:
        raise web.HTTPNotFound
    body = files("spotladder.web").joinpath("static", name).read_bytes()
    return web.Response(body=body, content_type=STATIC[name], charset="utf-8")


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html")
