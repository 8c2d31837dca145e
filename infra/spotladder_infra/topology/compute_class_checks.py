"""Options of pools that a ComputeClass of GKE does not have."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from spotladder_infra.topology.cluster import CREATED, Autoscaler
from spotladder_infra.topology.findings import FleetFinding, pool_path, pools
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import Pool


def compute_class_options(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Options of Karpenter that a ComputeClass does not have."""
    for c, p, pool in _compute_classes(fleet):
        for path, given in (
            (("startupTaints",), bool(pool.startup_taints)),
            (("image",), pool.image is not None),
            (("limits", "cpu"), pool.limits.cpu is not None),
            (("limits", "memory"), pool.limits.memory is not None),
            (("disruption", "expireAfter"), pool.disruption.expire_after is not None),
            (("disruption", "terminationGracePeriod"), pool.disruption.termination_grace_period is not None),
        ):
            if given:
                message = "has no effect with autoscaler compute-class: remove it, or use autoscaler karpenter"
                yield FleetFinding(pool_path(c, p, *path), message, warning=True)


def _compute_classes(fleet: Fleet) -> Iterator[tuple[int, int, Pool]]:
    return (
        (c, p, pool)
        for c, p, cluster, pool in pools(fleet)
        if cluster.cloud in CREATED and cluster.provisioner is Autoscaler.COMPUTE_CLASS
    )
