"""Converts a batch/v1 Job into a JobSet of one replicated job."""

from __future__ import annotations

from copy import deepcopy

from spotladder.conversion import jobset, limits, skeleton
from spotladder.conversion.draft import Draft
from spotladder.conversion.source import Options, Source


def from_job(source: Source, options: Options, _others: list[Source]) -> Draft:
    """A TieredJob of a Job whose pods train together."""
    spec = deepcopy(dict(source.data.get("spec") or {}))
    pods = spec.get("parallelism", 1)
    if spec.get("completions", pods) != pods:
        message = (
            f"is {spec['completions']} with parallelism {pods}: a queue of independent tasks, not one training job "
            "whose pods run together; submit the tasks as jobs of their own"
        )
        raise source.refused(message, "spec", "completions")
    suspended = spec.pop("suspend", None)
    jobs = [{"name": "workers", "replicas": 1, "template": {"spec": spec}}]
    draft = skeleton.draft_of(source, options, "jobSet", {"replicatedJobs": jobs})
    limits.suspended(draft, suspended)
    template = (*jobset.JOBS, 0, "template", "spec", "template", "spec")
    for field in ("hostname", "subdomain"):
        draft.remove((*template, field), "is set by JobSet: the pods find rank 0 at MASTER_ADDR")
    for field in ("backoffLimit", "backoffLimitPerIndex"):
        limits.retry(draft, spec.get(field), field)
    return jobset.finished(draft, source.name, "-0")
