"""The TieredJobs of a cluster, for the page."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store import folder_of
from spotladder.clusters.cache import Cache
from spotladder.clusters.client import Client
from spotladder.clusters.clock import SystemClock
from spotladder.display.report import gather
from spotladder.display.report.facts import Facts
from spotladder.records.recorded_job import recorded_in
from spotladder.resources import TIEREDJOBS
from spotladder.web.places import Object

BUCKETS = ("s3://", "gs://", "az://")
"""Addresses whose records the page reads. A path would be one of this machine."""

REPORT_INTERVAL = 10.0
"""Seconds between two reads of the records of one job."""

KEPT_REPORTS = 32
"""Number of jobs whose newest report is kept."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A TieredJob of the cluster, as the cache needs it."""

    name: str
    namespace: str
    uid: str
    resource_version: str
    uri: str
    thing: Object = field(compare=False)

    @classmethod
    def of(cls, thing: Mapping[str, Any]) -> Self:
        metadata = {key: value for key, value in thing["metadata"].items() if key != "managedFields"}
        kept = {"metadata": metadata, "status": thing.get("status") or {}}
        uri = str(((thing.get("spec") or {}).get("checkpoints") or {}).get("uri") or "")
        return cls(metadata["name"], metadata["namespace"], metadata["uid"], metadata["resourceVersion"], uri, kept)


class JobsOfCluster:
    """The TieredJobs of one namespace of a cluster, or of all ("")."""

    def __init__(self, client: Client, context: str, namespace: str) -> None:
        self.name = context
        self.title = context
        self._changed: Callable[[], None] = lambda: None
        self._read: dict[str, tuple[float, Facts]] = {}
        self._jobs: Cache[_Held] = Cache(
            client, TIEREDJOBS, _Held.of, clock=SystemClock(), namespace=namespace,
            changed=lambda _before, _after: self._changed(),
        )  # fmt: skip

    @property
    def problem(self) -> str:
        if self._jobs.problem:
            return self._jobs.problem
        return "the API server does not answer" if self._jobs.silent else ""

    def jobs(self) -> Sequence[Object]:
        return [held.thing for held in self._jobs.all()]

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

    async def follow(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        await self._jobs.run()
