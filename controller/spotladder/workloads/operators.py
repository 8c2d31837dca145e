"""Whether those who must act on an attempt do: KubeRay or JobSet on its object, the scheduler on its pods.

An attempt on which nobody acts looks like one that waits for machines, and is none: no tier cures it.

| what is seen, for SILENCE or longer | who does not act |
|---|---|
| a RayJob without a status, or without its RayCluster while it is set up | KubeRay |
| a RayCluster without pods and without a status, or with that of an older generation | KubeRay |
| a JobSet without a status and without pods | JobSet's controller |
| a Pending pod without a node and without any PodScheduled condition | the scheduler |

A RayJob counts from when it was last written: one that Kueue admits after a long wait was made long ago.
A pod that no node fits, and one that a queue holds back (`SchedulingGated`), have that condition; what Kueue has not
admitted waits for Kueue. An operator that stops later is seen by the next attempt.
"""

from __future__ import annotations

from collections.abc import Iterable

from spotladder.core.durations import format_duration
from spotladder.core.model import Instant, Seconds
from spotladder.workloads.records import PodRecord
from spotladder.workloads.workload import AttemptObjects

SILENCE: Seconds = 15.0
"""How long an operator may take to act on a new object; a healthy one needs less than a second."""

_SETTING_UP = ("", "New", "Initializing")
"""`jobDeploymentStatus` of a RayJob before its RayCluster is ready."""


def silent_kuberay(objects: AttemptObjects, now: Instant) -> str:
    """Why KubeRay seems not to act on the attempt; "" when it does, or may still. `now` is the cluster's clock."""
    rayjob = objects.rayjob
    if rayjob is None or rayjob.deleting or rayjob.held or objects.pods:
        return ""
    since = max(filter(None, (rayjob.created_at, rayjob.written_at)), default=None)
    if not rayjob.deployment_status:
        return _told(since, now, "KubeRay", f"RayJob {rayjob.name} has no status")
    if rayjob.deployment_status not in _SETTING_UP:
        return ""
    if not objects.rayclusters:
        return _told(since, now, "KubeRay", f"RayJob {rayjob.name} has no RayCluster")
    behind = [cluster for cluster in objects.rayclusters if not (cluster.acted_on or cluster.deleting)]
    return next(
        (_told(each.created_at, now, "KubeRay", f"RayCluster {each.name} has no status") for each in behind), ""
    )


def silent_jobset(objects: AttemptObjects, now: Instant) -> str:
    """Why JobSet's controller seems not to act on the attempt; "" when it does, or may still."""
    jobset = objects.jobset
    if jobset is None or jobset.deleting or jobset.held or objects.pods or jobset.acted_on:
        return ""
    return _told(jobset.created_at, now, "JobSet's controller", f"JobSet {jobset.name} has no status")


def silent_scheduler(pods: Iterable[PodRecord], now: Instant) -> str:
    """Why the scheduler seems not to act on the attempt's pods; "" when it does, or may still."""
    waiting = [
        pod for pod in pods if pod.phase == "Pending" and not (pod.node or pod.deleting or pod.looked_at_by_scheduler)
    ]
    oldest = min(waiting, key=lambda pod: pod.created_at or now, default=None)
    if oldest is None:
        return ""
    return _told(oldest.created_at, now, "the scheduler", f"pod {oldest.name} has no PodScheduled condition")


def _told(since: Instant | None, now: Instant, who: str, what: str) -> str:
    """The sentence, without the age: a condition's message must not change with the time alone."""
    if since is None or now - since < SILENCE:
        return ""
    return (
        f"{who} does not act: {what} after {format_duration(SILENCE)}; see that it runs, "
        "and that it watches this namespace"
    )
