"""The names that identify the objects of a job: labels, annotations, and the names of attempts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from spotladder.api.fields import LONGEST_RAYJOB_NAME

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "spotladder"

JOB = "spotladder.io/job"
ATTEMPT = "spotladder.io/attempt"
TIER = "spotladder.io/tier"
ROLE = "spotladder.io/role"
"""`head`, `worker` or `auxiliary` (a group that is not on the tier), on pods."""

JOB_UID = "spotladder.io/job-uid"
"""The uid of the TieredJob, which distinguishes it from a later one of the same name."""

HOME = "spotladder.io/home"
"""Outside of the home cluster: the home cluster whose controller created the object. Several may share a cluster."""

DIGEST = "spotladder.io/digest"
"""Annotation on an attempt's object: a digest of the rendered objects, so that a refused attempt is created again once
the job is corrected. On a guard: a digest of its labels and spec, so that it is applied again only after a change."""

TOKEN_REFUSED = "spotladder.io/token-refused"  # noqa: S105 – the name of an annotation
"""Annotation on an attempt's object: why it runs without the token that it should require."""

NOTICE = "spotladder.io/notice"
"""Annotation on pods: the notice to the program, which it reads as a file through a downward-API volume."""

HEAD_TRAINS = "spotladder.io/head-trains"
"""Annotation on an attempt's RayJob: no worker group is on the tier, so its head is the attempt's only worker."""

_DIGEST = 8


SHORTEST_LIMIT = 1 + 1 + _DIGEST + len("-a0001")
"""Minimum length of the limit of an attempt's name: one character of the job's name, a digest of it, the number."""


def attempt_name(job: str, attempt: int, longest: int = LONGEST_RAYJOB_NAME) -> str:
    """The attempt's name, such as `digits-a001`: deterministic, with at most `longest` (≥ SHORTEST_LIMIT) characters.

    A job's name that is too long is truncated, and a digest of the whole name keeps it unique.
    """
    suffix = f"-a{attempt:03d}"
    if len(job) + len(suffix) <= longest:
        return job + suffix
    digest = hashlib.sha256(job.encode()).hexdigest()[:_DIGEST]
    kept = job[: longest - len(suffix) - _DIGEST - 1].rstrip("-.")
    return f"{kept}-{digest}{suffix}"


def guards_name(job: str) -> str:
    """The name of the guards that all attempts of a job share."""
    return f"{job}-attempts"


@dataclass(frozen=True, slots=True)
class Origin:
    """The owner of an object: the TieredJob's uid, and the home cluster's if the object is in another cluster."""

    job_uid: str
    home: str = ""


def labels(job: str, attempt: int, tier: str, origin: Origin) -> dict[str, str]:
    """The labels of all objects of an attempt."""
    ours = {MANAGED_BY: MANAGER, JOB: job, ATTEMPT: str(attempt), TIER: tier, JOB_UID: origin.job_uid}
    return {**ours, HOME: origin.home} if origin.home else ours
