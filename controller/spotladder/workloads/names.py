"""The names that tie objects to a job: labels, annotations, and what an attempt is called."""

from __future__ import annotations

import hashlib

from spotladder.api.fields import LONGEST_RAYJOB_NAME

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "spotladder"

JOB = "spotladder.io/job"
ATTEMPT = "spotladder.io/attempt"
TIER = "spotladder.io/tier"
ROLE = "spotladder.io/role"
"""`head` or `worker`, on pods."""

JOB_UID = "spotladder.io/job-uid"
"""Annotation: which TieredJob, so that one of the same name made later is not mistaken for it."""

NOTICE = "spotladder.io/notice"
"""Annotation on pods: what the program is to know about its end, seen as a file through a downward-API volume."""

_DIGEST = 8


def attempt_name(job: str, attempt: int) -> str:
    """`digits-a001`: the same for the same attempt, and short enough for a RayJob however long the job's name is."""
    suffix = f"-a{attempt:03d}"
    if len(job) + len(suffix) <= LONGEST_RAYJOB_NAME:
        return job + suffix
    digest = hashlib.sha256(job.encode()).hexdigest()[:_DIGEST]
    kept = job[: LONGEST_RAYJOB_NAME - len(suffix) - _DIGEST - 1].rstrip("-.")
    return f"{kept}-{digest}{suffix}"


def labels(job: str, attempt: int, tier: str) -> dict[str, str]:
    """What everything that is made for an attempt is labelled with."""
    return {MANAGED_BY: MANAGER, JOB: job, ATTEMPT: str(attempt), TIER: tier}
