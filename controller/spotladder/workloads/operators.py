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

SILENCE: Seconds = 15.0
"""How long an operator may take to act on a new object; a healthy one needs less than a second."""


def silent_scheduler(pods: Iterable[PodRecord], now: Instant) -> str:
    """Why the scheduler seems not to act on the attempt's pods; "" when it does, or may still."""
    waiting = [
        pod for pod in pods if pod.phase == "Pending" and not (pod.node or pod.deleting or pod.looked_at_by_scheduler)
    ]
    oldest = min(waiting, key=lambda pod: pod.created_at or now, default=None)
    if oldest is None:
        return ""
    return silence(oldest.created_at, now, "the scheduler", f"pod {oldest.name} has no PodScheduled condition")


def silence(since: Instant | None, now: Instant, operator: str, what: str) -> str:
    """The sentence, without the age: a condition's message must not change with the time alone."""
    if since is None or now - since < SILENCE:
        return ""
    return (
        f"{operator} does not act: {what} after {format_duration(SILENCE)}; see that it runs, "
        "and that it watches this namespace"
    )
