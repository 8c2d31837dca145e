"""Compares a cluster with the fleet file: versions, readiness, drift. Changes nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass

from spotladder_infra.rollout import crds, ready, record
from spotladder_infra.rollout.cluster import CRDS, ClusterPlatform
from spotladder_infra.rollout.release import Release, releases

ABSENT = "–"


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


def inspect(platform: ClusterPlatform, *, compare: bool) -> list[ComponentRow]:
    """Its components in the order of installation. With `compare`, also looks for drift, which takes longer."""
    desired, paths = platform.desired()
    name, tools = platform.cluster.name, platform.tools
    rows = []
    if compare:
        for chart, version, _ in desired.crds:
            found = tuple(crds.drift(tools, crds.of_chart(tools, paths[chart])))
            rows.append(ComponentRow(name, f"{CRDS}{chart}", version, version, ABSENT, found))
    live = releases(tools)
    goods = record.read(tools)
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
