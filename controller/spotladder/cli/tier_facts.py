"""The tiers of a job and the known facts about their capacity, from a world file or from a cluster."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.local_mode import known_capacity, tiers_on_pools
from spotladder.api.read import read_world
from spotladder.api.resolve import job_spec
from spotladder.api.stored import CapacityRecord, JobRecord, state_of, status_of
from spotladder.api.tier_history import history_in
from spotladder.api.tieredjob import TieredJob
from spotladder.cli.cluster.capacity_tiers import price_in
from spotladder.cli.cluster.connected_cluster import on_cluster
from spotladder.cli.local.selection import DEFAULT_NAMESPACE, state_folder
from spotladder.cli.target import ClusterTarget
from spotladder.clusters.connection import configured
from spotladder.clusters.errors import Forbidden, NotFound
from spotladder.core.model import JobSpec, JobState
from spotladder.errors import EnvironmentFailure, InvalidSpec, Refused
from spotladder.jobs.connected_cluster import ConnectedCluster
from spotladder.local.local_run import local_run
from spotladder.planner.plan import TierFacts
from spotladder.resources import CAPACITYTIERS, TIEREDJOBS
from spotladder.workloads import review
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.listed_tiers import resolve_tiers


@dataclass(frozen=True, slots=True)
class KnownFacts:
    """The tiers of a job, its spec, and the state of its newest run, if it has run."""

    tiers: tuple[TierFacts, ...]
    spec: JobSpec
    run: JobState | None


def tier_facts(job: TieredJob, world: Path | None, target: ClusterTarget, evictions: float | None) -> KnownFacts:
    """The facts about the job's tiers, from the world file and this machine, or else from the cluster.

    `evictions` replaces the rates of the spot tiers."""
    if world is not None:
        found = _of_world(job, world)
    else:
        _refuse_no_cluster(target)
        found = on_cluster(target, lambda cluster: _of_cluster(cluster, job))
    if evictions is not None:
        found = replace(found, tiers=tuple(_with_rate(one, evictions if one.spot else 0.0) for one in found.tiers))
    return found


def _with_rate(facts: TierFacts, evictions: float) -> TierFacts:
    return replace(facts, known=replace(facts.known, evictions=evictions, observed=math.inf))


def _refuse_no_cluster(target: ClusterTarget) -> None:
    """Raise Refused if the tiers are those of a cluster and the user has none."""
    if target.context is None and target.kubeconfig is None and not configured():
        raise Refused(
            "the tiers of the job are unknown, because no cluster is configured: name the pools' file with --world, or "
            "a cluster with --kubeconfig or KUBECONFIG"
        )


def _of_world(job: TieredJob, file: Path) -> KnownFacts:
    world = read_world(file)
    workers = workload_of(job).workers(job)
    spec = job_spec(job, tiers_on_pools(job, world), submitted_at=time.time(), workers=workers)
    facts = []
    for tier, entry, known in zip(spec.tiers, job.spec.tiers, known_capacity(job, world), strict=True):
        if world.pools[entry.capacity_tier].price is None:
            # In a local run its nodes cost nothing, but an estimate of that says nothing.
            raise InvalidSpec(
                "has no price (expected price.perNodeHour, in USD): add it",
                path=f"pools.{entry.capacity_tier}",
                where=str(file),
            )
        facts.append(TierFacts(tier, entry.capacity_tier, known))
    return KnownFacts(tuple(facts), spec, _run_here(job))


async def _of_cluster(cluster: ConnectedCluster, job: TieredJob) -> KnownFacts:
    pages = cluster.client.pages(CAPACITYTIERS, "")
    listed = [thing async for page in pages for thing in page.items]
    records = {record.name: record for record in map(CapacityRecord.of, listed)}
    known: dict[str, CapacityTier] = {name: found.model for name, found in records.items() if found.model is not None}
    named = (records.get(entry.capacity_tier) for entry in job.spec.tiers)
    if broken := next((record for record in named if record is not None and record.model is None), None):
        raise InvalidSpec(f"is not valid: {broken.problem}", where=f"CapacityTier {broken.name}")
    resolved = resolve_tiers(
        job,
        known,
        price=lambda model: price_in(records[model.metadata.name]),
        history=lambda model: history_in(records[model.metadata.name].status),
    )
    if wrong := review.problems(job, resolved):
        raise wrong[0]
    tiers = (placed.core for placed in resolved)
    spec = job_spec(job, tiers, submitted_at=time.time(), workers=workload_of(job).workers(job))
    facts = (
        TierFacts(tier, entry.capacity_tier, history_in(records[entry.capacity_tier].status).known)
        for tier, entry in zip(spec.tiers, job.spec.tiers, strict=True)
    )
    return KnownFacts(tuple(facts), spec, await _run_there(cluster, job))


def _run_here(job: TieredJob) -> JobState | None:
    """The state of the job's run on this machine; None without one, or if it cannot be read."""
    run = local_run(state_folder(None), job.metadata.namespace or DEFAULT_NAMESPACE, job.metadata.name)
    try:
        return None if run is None else run.state()
    except EnvironmentFailure:
        return None


async def _run_there(cluster: ConnectedCluster, job: TieredJob) -> JobState | None:
    """The state of the job of this name in the cluster; None without one, or if it cannot be read."""
    try:
        found = await cluster.client.get(TIEREDJOBS, job.metadata.name, job.metadata.namespace or cluster.namespace)
        return state_of(status_of(JobRecord.of(found)))
    except (NotFound, Forbidden, InvalidSpec):
        return None
