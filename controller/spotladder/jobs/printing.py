"""Prints the output of a job's program, attempt by attempt."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from spotladder.backoff import delay
from spotladder.checkpoints import outputs
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store import folder_of
from spotladder.clusters.errors import ClusterUnreachable, Forbidden, NotFound, Throttled
from spotladder.display import job_text
from spotladder.errors import SpotladderError
from spotladder.jobs.attempt_clusters import AttemptClusters
from spotladder.jobs.connected_cluster import ConnectedCluster, Object
from spotladder.jobs.waiting import OUTAGE_TIMEOUT, OutageTolerance
from spotladder.output.lines import Lines
from spotladder.places.attempt_output import Source, cluster_of, is_home, is_live, newest_attempt, record_of, sources

POLL_INTERVAL, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two polls for pods that do not exist yet, and at most until a broken stream is opened again."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Printer:
    """Where output goes: `write` gets whole lines, `note` remarks about them. `flush` is called after each piece of the
    output, and may wait before the next one is read."""

    write: Callable[[str], object]
    note: Callable[[str], object]
    flush: Callable[[], Awaitable[None]]


class Printing:
    """Prints the output of a job, attempt by attempt."""

    def __init__(
        self,
        home: ConnectedCluster,
        clusters: AttemptClusters,
        name: str,
        tail: int | None,
        to: Printer,
        *,
        follow: bool,
        every_pod: bool,
    ) -> None:
        self._home = home
        self._clusters = clusters
        self._name = name
        self._tail = tail
        self._to = to
        self._follow = follow
        self._every_pod = every_pod
        self._tolerance = OutageTolerance(OUTAGE_TIMEOUT)

    async def attempts(self, only: int | None) -> None:
        """Print the attempts in order; with --follow also future ones."""
        number = only or 1
        while True:
            job = await self._job()
            if number <= newest_attempt(job):
                await self._attempt(job, number, only=only is not None)
                if only:
                    return
                number += 1
            elif _ended(job) or not self._follow:
                if number == 1:
                    self._to.note(f"tieredjob {self._name} has no attempts yet")
                return
            else:
                await asyncio.sleep(POLL_INTERVAL)

    async def _attempt(self, job: Object, number: int, only: bool) -> None:
        where = cluster_of(job, number)
        try:
            async with self._clusters.on(where) as cluster:
                await self._printed(cluster, job, number)
        except SpotladderError as error:
            kept, reasons = (False, []) if is_home(where) or is_live(job, number) else await self._kept(job, number)
            if not kept and (is_home(where) or only):
                raise
            lines = [f"==> {title(job, number)} <==", str(error), *(reasons if kept else ())]
            self._to.note("\n".join(lines))

    async def _printed(self, cluster: ConnectedCluster, job: Object, number: int) -> None:
        found = await self._sources(cluster, job, number)
        while self._follow and not any(source.started for source in found) and is_live(job, number):
            await asyncio.sleep(POLL_INTERVAL)
            job = await self._job()
            found = await self._sources(cluster, job, number)
        self._to.note(f"==> {title(job, number)} <==")
        started = [source for source in found if source.started]
        failed = await self._print_all(cluster, started, number)
        if started and len(failed) < len(started):
            reasons = failed
        elif is_live(job, number):
            reasons = failed or [_why_not_yet(found)]
        else:
            _, reasons = await self._kept(job, number)
            where = "" if is_home(cluster_of(job, number)) else f" in its cluster (context {cluster.context})"
            reasons = [*(failed or [f"the pods of the attempt are gone{where}"]), *reasons]
        for why in reasons:
            self._to.note(why)
        shown = {source.pod for source in started}
        while self._follow and is_live(job, number):  # A JobSet restarts inside its attempt, with new pods.
            await asyncio.sleep(POLL_INTERVAL)
            job = await self._job()
            found = await self._sources(cluster, job, number)
            started = [source for source in found if source.started and source.pod not in shown]
            shown |= {source.pod for source in started}
            for why in await self._print_all(cluster, started, number):
                self._to.note(why)

    async def _sources(self, cluster: ConnectedCluster, job: Object, number: int) -> list[Source]:
        return await self._through_outages(
            lambda: sources(cluster.client, cluster.namespace, job, number, every_pod=self._every_pod)
        )

    async def _job(self) -> Object:
        return await self._through_outages(lambda: self._home.job(self._name))

    async def _through_outages(self, read: Callable[[], Awaitable[T]]) -> T:
        """What the API server answers; with `follow`, after its outage."""
        while self._follow:
            with self._tolerance:
                return await read()
            await asyncio.sleep(POLL_INTERVAL)
        return await read()

    async def _print_all(self, cluster: ConnectedCluster, found: Iterable[Source], number: int) -> list[str]:
        """Print these logs beside each other. Returns the reasons of those that cannot be printed."""
        return [why for why in await asyncio.gather(*(self._print(cluster, one, number) for one in found)) if why]

    async def _print(self, cluster: ConnectedCluster, source: Source, number: int) -> str:
        """Print one log, in whole lines, so that those of parallel logs do not mix. Returns the reason if that fails,
        otherwise ""."""
        prefix, lines = f"[{source.pod}] " if self._every_pod else "", Lines()
        try:
            async for piece in self._pieces(cluster, source, number):
                self._write(prefix, lines.add(piece))
                await self._to.flush()
            self._write(prefix, lines.rest())
            await self._to.flush()
        except NotFound:
            return f"pod {source.pod} and its log are gone"
        except Forbidden as error:
            if source.container:
                raise
            return f"the output of {source.pod} cannot be read: {error}"
        except (ClusterUnreachable, Throttled):
            if source.container and not self._follow:
                raise
            return _silent(source)
        return ""

    def _write(self, prefix: str, lines: Iterable[str]) -> None:
        for line in lines:
            self._to.write(f"{prefix}{line}\n")

    async def _pieces(self, cluster: ConnectedCluster, source: Source, number: int) -> AsyncIterator[bytes]:
        """The output of a source of this attempt. A followed stream that breaks is opened again at its end while the
        attempt is live, and the interrupted line ends at the break."""
        tail, piece, opened, breaks = self._tail, b"\n", False, 0
        while True:
            try:
                async for piece in source.printed(cluster.client, cluster.namespace, follow=self._follow, tail=tail):
                    tail, opened, breaks = 0, True, 0
                    yield piece
            except (ClusterUnreachable, Throttled) as error:
                if not self._follow:
                    raise
                broken = error
            else:
                return
            if not piece.endswith(b"\n"):
                yield b"\n"
            piece, breaks = b"\n", breaks + 1
            await asyncio.sleep(delay(POLL_INTERVAL, LONGEST_PAUSE, breaks, random.random()))  # noqa: S311
            live = is_live(await self._job(), number)
            if not live and not opened:
                raise broken
            if breaks == 1:
                missing = (
                    f"the stream of {source.pod} broke: spotladder logs {self._name} prints lines that are missing"
                )
                self._to.note(missing if source.container else _silent(source))
            if not live:
                return

    async def _kept(self, job: Object, number: int) -> tuple[bool, list[str]]:
        """Print the stored output of an ended attempt. Returns whether it exists, and remarks for stderr."""
        uri = job["spec"]["checkpoints"]["uri"]
        try:
            store = outputs.of_job(folder_of(open_store(uri), self._name), job["metadata"]["uid"])
            found = await asyncio.to_thread(outputs.kept, store, number)
            newest = max((output.restart for output in found), default=0)
            selected = found if self._every_pod else [output for output in found if output.restart == newest][:1]
            texts = await asyncio.to_thread(outputs.read, store, selected)
        except SpotladderError as error:
            return False, [f"the stored output cannot be read from this machine: {error}"]
        if not found:
            return False, [f"no stored output found in {store.uri}"]
        for output, text in zip(selected, texts, strict=True):
            lines = text.splitlines()
            prefix = f"[{output.title}] " if self._every_pod else ""
            self._write(prefix, lines if self._tail is None else lines[len(lines) - min(self._tail, len(lines)) :])
        others = [output.title for output in found if output not in selected]
        more = [f"also stored: {', '.join(others)} (--all-pods prints all)"] if others else []
        return True, [f"stored output from {store.uri}", *more]


def title(job: Mapping[str, Any], number: int) -> str:
    """The title of an attempt: number, tier, cluster, outcome and steps."""
    known = record_of(job, number)
    name = cluster_of(job, number)
    where = "" if is_home(name) else f" in cluster {name}"
    if known is None:
        status = job.get("status") or {}
        return f"attempt {number} on {status.get('tier', '?')}{where}"
    steps = f"steps {known.get('startStep', 0)} → {known.get('endStep', 0)}"
    return f"attempt {number} on {known.get('tier', '?')}{where}: {known.get('reason', '?')}, {steps}"


def _silent(source: Source) -> str:
    if source.container:
        return f"the log of {source.pod} cannot be read: its node does not answer"
    return f"the dashboard of {source.pod} does not answer: it is starting, or its node is lost"


def _why_not_yet(found: list[Source]) -> str:
    if found:
        return f"pod {found[0].pod} has not started yet"
    return "the pods of the attempt do not exist yet (see `spotladder events NAME --all`)"


def _ended(job: Mapping[str, Any]) -> bool:
    return (job.get("status") or {}).get("phase") in job_text.ENDED
