"""Enforces `limits.nodes`: the number of nodes of a CapacityTier that all jobs together may hold.

A worker counts as a node, as for the cost, from the moment at which its attempt is persisted. The check uses only
persisted state and existing objects, so a restarted controller gets the same result. Of two jobs with a persisted
attempt that is not launched, the older job has precedence. A standby attempt holds nodes too, and every planned attempt
has precedence over it: it is launched only if there is room beside all of these. An earlier attempt that is being
removed holds its nodes until its pods are gone, also against the next attempt of its own job.

The nodes of each tier are summed up: a check costs time only for the attempts that wait on the tier, and for the jobs
that have changed since the last check.

A job that finds a tier full is woken when nodes of the tier become free. The oldest jobs that fit are woken, so that a
single free node does not wake every job that waits for it; a job that was left out checks again when it polls.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf

from spotladder.api.capacitytier import ApplyTo
from spotladder.api.stored import CapacityRecord, JobRecord
from spotladder.clusters.cache import Scoped
from spotladder.core.model import Instant
from spotladder.operator.inventory.inventory import JobKey

Age = tuple[Instant, str]
"""The older of two jobs has the lower value."""

_OLDEST: Age = (-inf, "")


@dataclass(frozen=True, slots=True)
class _Holding:
    """An attempt on a CapacityTier. One that is not `launched` waits for its nodes."""

    capacity: str
    age: Age
    workers: int
    launched: bool


@dataclass(slots=True)
class _Holdings:
    """The attempts on one CapacityTier: the totals of the launched ones, and the waiting ones, oldest job first."""

    workers: int = 0
    attempts: int = 0
    waiting: list[tuple[Age, int]] = field(default_factory=list)

    def add(self, holding: _Holding) -> None:
        if holding.launched:
            self.workers, self.attempts = self.workers + holding.workers, self.attempts + 1
        else:
            insort(self.waiting, (holding.age, holding.workers))

    def remove(self, holding: _Holding) -> None:
        if holding.launched:
            self.workers, self.attempts = self.workers - holding.workers, self.attempts - 1
        else:
            del self.waiting[bisect_left(self.waiting, (holding.age, holding.workers))]

    def nodes(self, *, heads: bool, but: _Holding | None, before: Age | None) -> int:
        """The number of nodes of all attempts except `but`: the launched ones, and the waiting ones of jobs older than
        `before` (None: all waiting ones). `heads`: heads also run on nodes of the tier."""
        ahead = self.waiting if before is None else self.waiting[: bisect_left(self.waiting, (before,))]
        workers, attempts = self.workers + sum(workers for _, workers in ahead), self.attempts + len(ahead)
        if but is not None and (but.launched or before is None or but.age < before):
            workers, attempts = workers - but.workers, attempts - 1
        return workers + heads * attempts


@dataclass(frozen=True, slots=True)
class _Job:
    """What a job holds or waits for with its live attempt, and with its standby attempt, and what its earlier attempts
    still hold."""

    live: _Holding | None = None
    standby: _Holding | None = None
    left: tuple[_Holding, ...] = ()


@dataclass(frozen=True, slots=True)
class _Refused:
    """A job that found this CapacityTier full. It needs this number of nodes."""

    age: Age
    capacity: CapacityRecord
    needed: int


class Limits:
    """`workers` is the number of workers that a job holds or needs, and `standby_workers` that of its standby attempt;
    None for an invalid spec. `left` has, for each earlier attempt that is being removed, its tier and the number of its
    nodes. `launched` is whether any object of a job exists, `standby_launched` whether any of its standby attempt does.
    Call `touch` when any of these, or the job, may have changed. Calls `wake` with a job that may find room."""

    def __init__(
        self,
        jobs: Scoped[JobRecord],
        *,
        workers: Callable[[JobRecord], int | None],
        standby_workers: Callable[[JobRecord], int | None],
        left: Callable[[JobRecord], Sequence[tuple[str, int]]],
        launched: Callable[[JobKey], bool],
        standby_launched: Callable[[JobRecord], bool],
        wake: Callable[[JobKey], None],
    ) -> None:
        self._jobs = jobs
        self._workers = workers
        self._standby_workers = standby_workers
        self._left = left
        self._launched = launched
        self._standby_launched = standby_launched
        self._wake = wake
        self._launching: set[JobKey] = set()
        self._touched: set[JobKey] = set()
        self._held: dict[JobKey, _Job] = {}
        self._live: dict[str, _Holdings] = defaultdict(_Holdings)
        self._standby: dict[str, _Holdings] = defaultdict(_Holdings)
        self._refused: dict[str, dict[JobKey, _Refused]] = {}

    def touch(self, key: JobKey) -> None:
        """The job may have changed."""
        self._touched.add(key)
        if self._refused or self._jobs.get(key[1], key[0]) is None:
            self._sum_up()

    def full(self, capacity: CapacityRecord, job: JobRecord) -> str:
        """Why this job may not start on this tier now; "" if it may. Nodes that the job's own earlier attempts still
        hold are counted on the tier of its attempt: only there do they delay the launch."""
        most = _most(capacity)
        if most is None:
            return ""
        needed, tier = nodes(self._workers(job), capacity), f'CapacityTier "{capacity.name}" has limits.nodes {most}'
        if needed > most:
            return f"{tier}: the job needs {needed}, so it never fits: set limits.nodes to {needed} or more"
        held = self._live_nodes(capacity, job, before=_age(job) if job.capacity == capacity.name else None)
        held += self._standby_nodes(capacity, job, before=_OLDEST)
        if job.capacity != capacity.name:
            held -= self._left_nodes(capacity, job)
        if held + needed <= most:
            self._admit(capacity.name, job.key)
            return ""
        self._refused.setdefault(capacity.name, {})[job.key] = _Refused(_age(job), capacity, needed)
        return f"{tier}: {held} are in use, {needed} are needed"

    def room(self, capacity: CapacityRecord, job: JobRecord, *, held: int) -> int | None:
        """How many nodes a job may hold on this tier beyond the number `held`; None: any number."""
        most = _most(capacity)
        if most is None:
            return None
        others = self._live_nodes(capacity, job, before=None) + self._standby_nodes(capacity, job, before=None)
        return max(0, most - held - others)

    def admits_standby(self, capacity: CapacityRecord, job: JobRecord, *, held: int) -> bool:
        """Whether this job, which holds `held` nodes of the tier, may have a standby attempt there now."""
        most = _most(capacity)
        if most is None:
            return True
        others = self._live_nodes(capacity, job, before=None) + self._standby_nodes(capacity, job, before=_age(job))
        return held + others + nodes(self._standby_workers(job), capacity) <= most

    @contextmanager
    def launching(self, job: JobRecord) -> Iterator[None]:
        """Count the job as launched inside the block, before its objects are observed."""
        self._launching.add(job.key)
        self.touch(job.key)
        try:
            yield
        finally:
            self._launching.discard(job.key)
            self.touch(job.key)

    def _live_nodes(self, capacity: CapacityRecord, job: JobRecord, *, before: Age | None) -> int:
        """The nodes that the live attempts of other jobs hold, and those for which others wait: jobs that are older
        than `before`; None: all."""
        self._sum_up()
        own = self._held.get(job.key, _Job()).live
        return _nodes_of_others(self._live, capacity, own, before)

    def _standby_nodes(self, capacity: CapacityRecord, job: JobRecord, *, before: Age | None) -> int:
        """The same of standby attempts."""
        self._sum_up()
        own = self._held.get(job.key, _Job()).standby
        return _nodes_of_others(self._standby, capacity, own, before)

    def _left_nodes(self, capacity: CapacityRecord, job: JobRecord) -> int:
        """The nodes that the job's own earlier attempts still hold."""
        left = [held for held in self._held.get(job.key, _Job()).left if held.capacity == capacity.name]
        return sum(held.workers for held in left) + _has_heads(capacity) * len(left)

    def _sum_up(self) -> None:
        """Bring the sums up to date for the jobs that may have changed, and wake the jobs that wait for freed nodes."""
        freed: set[str] = set()
        while self._touched:
            key = self._touched.pop()
            job = self._jobs.get(key[1], key[0])
            if job is None:
                for name in list(self._refused):
                    self._admit(name, key)
            freed |= self._replace(key, _Job() if job is None else self._holdings(job))
        for name in freed & self._refused.keys():
            self._wake_refused(name)

    def _wake_refused(self, name: str) -> None:
        """Wake the oldest jobs that the free nodes of the CapacityTier suffice for."""
        refused = sorted(self._refused[name].items(), key=lambda entry: entry[1].age)
        capacity = refused[0][1].capacity
        launched = (
            sums[name].nodes(heads=_has_heads(capacity), but=None, before=_OLDEST)
            for sums in (self._live, self._standby)
        )
        room = (_most(capacity) or 0) - sum(launched)
        for key, job in refused:
            if job.needed <= room:
                room -= job.needed
                self._admit(name, key)
                self._wake(key)

    def _admit(self, name: str, key: JobKey) -> None:
        """The job does not wait for nodes of this CapacityTier."""
        refused = self._refused.get(name, {})
        refused.pop(key, None)
        if not refused:
            self._refused.pop(name, None)

    def _replace(self, key: JobKey, after: _Job) -> set[str]:
        """Replace what the job holds. Returns the CapacityTiers of which other jobs may get nodes."""
        before, freed = self._held.pop(key, _Job()), set()
        for sums, held, holds in (
            (self._live, before.live, after.live),
            (self._standby, before.standby, after.standby),
        ):
            if held is not None:
                sums[held.capacity].remove(held)
            if holds is not None:
                sums[holds.capacity].add(holds)
            if held is not None and (holds is None or _frees(held, holds)):
                freed.add(held.capacity)
        for left in before.left:
            self._live[left.capacity].remove(left)
        for left in after.left:
            self._live[left.capacity].add(left)
        freed |= {left.capacity for left in before.left if left not in after.left}
        if after != _Job():
            self._held[key] = after
        return freed

    def _holdings(self, job: JobRecord) -> _Job:
        live = standby = None
        if job.capacity and (workers := self._workers(job)) is not None:
            launched = job.key in self._launching or self._launched(job.key)
            live = _Holding(job.capacity, _age(job), workers, launched)
        if job.standby_capacity and (workers := self._standby_workers(job)) is not None:
            launched = job.key in self._launching or self._standby_launched(job)
            standby = _Holding(job.standby_capacity, _age(job), workers, launched)
        tiers, age = dict(job.tiers), _age(job)
        left = ((tiers.get(tier, ""), workers) for tier, workers in self._left(job))
        return _Job(live, standby, tuple(_Holding(name, age, workers, launched=True) for name, workers in left if name))


def nodes(workers: int | None, capacity: CapacityRecord) -> int:
    """The number of nodes of that CapacityTier for an attempt with these workers; 0 for an invalid spec."""
    return 0 if workers is None else workers + _has_heads(capacity)


def _nodes_of_others(
    sums: dict[str, _Holdings], capacity: CapacityRecord, own: _Holding | None, before: Age | None
) -> int:
    but = own if own is not None and own.capacity == capacity.name else None
    return sums[capacity.name].nodes(heads=_has_heads(capacity), but=but, before=before)


def _frees(held: _Holding, holds: _Holding) -> bool:
    fewer = holds.workers < held.workers or (held.launched and not holds.launched)
    return fewer or holds.capacity != held.capacity


def _has_heads(capacity: CapacityRecord) -> bool:
    return capacity.model is not None and capacity.model.spec.apply_to is ApplyTo.WORKERS_AND_HEAD


def _most(capacity: CapacityRecord) -> int | None:
    return capacity.model.spec.limits.nodes if capacity.model else None


def _age(job: JobRecord) -> Age:
    return job.created_at, job.uid
