"""The jobs and nodes that use each CapacityTier. Each query first counts the jobs that have changed again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from spotladder.api.stored import JobRecord
from spotladder.clusters.cache import Scoped
from spotladder.core.model import PodRole
from spotladder.operator.inventory.inventory import JobKey
from spotladder.workloads.records import PodRecord


@dataclass(frozen=True, slots=True)
class _Used:
    """What one job uses: the CapacityTiers that its attempts hold or wait for, and the nodes of its workers and heads,
    each with its CapacityTier."""

    tiers: frozenset[str] = frozenset()
    workers: frozenset[tuple[str, str]] = frozenset()
    heads: frozenset[tuple[str, str]] = frozenset()


@dataclass(slots=True)
class _Usage:
    """The usage of one CapacityTier by all jobs. A node may have pods of several jobs."""

    jobs: int = 0
    workers: Counter[str] = field(default_factory=Counter)
    heads: Counter[str] = field(default_factory=Counter)


class TierUsage:
    """`pods` are the pods of a job in all clusters. Call `touch` when the job or one of them may have changed."""

    def __init__(self, jobs: Scoped[JobRecord], pods: Callable[[JobKey], Iterable[PodRecord]]) -> None:
        self._jobs = jobs
        self._pods = pods
        self._touched: set[JobKey] = set()
        self._used: dict[JobKey, _Used] = {}
        self._usage: dict[str, _Usage] = defaultdict(_Usage)

    def touch(self, key: JobKey) -> None:
        """The job may have changed."""
        self._touched.add(key)

    def of(self, tier: str, *, heads: bool) -> tuple[int, int]:
        """The number of jobs that hold or wait for the CapacityTier, and of nodes of their workers on it; with `heads`
        also of their heads."""
        self._count()
        usage = self._usage[tier]
        return usage.jobs, len(usage.workers.keys() | usage.heads.keys() if heads else usage.workers)

    def _count(self) -> None:
        while self._touched:
            key = self._touched.pop()
            before, after = self._used.pop(key, _Used()), self._of_job(key)
            self._add(before, -1)
            self._add(after, 1)
            if after != _Used():
                self._used[key] = after

    def _add(self, used: _Used, number: int) -> None:
        for tier in used.tiers:
            self._usage[tier].jobs += number
        for tier, node in used.workers:
            _change(self._usage[tier].workers, node, number)
        for tier, node in used.heads:
            _change(self._usage[tier].heads, node, number)

    def _of_job(self, key: JobKey) -> _Used:
        namespace, name = key
        job = self._jobs.get(name, namespace)
        if job is None:
            return _Used()
        tiers, on = dict(job.tiers), dict[PodRole, set[tuple[str, str]]]()
        for pod in self._pods(key):
            tier = tiers.get(pod.tier)
            if tier and pod.node and pod.phase in ("Pending", "Running"):
                on.setdefault(pod.role, set()).add((tier, pod.node))
        heads = frozenset(on.pop(PodRole.HEAD, ()))
        on.pop(PodRole.AUXILIARY, None)  # on other nodes than the tier's
        workers = frozenset[tuple[str, str]]().union(*on.values())
        return _Used(frozenset(filter(None, (job.capacity, job.standby_capacity))), workers, heads)


def _change(nodes: Counter[str], node: str, number: int) -> None:
    nodes[node] += number
    if not nodes[node]:
        del nodes[node]
