"""Whether a job can be run on its tiers at all, told before the first of them is entered."""

from __future__ import annotations

from collections.abc import Iterable

from spotladder.api.tieredjob import TieredJob
from spotladder.errors import InvalidSpec
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.names import Origin
from spotladder.workloads.tiers import ResolvedTier


def problems(job: TieredJob, tiers: Iterable[ResolvedTier]) -> tuple[InvalidSpec, ...]:
    """What is wrong with the job on these tiers of a cluster, each once; with its template at most one for each tier.

    A contradiction with the last tier would otherwise come to light when the job falls back to it, hours later.
    """
    found: dict[str, InvalidSpec] = {}
    if "://" not in job.spec.checkpoints.uri:
        # Each pod would begin at step 0, in a folder of its own, and lose it.
        message = (
            "is a path, and every pod has another disk: name a bucket (s3://, gs://, az://), "
            "or file:///… for a volume that all pods and the controller mount there"
        )
        found[message] = InvalidSpec(message, path="spec.checkpoints.uri")
    workload = workload_of(job)
    for tier in tiers:
        try:
            workload.render(job, Origin(""), tier, 1, {})
        except InvalidSpec as error:
            found.setdefault(str(error), error)
    return tuple(found.values())
