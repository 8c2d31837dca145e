"""Whether KubeRay or JobSet acts on an attempt's object, and the scheduler on its pods.

An attempt on which they do not act looks like one that waits for machines, but no other tier would help.

| observation, for SILENCE or longer | does not act |
|---|---|
| a RayJob without a status, or without its RayCluster while it is set up | KubeRay |
| a RayCluster without pods and without a status, or with that of an older generation | KubeRay |
| a JobSet without a status and without pods | JobSet's controller |
| a Pending pod without a node and without any PodScheduled condition | the scheduler |

For a RayJob the time counts from its last update, since Kueue may admit it long after its creation. A pod that fits no
node, and one that a queue holds back (`SchedulingGated`), have that condition. Objects that Kueue has not admitted are
not checked. An operator that stops later is detected with the next attempt.
"""

from __future__ import annotations

from collections.abc import Iterable

from spotladder.core.durations import format_duration
from spotladder.core.model import Instant, Seconds
from spotladder.workloads.records import PodRecord

SILENCE: Seconds = 15.0
"""Time after which an operator that has not acted on a new object is reported. A healthy one needs less than a
second."""


def silent_scheduler(pods: Iterable[PodRecord], now: Instant) -> str:
    """Why the scheduler does not act on the attempt's pods; "" if it does, or still has time."""
    waiting = [
        pod for pod in pods if pod.phase == "Pending" and not (pod.node or pod.deleting or pod.seen_by_scheduler)
    ]
    oldest = min(waiting, key=lambda pod: pod.created_at or now, default=None)
    if oldest is None:
        return ""
    return silence(oldest.created_at, now, "the scheduler", f"pod {oldest.name} has no PodScheduled condition")


def silence(since: Instant | None, now: Instant, operator: str, what: str) -> str:
    """The message, without a duration: a condition's message must not change with time alone."""
    if since is None or now - since < SILENCE:
        return ""
    return (
        f"{operator} does not act: {what} after {format_duration(SILENCE)}; check that "
        "it runs and watches this namespace"
    )
