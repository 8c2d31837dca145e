"""The finding of a check, and the parts of a fleet with their places in the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

from spotladder.api.problems import Path, dotted
from spotladder_infra.topology.cluster import WITH_STACK, Cluster
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import Pool


@dataclass(frozen=True, slots=True)
class FleetFinding:
    """A finding. `path` is the field in the fleet file."""

    path: Path
    message: str
    warning: bool = False

    def __str__(self) -> str:
        return f"{dotted(self.path)}: {self.message}"


Check = Callable[[Fleet, date], Iterator[FleetFinding]]
"""A rule. The age of versions and images is relative to the date."""


def with_stack(fleet: Fleet) -> Iterator[tuple[int, Cluster]]:
    """Clusters with a stack, with their indexes."""
    return ((index, entry) for index, entry in enumerate(fleet.spec.clusters) if entry.cloud in WITH_STACK)


def pools(fleet: Fleet) -> Iterator[tuple[int, int, Cluster, Pool]]:
    """Every pool: the index of its cluster, its own index, the cluster, the pool."""
    for index, cluster in enumerate(fleet.spec.clusters):
        for place, pool in enumerate(cluster.pools):
            yield index, place, cluster, pool


def pool_path(cluster: int, pool: int, *rest: str | int) -> Path:
    """The path of a field of a pool."""
    return ("spec", "clusters", cluster, "pools", pool, *rest)
