"""The TieredJobs and CapacityTiers of a cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from spotladder.checkpoints import outputs
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store import folder_of
from spotladder.clusters.cache import Cache
from spotladder.clusters.client import Client
from spotladder.clusters.clock import SystemClock
from spotladder.display.report import gather
from spotladder.display.report.facts import Facts
from spotladder.places.place import Object, Printed
from spotladder.records.recorded_job import recorded_in
from spotladder.resources import CAPACITYTIERS, TIEREDJOBS, APIResource

BUCKETS = ("s3://", "gs://", "az://")
"""Addresses whose records the page reads. A path would be one of this machine."""

REPORT_INTERVAL = 10.0
"""Seconds between two reads of the records of one job."""

KEPT_REPORTS = 32
"""Number of jobs whose newest report is kept."""

SHOWN_OUTPUTS = 8
"""Number of sources of one attempt whose output is shown: the driver and the first ranks."""


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
        metadata = {key: value for key, value in thing["metadata"].items() if key != "managedFields"}
        spec = thing.get("spec") or {}
        shown = {key: spec[key] for key in ("tiers", "budget", "deadline") if key in spec}
        kept = {"metadata": metadata, "spec": shown, "status": thing.get("status") or {}}
        uri = str((spec.get("checkpoints") or {}).get("uri") or "")
        namespace = metadata.get("namespace", "")
        return cls(metadata["name"], namespace, metadata["uid"], metadata["resourceVersion"], uri, kept)


class JobsOfCluster:
    """The TieredJobs of one namespace of a cluster, or of all ("")."""

    def __init__(self, client: Client, context: str, namespace: str) -> None:
        self.name = context
        self.title = context
        self._changed: Callable[[], None] = lambda: None
        self._read: dict[str, tuple[float, Facts]] = {}
        self._jobs = self._cache(client, TIEREDJOBS, namespace)
        self._tiers = self._cache(client, CAPACITYTIERS, "")

    def _cache(self, client: Client, kind: APIResource, namespace: str) -> Cache[_Held]:
        return Cache(
            client, kind, _Held.of, clock=SystemClock(), namespace=namespace,
            changed=lambda _before, _after: self._changed(),
        )  # fmt: skip

    @property
    def problem(self) -> str:
        if self._jobs.silent:
            return "the API server does not answer"
        return "; ".join(filter(None, (self._jobs.problem, self._tiers.problem)))

    def jobs(self) -> Sequence[Object]:
        return [held.thing for held in self._jobs.all()]

    def tiers(self) -> Sequence[Object]:
        return [held.thing for held in sorted(self._tiers.all(), key=lambda held: held.name)]

    def facts(self, namespace: str, name: str) -> Facts | None:
        held = self._jobs.get(name, namespace)
        if held is None or not held.uri.startswith(BUCKETS):
            return None
        now = time.time()
        before = self._read.get(held.uid)
        if before is not None and now - before[0] < REPORT_INTERVAL:
            return before[1]
        found = gather(recorded_in(folder_of(open_store(held.uri), name), held.uid, now))
        for uid in list(self._read)[: len(self._read) + 1 - KEPT_REPORTS]:
            del self._read[uid]
        self._read[held.uid] = (now, found)
        return found

    def printed(self, namespace: str, name: str, attempt: int) -> Sequence[Printed]:
        held = self._jobs.get(name, namespace)
        if held is None or not held.uri.startswith(BUCKETS):
            return ()
        store = outputs.of_job(folder_of(open_store(held.uri), name), held.uid)
        found = outputs.kept(store, attempt)[:SHOWN_OUTPUTS]
        texts = outputs.read(store, found)
        return [Printed(output.title, text) for output, text in zip(found, texts, strict=True)]

    async def follow(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        async with asyncio.TaskGroup() as group:
            group.create_task(self._jobs.run())
            group.create_task(self._tiers.run())
