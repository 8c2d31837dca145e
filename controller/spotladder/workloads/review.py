"""Whether a job can run on all of its tiers, checked before its first attempt."""

from __future__ import annotations

from collections.abc import Iterable

from spotladder.api.address import StoreAddress
from spotladder.api.problems import problems_of
from spotladder.api.tieredjob import TieredJob
from spotladder.errors import InvalidSpec
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.names import Origin
from spotladder.workloads.tiers import PlacedTier


def problems(job: TieredJob, tiers: Iterable[PlacedTier]) -> tuple[InvalidSpec, ...]:
    """The errors of the job on these tiers of a cluster, each once; at most one error of each group for each tier.

    Otherwise a contradiction with the last tier would appear only when the job falls back to it, hours later.
    """
    found: dict[str, InvalidSpec] = {}
    if "://" not in job.spec.checkpoints.uri:
        # Each pod would start at step 0 in its own folder, and lose its checkpoints.
        message = (
            "is a path, and every pod has another disk: name a bucket (s3://, gs://, az://), "
            "or file:///… for a volume that all pods and the controller mount there"
        )
        found[message] = InvalidSpec(message, path="spec.checkpoints.uri")
    else:
        try:
            StoreAddress.parse(job.spec.checkpoints.uri)
        except InvalidSpec as error:
            found[error.message] = InvalidSpec(error.message, path="spec.checkpoints.uri")
    workload = workload_of(job)
    for tier in tiers:
        try:
            workload.render(job, Origin(""), tier, 1, {})
        except InvalidSpec as error:
            for each in problems_of(error):
                found.setdefault(str(each), InvalidSpec(each.message, path=each.path))
    return tuple(found.values())
