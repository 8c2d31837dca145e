"""The upgrade of a cluster's platform while jobs run: Karpenter removes no node meanwhile.

A new Karpenter or a new node image makes nodes drift. During the upgrade the chart of the pools holds all nodes: its
disruption budgets allow no disruption. Afterwards Karpenter removes nodes with the old image when they are empty.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from spotladder.core.reasons import Reason
from spotladder.errors import EnvironmentFailure
from spotladder_infra.rollout import good_rollouts
from spotladder_infra.rollout.cluster_rollout import ClusterPlatform, Report
from spotladder_infra.rollout.good_rollouts import NoGoodRollout, PlatformState
from spotladder_infra.rollout.tools import Object, Tools

HOLD = "holdDuringUpgrade"
POOLS = "pools"

RUNNING = ("Running", "Draining")
"""Phases of a job whose attempt has all its nodes."""


CAUSED = (Reason.VANISHED, Reason.HEAD_LOST, "")
"""Reasons for the end of an attempt that an upgrade may cause while Karpenter removes no node; "" is an end without a
record."""

DISRUPTION_EVENT = "DisruptionTerminating"
"""Reason of the Event that Karpenter records for a node which it removes because of drift or consolidation."""

EMPTY = ": Empty/"
"""Part of the message of that Event for a node without pods: `Disrupting Node: Empty/Delete`."""


def upgrade(platform: ClusterPlatform, home: Tools, report: Report) -> PlatformState:
    """Upgrades the releases of a cluster while its nodes are held. Returns the installed state.

    Raises:
        EnvironmentFailure: No good rollout is known, a release is not ready, or an attempt of a job has ended for one
            of the reasons `CAUSED`: the nodes stay held, so that the cause can be found. Run the same command again to
            continue.
    """
    platform.check()
    goods = good_rollouts.read(platform.tools)
    if not goods:
        name = platform.cluster.name
        raise NoGoodRollout(
            f"cluster {name} has no good rollout yet: run spotladder infra rollout --cluster {name} first"
        )
    before, disrupted = attempts(home), disruptions(platform.tools)
    report(POOLS, "holding nodes", "")
    platform.install(_held(goods[-1]), report)
    desired, _ = platform.desired()
    platform.install(_held(desired), report)
    _judge(platform, ended_since(home, before), disruptions(platform.tools) - disrupted, report)
    report(POOLS, "releasing nodes", "")
    return platform.install(desired, report).good


def attempts(home: Tools) -> dict[str, int]:
    """The number of the running attempt of each job."""
    jobs: list[Object] = home.items("tieredjobs", "--all-namespaces")
    return {
        f"{job['metadata']['namespace']}/{job['metadata']['name']}": int(job["status"].get("attempt", 0))
        for job in jobs
        if job.get("status", {}).get("phase") in RUNNING
    }


def ended_since(home: Tools, before: Mapping[str, int]) -> dict[str, str]:
    """The jobs whose attempt has ended, each with the reason of its last ended attempt; "" without a record."""
    found = {}
    for job in home.items("tieredjobs", "--all-namespaces"):
        name = f"{job['metadata']['namespace']}/{job['metadata']['name']}"
        status = job.get("status", {})
        if name not in before:
            continue
        records = [entry for entry in status.get("attempts", []) if entry["number"] >= before[name]]
        if records or int(status.get("attempt", 0)) != before[name]:
            last: Object = max(records, key=lambda entry: int(entry["number"]), default={})
            found[name] = str(last.get("reason", ""))
    return found


def disruptions(tools: Tools) -> frozenset[tuple[str, int]]:
    """The Events by which Karpenter reports nodes in use that it removes by itself: name and count of each."""
    events = tools.items("events", "--all-namespaces", f"--field-selector=reason={DISRUPTION_EVENT}")
    used = [event for event in events if EMPTY not in event.get("message", "")]
    return frozenset((event["metadata"]["name"], int(event.get("count") or 1)) for event in used)


def _judge(
    platform: ClusterPlatform, ended: Mapping[str, str], disrupted: frozenset[tuple[str, int]], report: Report
) -> None:
    """Raises EnvironmentFailure for attempts that may have ended because of the upgrade; reports the others."""
    blamed = sorted(job for job, reason in ended.items() if disrupted or reason in CAUSED)
    if blamed:
        named = ", ".join(f"{job} ({ended[job] or 'unknown'})" for job in blamed)
        why = "Karpenter has removed nodes, and attempts" if disrupted else "attempts"
        raise EnvironmentFailure(
            f"cluster {platform.cluster.name}: {why} have ended during the upgrade: {named}: nodes stay held; run "
            "spotladder events, then run the command again"
        )
    for job, reason in sorted(ended.items()):
        report("jobs", "attempt ended", f"{job}: {reason}, not by the upgrade")


def _held(desired: PlatformState) -> PlatformState:
    """The same with the pools' nodes held."""
    releases = tuple(
        replace(entry, values=json.dumps({**json.loads(entry.values), HOLD: True}, sort_keys=True))
        if entry.resource == POOLS
        else entry
        for entry in desired.releases
    )
    return replace(desired, releases=releases)
