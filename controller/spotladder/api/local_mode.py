"""A TieredJob on this machine: its tiers on the pools of a world, and its program."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import Any

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.document import Document, documents_of
from spotladder.api.missing_capacity import missing_capacity
from spotladder.api.problems import InvalidDocument, Path, Problem, dotted
from spotladder.api.ray_workload import RayWorkload
from spotladder.api.resolve import job_spec, overlap_of, sizes, tier_of
from spotladder.api.tieredjob import TieredJob
from spotladder.api.train import local_workload
from spotladder.api.workload import Workload
from spotladder.api.world import World, WorldPool
from spotladder.core.accounting.overlap_prices import missing_prices
from spotladder.core.model import Instant, JobSpec, KnownCapacity, Price, Tier
from spotladder.errors import InvalidSpec


@dataclass(frozen=True, slots=True)
class LocalProgram:
    """The program of local mode. `ignored` names the keys of runtimeEnvYAML that local mode does not apply."""

    entrypoint: str
    workers: int
    env: Mapping[str, str]
    ignored: tuple[str, ...]


def on_this_machine(job: TieredJob, checkpoints: File) -> TieredJob:
    """The job for local mode, if it has the short form `spec.train`: its commits are in this folder instead of a
    bucket. Raises InvalidSpec if local mode cannot start its processes."""
    train, spec = job.spec.train, job.spec
    if train is None:
        return job
    changed: dict[str, Any] = {"workload": Workload.model_validate(local_workload(train))}
    if "://" in spec.checkpoints.uri:
        changed["checkpoints"] = spec.checkpoints.model_copy(update={"uri": str(checkpoints)})
    return job.model_copy(update={"spec": spec.model_copy(update=changed)})


def tiers_on_pools(job: TieredJob, world: World) -> tuple[Tier, ...]:
    """The tiers of the job on the world's pools. Raises InvalidSpec with one problem for each tier with an unknown
    pool."""
    if problems := missing_capacity(job, world.pools, groups=False):
        raise InvalidDocument(problems)
    return tuple(_on_pool(tier_of(entry), world.pools[entry.capacity_tier]) for entry in job.spec.tiers)


def local_spec(job: TieredJob, world: World, *, submitted_at: Instant) -> JobSpec:
    """The job as the core's JobSpec, on the world's pools. Raises InvalidSpec for an unknown pool, and for a workload
    without Ray."""
    tiers = tiers_on_pools(job, world)
    _ray_spec(job)  # Rejects another workload.
    return job_spec(job, tiers, submitted_at=submitted_at, workers=job.spec.ray_workers)


def _on_pool(tier: Tier, pool: WorldPool) -> Tier:
    """The tier with the capacity of this pool. Without a price, the nodes of a world cost nothing."""
    price = Price.listed(pool.price.per_node_hour, pool.price.on_demand_per_node_hour) if pool.price else Price()
    return replace(tier, capacity_type=pool.capacity_type, price=price, notice=pool.notice)


def known_capacity(job: TieredJob, world: World) -> tuple[KnownCapacity, ...]:
    """What the world says about the capacity of each tier of the job. Losses at given times or steps and those of a
    trace have no rate."""
    return tuple(_known(world.pools[entry.capacity_tier]) for entry in job.spec.tiers)


def _known(pool: WorldPool) -> KnownCapacity:
    return KnownCapacity(
        pool.interruptions.hazard_per_hour if pool.interruptions else 0.0,
        math.inf,
        room=pool.nodes,
        ready_after=pool.provision_delay,
        closed=tuple((one.from_, math.inf if one.to is None else one.to) for one in pool.unavailable),
    )


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
    missing = missing_prices(overlap_of(job), priced)
    path: Path = ("spec", "overlap")
    if missing.for_moves:
        message = f"has no bound, because no price is known for {_tiers(missing.for_moves)}: set maxDuration"
    elif missing.for_hedges:
        path = (*path, "hedgeAfter")
        message = f"has no bound, because no price is known for {_tiers(missing.for_hedges)}: set the price"
    else:
        return []
    return [Problem(document.where(path, key=True) if document else "", dotted(path), message)]


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


def _ray_spec(job: TieredJob) -> dict[str, Any]:
    """The spec of the job's RayJob. Raises InvalidSpec for a workload without Ray."""
    ray = job.spec.workload.of(RayWorkload)
    if ray is None:
        kind = job.spec.workload.kind
        raise InvalidSpec(
            f"local mode cannot run {kind} (expected ray): use workload.ray, or submit the job to a cluster",
            path=f"spec.workload.{kind}",
        )
    return ray.template.spec
