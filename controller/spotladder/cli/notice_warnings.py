"""Warns before a job is submitted if its commits do not fit into the notice of its spot tiers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.problems import Problem
from spotladder.api.review import Review, Reviewed
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import Tier
from spotladder.core.notice_fit import notice_misfits
from spotladder.errors import InvalidSpec
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.tiers import price_of, resolve_tier


def jobs_in(files: Review) -> list[tuple[Reviewed, TieredJob]]:
    """The valid jobs of the files."""
    return [(entry, entry.model) for entry in files.objects if isinstance(entry.model, TieredJob)]


def notice_warnings(
    files: Review,
    measured: Mapping[str, float],
    in_cluster: Mapping[str, CapacityTier] | None = None,
    rates: Mapping[str, float] | None = None,
) -> list[Problem]:
    """Warnings about jobs whose commits take longer than the notice of a spot tier, with their locations in the files.

    Args:
        files: Valid files with the jobs.
        measured: Duration of a commit in seconds by the name of a job.
        in_cluster: The CapacityTiers of the cluster; those in the files replace them.
        rates: Evictions per node-hour by CapacityTier.
    """
    given = {entry.name: entry.model for entry in files.objects if isinstance(entry.model, CapacityTier)}
    capacity, found = {**(in_cluster or {}), **given}, []
    for entry, job in jobs_in(files):
        tiers, known = [], {}
        for index, tier in enumerate(job.spec.tiers):
            spot = Tier(tier.name)  # Without its CapacityTier the notice is unknown.
            with suppress(InvalidSpec, KeyError):
                named = capacity[tier.capacity_tier]
                spot = resolve_tier(index, tier, named, price_of(named)).core
            tiers.append(spot)
            known[tier.name] = (rates or {}).get(tier.capacity_tier, 0.0)
        workers = workload_of(job).workers(job)
        found += [
            Problem(
                entry.document.where(("spec", "tiers", misfit.index)), f"spec.tiers[{misfit.index}]", misfit.message
            )
            for misfit in notice_misfits(tiers, measured.get(entry.name, 0.0), workers, known)
        ]
    return found
