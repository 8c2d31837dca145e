"""Compares clusters with the fleet file: versions, readiness, drift. Changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from spotladder.errors import EnvironmentFailure
from spotladder_infra.rollout import crds, good_rollouts, ready
from spotladder_infra.rollout.cluster_rollout import CRDS, ClusterPlatform
from spotladder_infra.rollout.release import Release, releases

ABSENT = "–"

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class ComponentRow:
    """One component of a cluster. `drift` are the objects that differ from the installed ones."""

    cluster: str
    component: str
    wanted: str
    version: str
    ready: str
    drift: tuple[str, ...] = ()

    @property
    def up_to_date(self) -> bool:
        """Whether the wanted version runs without drift."""
        return self.wanted.removeprefix("v") == self.version.removeprefix("v") and not self.drift


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


def inspect(platform: ClusterPlatform, *, compare: bool) -> list[ComponentRow]:
    """Its components in the order of installation. With `compare`, also looks for drift, which takes longer."""
    desired, paths = platform.desired()
    name, tools = platform.cluster.name, platform.tools
    rows = []
    goods = good_rollouts.read(tools)
    if compare:
        applied = {chart: version for chart, version, _ in goods[-1].crds} if goods else {}
        for chart, version, _ in desired.crds:
            found = tuple(crds.drift(tools, crds.of_chart(tools, paths[chart])))
            installed = applied.get(chart, ABSENT) if found else version
            rows.append(ComponentRow(name, f"{CRDS}{chart}", version, installed, ABSENT, found))
    live = releases(tools)
    expected = goods[-1].revisions if goods else {}
    for entry in desired.releases:
        if entry.release not in live:
            rows.append(
                ComponentRow(name, entry.resource, entry.version, ABSENT, ABSENT, ("not installed",) if compare else ())
            )
            continue
        release = Release(tools, entry.release, entry.namespace)
        found_release = release.live(compare=compare, expected=expected.get(entry.release, 0) if compare else 0)
        workloads = ready.workloads(found_release.manifest, entry.namespace)
        drift = list(found_release.drift)
        if compare and not _same_values(platform, entry.release, entry.namespace, entry.values):
            drift.append("values differ from the fleet file")
        rows.append(
            ComponentRow(
                name,
                entry.resource,
                entry.version,
                found_release.version,
                ready.summary(tools, workloads),
                tuple(drift),
            )
        )
    return rows


def _same_values(platform: ClusterPlatform, release: str, namespace: str, wanted: str) -> bool:
    found = platform.tools.helm("get", "values", release, "--namespace", namespace, "-o", "json")
    return bool((json.loads(found) or {}) == json.loads(wanted))
