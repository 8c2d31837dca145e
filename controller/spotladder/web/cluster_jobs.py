"""The TieredJobs of a cluster, for the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from spotladder.clusters.cache import Cache
from spotladder.clusters.client import Client
from spotladder.clusters.clock import SystemClock
from spotladder.display.report.facts import Facts
from spotladder.resources import TIEREDJOBS
from spotladder.web.places import Object


@dataclass(frozen=True, slots=True)
class _Held:
    """A TieredJob of the cluster, as the cache needs it."""

    name: str
    namespace: str
    uid: str
    resource_version: str
    thing: Object = field(compare=False)

    @classmethod
    def of(cls, thing: Mapping[str, Any]) -> Self:
        metadata = {key: value for key, value in thing["metadata"].items() if key != "managedFields"}
        kept = {"metadata": metadata, "status": thing.get("status") or {}}
        return cls(metadata["name"], metadata["namespace"], metadata["uid"], metadata["resourceVersion"], kept)


class JobsOfCluster:
    """The TieredJobs of one namespace of a cluster, or of all ("")."""

    def __init__(self, client: Client, context: str, namespace: str) -> None:
        self.name = context
        self.title = context
        self._changed: Callable[[], None] = lambda: None
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

    def facts(self, namespace: str, name: str) -> Facts | None:  # noqa: ARG002 – the signature of the protocol
        return None

    async def follow(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        await self._jobs.run()
