"""Rules for pools that become ComputeClasses of GKE: limits of their schema, and options that they do not have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from spotladder.api.problems import quoted
from spotladder.core.durations import format_duration
from spotladder_infra.topology.cluster import WITH_STACK, Autoscaler
from spotladder_infra.topology.findings import Check, FleetFinding, pool_path, pools
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import Pool

LONGEST_CONSOLIDATION = 86400.0
"""Maximum seconds for which GKE keeps an empty node of a ComputeClass."""

_TAINT_VALUE = re.compile(r"([a-z0-9][-A-Za-z0-9_.]{1,61})?[A-Za-z0-9]")
_RESERVED_TAINT = "kubernetes.io"


def compute_class_taints(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that GKE accepts the keys and values of taints."""
    for c, p, pool in _compute_classes(fleet):
        for place, taint in enumerate(pool.taints):
            path = pool_path(c, p, "taints", place)
            if _RESERVED_TAINT in taint.key:
                message = f"{quoted(taint.key)} has a part that GKE reserves ({_RESERVED_TAINT}): choose another key"
                yield FleetFinding((*path, "key"), message)
            if taint.value and not _TAINT_VALUE.fullmatch(taint.value):
                message = (
                    f"{quoted(taint.value)} is not a valid value of a taint of a ComputeClass (expected one "
                    "character, or three to 63 that begin with a lower-case letter or a digit): choose another value"
                )
                yield FleetFinding((*path, "value"), message)


def compute_class_consolidation(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that empty nodes are kept for no longer than GKE allows, a day."""
    for c, p, pool in _compute_classes(fleet):
        if pool.disruption.consolidate_after > LONGEST_CONSOLIDATION:
            longest = format_duration(LONGEST_CONSOLIDATION)
            message = (
                f"{format_duration(pool.disruption.consolidate_after)} is longer than a ComputeClass can wait: "
                f"set at most {longest}"
            )
            yield FleetFinding(pool_path(c, p, "disruption", "consolidateAfter"), message)


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


COMPUTE_CLASS_CHECKS: tuple[Check, ...] = (
    compute_class_taints,
    compute_class_consolidation,
    compute_class_options,
)


def _compute_classes(fleet: Fleet) -> Iterator[tuple[int, int, Pool]]:
    return (
        (c, p, pool)
        for c, p, cluster, pool in pools(fleet)
        if cluster.cloud in WITH_STACK and cluster.provisioner is Autoscaler.COMPUTE_CLASS
    )
