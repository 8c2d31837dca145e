"""Where jobs are: this machine, or a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from spotladder.display.report.facts import RunFacts
from spotladder.places.fleet import ClusterSeen

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Printed:
    """The end of the output of one source of an attempt: "driver" or a rank."""

    source: str
    text: str


class Place(Protocol):
    """Jobs, each as a TieredJob object, as they were last seen."""

    name: str
    title: str

    @property
    def problem(self) -> str:
        """Why the jobs may be old or missing; "" if they are current."""

    def jobs(self) -> Sequence[Object]:
        """All jobs, as they were last seen. The age of one with `until`, in seconds since the epoch, counts to then."""

    def tiers(self) -> Sequence[Object]:
        """The CapacityTier objects that the user may read."""

    async def facts(self, namespace: str, name: str) -> RunFacts | None:
        """The report of the job; None if the place has no records of it. Raises SpotladderError."""

    async def printed(self, namespace: str, name: str, attempt: int) -> Sequence[Printed]:
        """What the programs of this attempt have printed. Raises SpotladderError, TimeoutError."""

    async def clusters(self) -> Sequence[ClusterSeen]:
        """The clusters of the place, home first."""


class FollowedPlace(Place, Protocol):
    """Jobs that `follow` keeps current."""

    async def wait_for_sync(self) -> None:
        """Return when all jobs were listed once, or when `problem` is set, while `follow` runs."""

    async def follow(self, changed: Callable[[str], None]) -> None:
        """Keep the jobs current until the task is cancelled. Calls `changed` after each change, with the namespace of
        the changed job, or with "" if something else has changed."""
