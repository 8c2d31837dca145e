"""The number of jobs and nodes that use a CapacityTier."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.api.stored import JobRecord
from spotladder.core.model import PodRole
from spotladder.operator.inventory.inventory import JobKey
from spotladder.operator.reporting.tier_usage import TierUsage
from spotladder.workloads.records import PodRecord


class JobList:
    """The cached jobs of a namespace."""

    def __init__(self, *jobs: JobRecord) -> None:
        self.jobs = {job.name: job for job in jobs}

    def get(self, name: str, _namespace: str) -> JobRecord | None:
        return self.jobs.get(name)


def job(name: str, *, phase: str = "Pending", on: str = "spot", standby: str = "") -> JobRecord:
    tiers = [{"name": "spot", "capacityTier": "pool"}, {"name": "on-demand", "capacityTier": "other"}]
    return JobRecord.of(
        {
            "metadata": {"name": name, "namespace": "ns", "uid": name},
            "spec": {"tiers": tiers},
            "status": {"phase": phase, "tier": on, "standby": {"tier": standby}},
        }
    )


def pod(
    name: str, node: str, *, role: PodRole = PodRole.WORKER, tier: str = "spot", phase: str = "Running"
) -> PodRecord:
    return PodRecord(name=name, namespace="ns", uid=name, tier=tier, node=node, role=role, phase=phase)


class Cluster:
    """Jobs and their pods. `counted` are the jobs that were counted."""

    def __init__(self, *jobs: JobRecord) -> None:
        self.jobs, self.pods = JobList(*jobs), dict[str, list[PodRecord]]()
        self.counted: list[str] = []
        cache: Any = self.jobs
        self.usage = TierUsage(cache, self._pods_of)
        self.touch(*self.jobs.jobs)

    def _pods_of(self, key: JobKey) -> list[PodRecord]:
        self.counted.append(key[1])
        return self.pods.get(key[1], [])

    def touch(self, *names: str) -> None:
        for name in names:
            self.usage.touch(("ns", name))

    def used(self, tier: str = "pool", *, heads: bool = False) -> tuple[int, int]:
        self.counted.clear()
        return self.usage.of(tier, heads=heads)


@pytest.mark.parametrize(
    ("pods", "nodes", "with_heads"),
    [
        ([pod("a", "n1"), pod("b", "n2")], 2, 2),
        ([pod("a", "n1"), pod("b", "n1")], 1, 1),
        ([pod("a", "n1"), pod("h", "n2", role=PodRole.HEAD)], 1, 2),
        ([pod("a", "n1"), pod("h", "n1", role=PodRole.HEAD)], 1, 1),
        ([pod("a", "n1", phase="Failed"), pod("b", "")], 0, 0),
        ([pod("a", "n1", tier="on-demand"), pod("b", "n2", tier="unknown")], 0, 0),
    ],
)
def test_the_nodes_of_live_pods_on_the_tier_are_counted_once(
    pods: list[PodRecord], nodes: int, with_heads: int
) -> None:
    here = Cluster(job("a"))
    here.pods["a"] = pods
    here.touch("a")
    assert here.used() == (1, nodes)
    assert here.used(heads=True) == (1, with_heads)


def test_only_changed_jobs_are_counted_again() -> None:
    here = Cluster(job("a"), job("b"))
    here.pods.update(a=[pod("a-0", "n1")], b=[pod("b-0", "n1"), pod("b-1", "n2")])
    assert here.used() == (2, 2)
    here.pods["b"] = []
    here.touch("b")
    assert here.used() == (2, 1)
    assert here.counted == ["b"]
    del here.jobs.jobs["a"]
    here.touch("a")
    assert here.used() == (1, 0)
    assert here.used() == (1, 0)
    assert here.counted == []
