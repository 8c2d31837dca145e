"""The upgrade of a cluster's platform while jobs run: Karpenter removes no node meanwhile.

A new Karpenter or a new node image makes nodes drift. The chart of the pools holds all of them for the time of the
upgrade: its budgets allow no disruption. Nodes with the old image go when they are empty.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spotladder import versions
from spotladder.errors import EnvironmentFailure
from spotladder_infra.rollout import record
from spotladder_infra.rollout.cluster import ClusterPlatform, Report
from spotladder_infra.rollout.record import Good, InstalledRelease
from spotladder_infra.rollout.release import releases
from spotladder_infra.rollout.tools import Object, Tools
from spotladder_infra.topology.cluster import CREATED

HOLD = "holdDuringUpgrade"
POOLS = "pools"

RUNNING = ("Running", "Draining")
"""Phases of a job whose attempt has all its nodes."""


@dataclass(frozen=True, slots=True)
class UpgradeStage:
    """A part of an upgrade, in order. `gate` must hold before it begins; `by` does it."""

    cluster: str
    stage: str
    change: str
    gate: str
    by: str


def stages(platform: ClusterPlatform) -> list[UpgradeStage]:
    """The stages of an upgrade of a cluster, with the versions that run now and those that are pinned."""
    name, asked = platform.cluster.name, platform.cluster.kubernetes
    desired, _ = platform.desired()
    live = releases(platform.tools)
    server = json.loads(platform.tools.kubectl("version", "-o", "json"))["serverVersion"]
    minor = f"{server['major']}.{server['minor'].rstrip('+')}"
    listed = [
        UpgradeStage(name, "hold nodes", "disruption budgets of 0", "a good rollout is recorded", "upgrade --apply")
    ]
    for entry in desired.releases:
        if entry.resource == POOLS:
            continue
        now = live.get(entry.release, {}).get("chart", "").rpartition("-")[2] or "not installed"
        change = now if now == entry.version else f"{now} → {entry.version}"
        gate = "its CRDs are established" if entry.resource == "karpenter" else "the one before is ready"
        listed.append(UpgradeStage(name, entry.resource, change, gate, "upgrade --apply"))
    listed.append(
        UpgradeStage(name, "release nodes", "the pools' own budgets", "no attempt has ended", "upgrade --apply")
    )
    by = f"bootstrap --cluster {name}" if platform.cluster.cloud in CREATED else "you"
    if minor != asked:
        gate = _kubernetes_gate(minor, asked, desired.releases)
        listed.append(UpgradeStage(name, "Kubernetes", f"{minor} → {asked}", gate, by))
    listed.append(
        UpgradeStage(name, "node images", "as the pools say", "nodes change when they are empty", "Karpenter")
    )
    return listed


def _kubernetes_gate(now: str, wanted: str, listed: Sequence[InstalledRelease]) -> str:
    """One minor at a time, and Karpenter must support it."""
    if versions.parse(wanted) < versions.parse(now):
        return f"refused: {wanted} is older than {now}"
    if versions.parse(wanted)[1] - versions.parse(now)[1] > 1:
        return "refused: one minor version at a time"
    karpenter = next((entry.version for entry in listed if entry.resource == "karpenter"), None)
    known = versions.SUPPORTED.get(wanted)
    if karpenter and known and versions.parse(karpenter) < versions.parse(known.karpenter):
        return f"refused: Karpenter {known.karpenter} or newer is needed"
    return "Karpenter and KubeRay are upgraded"


def upgrade(platform: ClusterPlatform, home: Tools, timeout: float, report: Report) -> Good:
    """Upgrades the releases of a cluster while its nodes are held. Returns what is installed then.

    Raises:
        EnvironmentFailure: No good rollout is known, a release is not ready, or an attempt of a job has ended:
            the nodes stay held, so that the cause can be found. Run the same command again to continue.
    """
    goods = record.read(platform.tools)
    if not goods:
        raise EnvironmentFailure(
            f"cluster {platform.cluster.name} has no good rollout yet: run spotladder infra rollout first"
        )
    before = attempts(home)
    report(POOLS, "holding nodes", "")
    platform.install(_held(goods[-1].releases), goods[-1].crds, timeout, report)
    desired, _ = platform.desired()
    platform.install(_held(desired.releases), desired.crds, timeout, report)
    ended = sorted(job for job, attempt in attempts(home).items() if before.get(job, attempt) != attempt)
    if ended:
        raise EnvironmentFailure(
            f"cluster {platform.cluster.name}: attempts have ended during the upgrade: {', '.join(ended)}: nodes stay "
            "held; look at spotladder events, then run the command again"
        )
    report(POOLS, "releasing nodes", "")
    return platform.install(desired.releases, desired.crds, timeout, report)


def attempts(home: Tools) -> dict[str, int]:
    """The number of the running attempt of each job."""
    jobs: list[Object] = home.items("tieredjobs", "--all-namespaces")
    return {
        f"{job['metadata']['namespace']}/{job['metadata']['name']}": int(job["status"].get("attempt", 0))
        for job in jobs
        if job.get("status", {}).get("phase") in RUNNING
    }


def _held(listed: Sequence[InstalledRelease]) -> tuple[InstalledRelease, ...]:
    """The releases, with the pools' nodes held."""
    return tuple(
        replace(entry, values=json.dumps({**json.loads(entry.values), HOLD: True}, sort_keys=True))
        if entry.resource == POOLS
        else entry
        for entry in listed
    )
