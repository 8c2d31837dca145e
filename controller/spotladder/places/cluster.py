"""The TieredJobs and CapacityTiers of a cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, Self

from spotladder.checkpoints import outputs
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store import folder_of
from spotladder.clusters.cache import Cache
from spotladder.clusters.client import Client
from spotladder.clusters.clock import SystemClock
from spotladder.clusters.errors import NotFound
from spotladder.clusters.shared_reads import SharedReads
from spotladder.display.report import gather
from spotladder.display.report.facts import RunFacts
from spotladder.errors import EnvironmentFailure, SpotladderError
from spotladder.output.redact import redacted
from spotladder.places.attempt_output import HERE, cluster_of, is_home, is_live, sources
from spotladder.places.deleted import BUCKETS, deleted_from
from spotladder.places.fleet import ClusterSeen, lost, names_of_clusters, seen
from spotladder.places.place import Object, Printed
from spotladder.places.recorded import stored_output
from spotladder.records.recorded_job import recorded_in
from spotladder.resources import CAPACITYTIERS, TIEREDJOBS, APIResource

REPORT_INTERVAL = 10.0
"""Seconds between two reads of the records of one job."""

FLEET_INTERVAL = 30.0
"""Seconds between two reads of a cluster of the fleet."""

DELETED_INTERVAL = 600.0
"""Seconds between two searches for deleted jobs in the buckets."""

SHOWN_OUTPUTS = 8
"""Number of sources of one attempt whose output is shown: the driver and the first ranks."""

KEPT_METADATA = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp")
"""What is shown of the metadata of a job or a tier. Users write the rest, up to the size of an object."""

LINES = 2_000
"""Number of last lines that are requested of a program that runs."""

LONGEST = 65_536
"""Maximum bytes of the output of a program that runs."""

LARGEST_ANSWER = 8 << 20
"""Maximum bytes of a whole output that Ray's dashboard sends. It has no way to ask for the end."""

OUTPUT_INTERVAL = 2.0
"""Seconds between two reads of the output of one attempt, however many pages show it."""

OUTPUT_TIMEOUT = 15.0
"""Seconds after which reading an output is given up."""


class Reached(Protocol):
    """A member cluster, through a context of the user's kubeconfig."""

    @property
    def client(self) -> Client: ...


class Members(Protocol):
    """The clusters of attempts, by their names in the controller's settings."""

    def on(self, name: str) -> AbstractAsyncContextManager[Reached]:
        """The cluster, until the block ends. Raises SpotladderError."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A TieredJob or a CapacityTier of the cluster, as the cache needs it."""

    name: str
    namespace: str
    uid: str
    resource_version: str
    uri: str
    thing: Object = field(compare=False)

    @classmethod
    def of(cls, thing: Mapping[str, Any]) -> Self:
        metadata = {key: thing["metadata"][key] for key in KEPT_METADATA if key in thing["metadata"]}
        spec = thing.get("spec") or {}
        shown = {key: spec[key] for key in ("tiers", "budget", "deadline", "cluster") if key in spec}
        kept = {"metadata": metadata, "spec": shown, "status": thing.get("status") or {}}
        uri = str((spec.get("checkpoints") or {}).get("uri") or "")
        namespace = metadata.get("namespace", "")
        version = thing["metadata"]["resourceVersion"]
        return cls(metadata["name"], namespace, metadata["uid"], version, uri, kept)


class JobsOfCluster:
    """The TieredJobs of one namespace of a cluster, or of all ("").

    A page for many users, who may see less than its own identity, is `shared`: it reads no bucket, no dashboard and no
    member, to which credentials of others would give access.
    """

    def __init__(
        self, client: Client, context: str, namespace: str, members: Members | None = None, *, shared: bool = False
    ) -> None:
        self.name = context
        self.title = context
        self._client = client
        self._namespace = namespace
        self._deleted: dict[tuple[str, str], _Held] = {}
        self._members = members
        self._shared = shared
        clock = SystemClock()
        self._outputs = SharedReads[tuple[str, int], Sequence[Printed]](clock, lambda _printed: OUTPUT_INTERVAL)
        self._clusters = SharedReads[str, ClusterSeen](clock, lambda _seen: FLEET_INTERVAL)
        self._changed: Callable[[str], None] = lambda _namespace: None
        self._reports = SharedReads[str, RunFacts](clock, lambda _facts: REPORT_INTERVAL)
        self._jobs = self._cache(client, TIEREDJOBS, namespace)
        self._tiers = self._cache(client, CAPACITYTIERS, "")

    def _cache(self, client: Client, kind: APIResource, namespace: str) -> Cache[_Held]:
        return Cache(
            client, kind, _Held.of, clock=SystemClock(), namespace=namespace,
            changed=lambda before, after: self._tell(after or before),
        )  # fmt: skip

    def _tell(self, held: _Held | None) -> None:
        self._changed(held.namespace if held else "")

    @property
    def problem(self) -> str:
        if self._jobs.silent:
            return "the API server does not answer"
        return self._jobs.problem or self._tiers.problem

    def jobs(self) -> Sequence[Object]:
        deleted = [held for (space, name), held in self._deleted.items() if self._jobs.get(name, space) is None]
        return [held.thing for held in (*self._jobs.all(), *deleted)]

    def _held(self, namespace: str, name: str) -> _Held | None:
        return self._jobs.get(name, namespace) or self._deleted.get((namespace, name))

    def tiers(self) -> Sequence[Object]:
        return [held.thing for held in sorted(self._tiers.all(), key=lambda held: held.name)]

    async def facts(self, namespace: str, name: str) -> RunFacts | None:
        held = self._held(namespace, name)
        if held is None or not held.uri.startswith(BUCKETS):
            return None
        if self._shared:
            raise _elsewhere("buckets", "report", held)
        return await self._reports.get(held.uid, lambda: asyncio.to_thread(_report, held))

    async def clusters(self) -> Sequence[ClusterSeen]:
        names = [HERE, *sorted(names_of_clusters(self.tiers(), self.jobs()))]
        return await asyncio.gather(*(self._clusters.get(name, partial(self._seen, name)) for name in names))

    async def _seen(self, name: str) -> ClusterSeen:
        """The home cluster (""), or a member."""
        try:
            async with self._on(name) as client:
                return await seen(client, name or self.title, home=not name)
        except SpotladderError as error:
            return lost(name or self.title, str(error), home=not name)

    async def printed(self, namespace: str, name: str, attempt: int) -> Sequence[Printed]:
        held = self._held(namespace, name)
        if held is None or not attempt:
            return ()
        return await self._outputs.get((held.uid, attempt), lambda: self._read_output(held, attempt))

    async def _read_output(self, held: _Held, attempt: int) -> Sequence[Printed]:
        """The output of the pods, as `spotladder logs` reads it; without pods the stored output."""
        async with asyncio.timeout(OUTPUT_TIMEOUT):
            if is_live(held.thing, attempt):
                return await self._of_pods(held, attempt)
            try:
                if found := await self._of_pods(held, attempt):
                    return found
            except SpotladderError:
                if self._shared or not held.uri.startswith(BUCKETS):
                    raise
            if self._shared:
                raise _elsewhere("buckets", "logs", held)
            return await asyncio.to_thread(self._stored, held, attempt)

    async def _of_pods(self, held: _Held, attempt: int) -> Sequence[Printed]:
        async with self._on(cluster_of(held.thing, attempt)) as client:
            found = [each for each in await sources(client, held.namespace, held.thing, attempt) if each.started]
            found = found[:SHOWN_OUTPUTS]
            if self._shared and not all(each.container for each in found):
                raise _elsewhere("dashboards of Ray", "logs", held)
            texts = [
                await _end(each.printed(client, held.namespace, tail=LINES, most=LARGEST_ANSWER)) for each in found
            ]
        shown = await asyncio.to_thread(lambda: [redacted(text) for text in texts])
        return [
            Printed("driver" if len(found) == 1 else source.pod, text)
            for source, text in zip(found, shown, strict=True)
            if text
        ]

    @asynccontextmanager
    async def _on(self, cluster: str) -> AsyncIterator[Client]:
        if is_home(cluster):
            yield self._client
        elif self._members is None:
            raise EnvironmentFailure(f"this page has no access to cluster {cluster}")
        else:
            async with self._members.on(cluster) as reached:
                yield reached.client

    def _stored(self, held: _Held, attempt: int) -> Sequence[Printed]:
        if not held.uri.startswith(BUCKETS):
            return ()
        folder = folder_of(open_store(held.uri), held.name)
        return stored_output(folder, held.uid, attempt, SHOWN_OUTPUTS)

    async def wait_for_sync(self) -> None:
        await self._jobs.wait_for_sync()

    async def follow(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        async with asyncio.TaskGroup() as group:
            group.create_task(self._jobs.run())
            group.create_task(self._tiers.run())
            group.create_task(self._find_deleted())

    async def _find_deleted(self) -> None:
        """Search for deleted jobs at intervals. A bucket that this machine cannot read has none."""
        uris: set[str] = set()
        while not self._shared:
            await self._jobs.wait_for_sync()
            existing = list(self._jobs.all())
            uris |= {held.uri for held in existing}
            found, _ = await asyncio.to_thread(deleted_from, uris, {held.uid for held in existing}, self._namespace)
            newest: dict[tuple[str, str], _Held] = {}
            for uri, job in found:
                key = (job["metadata"]["namespace"], job["metadata"]["name"])
                newest.setdefault(key, _Held(key[1], key[0], job["metadata"]["uid"], "", uri, job))
            self._deleted = newest
            for each in {each.namespace for each in newest.values()}:
                self._changed(each)
            await asyncio.sleep(DELETED_INTERVAL)


def _elsewhere(what: str, command: str, held: _Held) -> SpotladderError:
    return EnvironmentFailure(
        f"this page has no access to {what}; with your own: spotladder {command} {held.name} -n {held.namespace}"
    )


def _report(held: _Held) -> RunFacts:
    looked = None if held.thing.get("deleted") else time.time()
    return gather(recorded_in(folder_of(open_store(held.uri), held.name), held.uid, looked))


async def _end(pieces: AsyncIterator[bytes]) -> str:
    """The last `LONGEST` bytes, from the beginning of a line; "" if the pod is gone."""
    kept = bytearray()
    try:
        async for piece in pieces:
            kept += piece
            if len(kept) > 2 * LONGEST:
                del kept[: -LONGEST - 1]
    except NotFound:
        return ""
    return outputs.end_of(kept.decode(errors="replace"), LONGEST)
