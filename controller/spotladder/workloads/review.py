"""Whether a job can be run on its tiers at all, told before the first of them is entered."""

from __future__ import annotations

from collections.abc import Iterable

from spotladder.api.tieredjob import TieredJob
from spotladder.errors import InvalidSpec
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.names import Origin
from spotladder.workloads.tiers import ResolvedTier


def problems(job: TieredJob, tiers: Iterable[ResolvedTier]) -> tuple[InvalidSpec, ...]:
    """What is wrong with the job's template on these tiers, each once, at most one for each tier.

    A contradiction with the last tier would otherwise come to light when the job falls back to it, hours later.
    """
    found: dict[str, InvalidSpec] = {}
    workload = workload_of(job)
    for tier in tiers:
        try:
            workload.render(job, Origin(""), tier, 1, {})
        except InvalidSpec as error:
            found.setdefault(str(error), error)
    return tuple(found.values())
