"""The names that tie objects to a job: labels, annotations, and what an attempt is called."""

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
"""`head` or `worker`, on pods."""

JOB_UID = "spotladder.io/job-uid"
"""Which TieredJob, so that one of the same name made later is not mistaken for it."""

HOME = "spotladder.io/home"
"""Outside of the home cluster: which home cluster's controller made it. Several may share a cluster."""

DIGEST = "spotladder.io/digest"
"""Annotation on what an attempt is: of all that was asked for, so that one that was refused is made anew once the job
is corrected."""

NOTICE = "spotladder.io/notice"
"""Annotation on pods: what the program is to know about its end, seen as a file through a downward-API volume."""

COPY = "spotladder.io/copy"
"""On copies of Secrets and the like in other clusters."""

COPY_OF = "spotladder.io/copy-of"
"""Annotation on copies: uid and version of what it is a copy of."""

_DIGEST = 8


SHORTEST_LIMIT = 1 + 1 + _DIGEST + len("-a0001")
"""Characters that an attempt's name needs at least: one of the job's name, a digest of it, the number."""


def attempt_name(job: str, attempt: int, longest: int = LONGEST_RAYJOB_NAME) -> str:
    """`digits-a001`: the same for the same attempt, in at most `longest` (≥ SHORTEST_LIMIT) characters.

    A job's name that does not fit is cut, and a digest of the whole name keeps it apart from others.
    """
    suffix = f"-a{attempt:03d}"
    if len(job) + len(suffix) <= longest:
        return job + suffix
    digest = hashlib.sha256(job.encode()).hexdigest()[:_DIGEST]
    kept = job[: longest - len(suffix) - _DIGEST - 1].rstrip("-.")
    return f"{kept}-{digest}{suffix}"


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose an object is: the TieredJob's uid, and the home cluster's where the object is not in it."""

    job_uid: str
    home: str = ""


def labels(job: str, attempt: int, tier: str, origin: Origin) -> dict[str, str]:
    """What everything that is made for an attempt is labelled with."""
    ours = {MANAGED_BY: MANAGER, JOB: job, ATTEMPT: str(attempt), TIER: tier, JOB_UID: origin.job_uid}
    return {**ours, HOME: origin.home} if origin.home else ours
