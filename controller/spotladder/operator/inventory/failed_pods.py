"""Pods that failed and were deleted at once, before a reconcile has seen that they failed.

KubeRay deletes a failed worker to create another one, and the API server deletes a failed pod without a grace period.
Without this record such a pod would only be missing, and a node that fails every pod would never be known.
"""

from __future__ import annotations

from collections import deque

from spotladder.core.model import Seconds
from spotladder.workloads.records import PodRecord, job_of

RETENTION: Seconds = 60.0
"""Time for which a deleted pod is kept: longer than the longest delay of a reconcile."""

KEPT_PODS = 16
"""Maximum number of deleted pods of a job, the newest."""


class FailedPods:
    """The failed pods of each job that were deleted within RETENTION. Times are in ticks."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, str], deque[tuple[Seconds, PodRecord]]] = {}
        """The deleted pods of each job with their times; the job of the newest one is last."""

    def deleted(self, pod: PodRecord, now: Seconds) -> None:
        """Record a deleted pod, if it had failed."""
        if pod.phase != "Failed":
            return
        self._forget(now)
        job = job_of(pod)
        known = self._jobs.pop(job, None) or deque(maxlen=KEPT_PODS)
        known.append((now, pod))
        self._jobs[job] = known

    def of(self, namespace: str, job: str, now: Seconds) -> list[PodRecord]:
        """The recently deleted pods of the job that had failed."""
        return [pod for at, pod in self._jobs.get((namespace, job), ()) if at >= now - RETENTION]

    def _forget(self, now: Seconds) -> None:
        while self._jobs and self._jobs[job := next(iter(self._jobs))][-1][0] < now - RETENTION:
            del self._jobs[job]
