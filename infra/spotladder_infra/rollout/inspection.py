"""The components of clusters: versions and readiness. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from spotladder.errors import EnvironmentFailure
from spotladder_infra.rollout import ready
from spotladder_infra.rollout.cluster_rollout import ClusterPlatform
from spotladder_infra.rollout.release import Release

ABSENT = "–"

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class ComponentRow:
    """One component of a cluster. `status` is Helm's, `ready` the ready workloads of all: `2/2`."""

    cluster: str
    component: str
    wanted: str
    version: str
    status: str
    ready: str


def inspect_all(
    names: Sequence[str], concurrency: int, inspect_one: Callable[[str], Iterable[Row]]
) -> tuple[list[Row], list[str]]:
    """The rows of the clusters in this order, and one line for each cluster that cannot be inspected.

    Args:
        names: The clusters.
        concurrency: Maximum number of clusters at the same time.
        inspect_one: Returns the rows of a cluster, or raises EnvironmentFailure.
    """

    def one(name: str) -> tuple[list[Row], str]:
        try:
            return list(inspect_one(name)), ""
        except EnvironmentFailure as error:
            return [], failure_of(name, str(error))

    with ThreadPoolExecutor(max_workers=concurrency, thread_name_prefix="inspect") as pool:
        found = list(pool.map(one, names))
    return [row for rows, _ in found for row in rows], [failure for _, failure in found if failure]


def failure_of(cluster: str, message: str) -> str:
    """The message, which names the cluster once."""
    return (
        message
        if message.startswith((f"cluster {cluster}:", f"cluster {cluster} "))
        else f"cluster {cluster}: {message}"
    )


def inspect(platform: ClusterPlatform) -> list[ComponentRow]:
    """Its releases in the order of installation."""
    desired, _ = platform.desired()
    name, tools = platform.cluster.name, platform.tools
    rows = []
    for entry in desired.releases:
        live = Release(tools, entry.release, entry.namespace).live()
        ready_of_all = ready.summary(tools, ready.workloads(live.manifest, entry.namespace))
        version, status = live.version or ABSENT, live.status or "not installed"
        rows.append(ComponentRow(name, entry.resource, entry.version, version, status, ready_of_all))
    return rows
