"""The jobs and nodes that use each CapacityTier."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from spotladder.api.stored import JobRecord
from spotladder.core.model import PodRole
from spotladder.operator.inventory.inventory import JobKey
from spotladder.workloads.records import PodRecord


@dataclass(slots=True)
class TierUsage:
    """The number of jobs that hold or wait for one CapacityTier, and the nodes of their workers and heads on it. A node
    may have pods of several jobs."""

    jobs: int = 0
    workers: set[str] = field(default_factory=set)
    heads: set[str] = field(default_factory=set)


def tier_usage(jobs: Iterable[JobRecord], pods: Callable[[JobKey], Iterable[PodRecord]]) -> Mapping[str, TierUsage]:
    """The usage by the name of the CapacityTier. `pods` are the pods of a job in all clusters."""
    found: defaultdict[str, TierUsage] = defaultdict(TierUsage)
    for job in jobs:
        for name in {job.capacity, job.standby_capacity} - {""}:
            found[name].jobs += 1
        tiers = dict(job.tiers)
        for pod in pods(job.key):
            name = tiers.get(pod.tier, "")
            if name and pod.node and pod.phase in ("Pending", "Running") and pod.role is not PodRole.AUXILIARY:
                (found[name].heads if pod.role is PodRole.HEAD else found[name].workers).add(pod.node)
    return found
