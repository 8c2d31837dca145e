"""Converts a TieredJob into the core's JobSpec, with defaults and with the capacity and price of each tier."""

from __future__ import annotations

from collections.abc import Iterable

from spotladder.api.checkpoint_fields import interval_seconds
from spotladder.api.elastic import sizes_of
from spotladder.api.job_tier import JobTier
from spotladder.api.tieredjob import Checkpoints, TieredJob
from spotladder.core.model import Instant, JobSpec, Overlap, Price, Seconds, Tier

_LEAST_STALL_TIMEOUT = 600.0
_STALL_INTERVALS = 5
_STALL_TIMEOUT_OF_PROGRAMS = 86_400.0
"""The stall timeout of programs that save at an interval of their own, which is not known."""


def tier_of(entry: JobTier) -> Tier:
    """The tier for the decision core. As long as its capacity is unknown, it is on-demand capacity of unknown price."""
    return Tier(
        name=entry.name,
        max_failures=entry.max_failures,
        provision_timeout=entry.provision_timeout,
        price=Price(known=False),
        on_insufficient_capacity=entry.on_insufficient_capacity,
        queue_timeout=entry.queue_timeout,
    )


def job_spec(job: TieredJob, tiers: Iterable[Tier], *, submitted_at: Instant, workers: int) -> JobSpec:
    """The job as the core's JobSpec, with these tiers in its order. `workers` is its number of worker pods."""
    spec = job.spec
    return JobSpec(
        tiers=tuple(tiers),
        overlap=overlap_of(job),
        workers=workers,
        submitted_at=submitted_at,
        recovery_timeout=spec.recovery_timeout,
        stall_timeout=spec.stall_timeout or _default_stall_timeout(spec.checkpoints),
        stall_timeout_given=spec.stall_timeout is not None,
        grace=spec.grace,
        start_timeout=spec.start_timeout,
        contact_timeout=spec.contact_timeout,
        handover=spec.handover,
        update_strategy=spec.update_strategy,
        failure_unit=spec.failure_unit,
        backoff_limit=spec.backoff_limit,
        application_failures=spec.application_failures,
        exhausted=spec.exhausted,
        deadline=spec.deadline.timestamp() if spec.deadline else None,
        max_duration=spec.max_duration,
        budget=spec.budget,
        suspend=spec.suspend,
        storage_per_gib_month=spec.checkpoints.storage_per_gi_b_month or 0.0,
        keep=spec.checkpoints.keep,
    )


def sizes(job: TieredJob) -> tuple[int, ...]:
    """The allowed numbers of workers of an elastic job, ascending; () for another job."""
    elastic, workers = job.spec.elastic, job.spec.ray_workers
    return () if elastic is None or not workers else sizes_of(elastic, workers)


def overlap_of(job: TieredJob) -> Overlap | None:
    """The bounds of two attempts at once; None if the job has one at a time."""
    bounds = job.spec.overlap
    return None if bounds is None else Overlap(bounds.max_duration, bounds.budget, bounds.hedge_after)


def _default_stall_timeout(checkpoints: Checkpoints) -> Seconds:
    if checkpoints.program_folder is not None:
        return _STALL_TIMEOUT_OF_PROGRAMS
    return max(_LEAST_STALL_TIMEOUT, _STALL_INTERVALS * (interval_seconds(checkpoints.interval) or 0.0))
