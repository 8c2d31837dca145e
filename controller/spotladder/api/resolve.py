"""Converts a TieredJob into the core's JobSpec, with defaults and with the capacity and price of each tier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.checkpoint_fields import interval_seconds
from spotladder.api.document import Document, documents_of
from spotladder.api.elastic import sizes_of
from spotladder.api.job_tier import JobTier
from spotladder.api.problems import InvalidDocument, Path, Problem, dotted
from spotladder.api.ray_workload import RayWorkload
from spotladder.api.suggest import closest
from spotladder.api.tieredjob import Checkpoints, TieredJob
from spotladder.api.world import World, WorldPool
from spotladder.core.model import BucketPrice, Instant, JobSpec, Overlap, Price, Seconds, Tier
from spotladder.core.overlap_prices import missing_prices
from spotladder.errors import InvalidSpec

_LEAST_STALL_TIMEOUT = 600.0
_STALL_INTERVALS = 5
_STALL_TIMEOUT_OF_PROGRAMS = 86_400.0
"""For programs that save at an interval of their own, which is not known."""


@dataclass(frozen=True, slots=True)
class LocalProgram:
    """The program of local mode. `ignored` names the keys of runtimeEnvYAML that local mode does not apply."""

    entrypoint: str
    workers: int
    env: Mapping[str, str]
    ignored: tuple[str, ...]


def tier_of(entry: JobTier) -> Tier:
    """The tier for the decision core. As long as its capacity is unknown, it is on-demand capacity of unknown price."""
    return Tier(
        name=entry.name,
        max_failures=entry.max_failures,
        provision_timeout=entry.provision_timeout,
        price=Price(known=False),
        on_insufficient_capacity=entry.on_insufficient_capacity,
        surge=entry.surge,
        queue_timeout=entry.queue_timeout,
    )


def world_tiers(job: TieredJob, world: World) -> tuple[Tier, ...]:
    """The tiers of the job on the world's pools. Raises InvalidSpec with one problem for each tier with an unknown
    pool."""
    if problems := missing_capacity(job, world.pools, groups=False):
        raise InvalidDocument(problems)
    return tuple(_on_pool(tier_of(entry), world.pools[entry.capacity_tier]) for entry in job.spec.tiers)


def _on_pool(tier: Tier, pool: WorldPool) -> Tier:
    """The tier with the capacity of this pool. Without a price, the nodes of a world cost nothing."""
    price = Price.listed(pool.price.per_node_hour, pool.price.on_demand_per_node_hour) if pool.price else Price()
    return replace(tier, capacity_type=pool.capacity_type, price=price, notice=pool.notice)


def job_spec(job: TieredJob, tiers: Iterable[Tier], *, submitted_at: Instant, workers: int | None = None) -> JobSpec:
    """The job as the core's JobSpec, with these tiers in its order. Raises InvalidSpec for a workload without Ray,
    unless `workers`, its number of worker pods, is given."""
    spec = job.spec
    bucket = spec.checkpoints.price
    return JobSpec(
        tiers=tuple(tiers),
        overlap=_overlap(job),
        workers=_ray_workers(job) if workers is None else workers,
        submitted_at=submitted_at,
        recovery_timeout=spec.recovery_timeout,
        stall_timeout=spec.stall_timeout or _default_stall_timeout(spec.checkpoints),
        grace=spec.grace,
        start_timeout=spec.start_timeout,
        contact_timeout=spec.contact_timeout,
        handover=spec.handover,
        update_strategy=spec.update_strategy,
        failure_unit=spec.failure_unit,
        backoff_limit=spec.restart_policy.backoff_limit,
        application_failures=spec.application_failures.limit,
        exhausted=spec.exhausted,
        deadline=spec.deadline.timestamp() if spec.deadline else None,
        max_duration=spec.max_duration,
        budget=spec.budget,
        suspend=spec.suspend,
        bucket=BucketPrice(bucket.per_gi_b_month, bucket.per_thousand_writes / 1000, bucket.per_thousand_reads / 1000),
        keep=spec.checkpoints.keep,
    )


def missing_capacity(
    job: TieredJob,
    known: Mapping[str, object],
    document: Document | None = None,
    *,
    nowhere: str = "is neither a pool of the world file nor a CapacityTier in these files",
    groups: bool = True,
) -> list[Problem]:
    """One problem for each tier, and with `groups` for each group of a tier, with unknown capacity. `document` provides
    its location; `nowhere` completes the message with the places that were searched."""
    problems = []
    named: list[tuple[str, Path]] = []
    for index, tier in enumerate(job.spec.tiers):
        at: Path = ("spec", "tiers", index)
        named.append((tier.capacity_tier, (*at, "capacityTier")))
        beside = tier.groups.items() if groups else ()
        named += [(group.capacity_tier, (*at, "groups", name, "capacityTier")) for name, group in beside]
    for name, path in named:
        if name in known:
            continue
        near = closest(name, known)
        hint = f"did you mean {near}?" if near else f"known: {', '.join(known)}"
        message = f'"{name}" {nowhere}; {hint}'
        problems.append(Problem(document.where(path) if document else "", dotted(path), message))
    return problems


def sizes(job: TieredJob) -> tuple[int, ...]:
    """The allowed numbers of workers of an elastic job, ascending; () for another job."""
    elastic, workers = job.spec.elastic, job.spec.ray_workers
    return () if elastic is None or not workers else sizes_of(elastic, workers)


def small_pools(job: TieredJob, known: Mapping[str, object], document: Document | None = None) -> list[Problem]:
    """One problem for each tier whose pool in the world has fewer nodes than the job needs workers. A pool of 0 nodes
    is allowed: it simulates missing capacity."""
    workers = min(sizes(job), default=job.spec.ray_workers)
    problems = []
    for index, tier in enumerate(job.spec.tiers):
        pool = known.get(tier.capacity_tier)
        if not isinstance(pool, WorldPool) or not 0 < pool.nodes < workers:
            continue
        path: Path = ("spec", "tiers", index, "capacityTier")
        name, has = tier.capacity_tier, "1 node" if pool.nodes == 1 else f"{pool.nodes} nodes"
        message = (
            f'the pool "{name}" has {has}, but the job needs {workers} workers at once: '
            f"set pools.{name}.nodes to {workers} or more in the world file, or lower replicas"
        )
        problems.append(Problem(document.where(path) if document else "", dotted(path), message))
    return problems


def unbounded_overlap(job: TieredJob, known: Mapping[str, object], document: Document | None = None) -> list[Problem]:
    """One problem if the prices of the tiers leave the cost of `spec.overlap` without a bound: one of any tier if it
    has no maximum duration, and one of a tier that a hedge would use."""
    priced = {tier.name: _has_price(known.get(tier.capacity_tier)) for tier in job.spec.tiers}
    missing = missing_prices(_overlap(job), priced)
    path: Path = ("spec", "overlap")
    if missing.for_moves:
        message = f"has no bound, because no price is known for {_tiers(missing.for_moves)}: set maxDuration"
    elif missing.for_hedges:
        path = (*path, "hedgeAfter")
        message = f"has no bound, because no price is known for {_tiers(missing.for_hedges)}: set the price"
    else:
        return []
    return [Problem(document.where(path, key=True) if document else "", dotted(path), message)]


def _overlap(job: TieredJob) -> Overlap | None:
    bounds = job.spec.overlap
    return None if bounds is None else Overlap(bounds.max_duration, bounds.budget, bounds.hedge_after)


def _tiers(names: Sequence[str]) -> str:
    return f"{'tier' if len(names) == 1 else 'tiers'} {', '.join(names)}"


def _has_price(capacity: object) -> bool:
    """Whether this pool or CapacityTier has a price. Unknown capacity is another problem."""
    if isinstance(capacity, WorldPool):
        return capacity.price is not None
    return not isinstance(capacity, CapacityTier) or capacity.spec.price is not None


def local_program(job: TieredJob, tier: str) -> LocalProgram:
    """The program to run on this machine for the given tier. Raises InvalidSpec for a workload without Ray."""
    spec = _ray_spec(job)
    documents = documents_of(spec.get("runtimeEnvYAML") or "", "runtimeEnvYAML")
    runtime_env = documents[0].data if documents else {}
    overrides = next((entry.overrides.env for entry in job.spec.tiers if entry.name == tier), {})
    return LocalProgram(
        entrypoint=spec["entrypoint"],
        workers=job.spec.ray_workers,
        env={**runtime_env.get("env_vars", {}), **overrides},
        ignored=tuple(key for key in runtime_env if key != "env_vars"),
    )


def _ray_workers(job: TieredJob) -> int:
    _ray_spec(job)  # Rejects another workload.
    return job.spec.ray_workers


def _ray_spec(job: TieredJob) -> dict[str, Any]:
    ray = job.spec.workload.of(RayWorkload)
    if ray is None:
        kind = job.spec.workload.kind
        raise InvalidSpec(
            f"local mode cannot run {kind} (expected ray): use workload.ray, or submit the job to a cluster",
            path=f"spec.workload.{kind}",
        )
    return ray.template.spec


def _default_stall_timeout(checkpoints: Checkpoints) -> Seconds:
    if checkpoints.program_folder is not None:
        return _STALL_TIMEOUT_OF_PROGRAMS
    return max(_LEAST_STALL_TIMEOUT, _STALL_INTERVALS * (interval_seconds(checkpoints.interval) or 0.0))
