"""The number of jobs and nodes that use a CapacityTier."""

from __future__ import annotations

import pytest

from spotladder.api.stored import JobRecord
from spotladder.core.model import PodRole
from spotladder.operator.reporting.tier_usage import tier_usage
from spotladder.workloads.records import PodRecord


def job(name: str, *, on: str = "spot") -> JobRecord:
    tiers = [{"name": "spot", "capacityTier": "pool"}, {"name": "on-demand", "capacityTier": "other"}]
    return JobRecord.of(
        {
            "metadata": {"name": name, "namespace": "ns", "uid": name},
            "spec": {"tiers": tiers},
            "status": {"phase": "Pending", "tier": on},
        }
    )


def pod(
    name: str, node: str, *, role: PodRole = PodRole.WORKER, tier: str = "spot", phase: str = "Running"
) -> PodRecord:
    return PodRecord(name=name, namespace="ns", uid=name, tier=tier, node=node, role=role, phase=phase)


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
    usage = tier_usage([job("a"), job("b", on="on-demand")], lambda key: pods if key == ("ns", "a") else ())["pool"]
    assert (usage.jobs, len(usage.workers), len(usage.workers | usage.heads)) == (1, nodes, with_heads)
