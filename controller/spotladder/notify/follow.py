"""Follows the jobs of places, and puts what happens to them into an outbox."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from spotladder.notify.notices import Kind, Notice, notices
from spotladder.notify.outbox import Outbox
from spotladder.places.place import FollowedPlace, Object
from spotladder.timestamps import seconds_of

LOOK_INTERVAL = 1.0
"""Minimum seconds between two reads of jobs that change all the time."""


def is_new(job: Mapping[str, Any], began: float) -> bool:
    """Whether the job was created since then. A deleted job that its records show was a job before."""
    created = job["metadata"].get("creationTimestamp")
    return bool(created) and not job.get("deleted") and seconds_of(created) >= began


class Follower:
    """Collects new notices of these kinds about the jobs of these places. Calls `told` with each.

    `names` are the names of the jobs; if it is empty, all jobs."""

    def __init__(
        self,
        places: Sequence[FollowedPlace],
        outbox: Outbox,
        kinds: Collection[Kind] = frozenset(Kind),
        told: Callable[[Notice], None] = lambda _notice: None,
        *,
        names: Collection[str] = (),
    ) -> None:
        self._places, self._outbox, self._kinds, self._told = places, outbox, kinds, told
        self._names = names
        self._began = time.time()
        self._seen: dict[tuple[str, str, str], Object] = {}
        self._changed = asyncio.Event()

    async def follow(self) -> None:
        """Follow until cancelled. The outbox runs concurrently."""
        async with asyncio.TaskGroup() as group:
            for place in self._places:
                group.create_task(place.follow(lambda _namespace: self._changed.set()))
            while True:
                self.look()
                await asyncio.sleep(LOOK_INTERVAL)
                await self._changed.wait()
                self._changed.clear()

    def look(self) -> None:
        """Compare each job with its last version."""
        seen, now = {}, time.time()
        for place in self._places:
            for job in place.jobs():
                metadata = job["metadata"]
                key = (place.name, metadata["namespace"], metadata["name"])
                seen[key] = job
                before = self._before(key, job)
                found = [] if before is job else notices(place.title, before, job, now)
                wanted = [notice for notice in found if notice.kind in self._kinds and self._is_followed(notice.job)]
                for notice in wanted:
                    self._told(notice)
                self._outbox.add(wanted)
        self._seen = seen

    def _before(self, key: tuple[str, str, str], job: Object) -> Mapping[str, Any]:
        """The last version of the job; {} for a new job, and the job itself if it is older than the process."""
        known = self._seen.get(key)
        if known is not None and known["metadata"].get("uid") == job["metadata"].get("uid"):
            return known
        return {} if is_new(job, self._began) else job

    def _is_followed(self, name: str) -> bool:
        return not self._names or name in self._names
