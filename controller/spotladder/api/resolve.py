"""From what users write to what the core decides on: defaults filled in, tiers with their capacity and price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spotladder.api.document import Document, documents_of
from spotladder.api.problems import InvalidDocument, Path, Problem, dotted
from spotladder.api.suggest import closest
from spotladder.api.tieredjob import Checkpoints, TieredJob
from spotladder.api.workload import workers_of
from spotladder.api.world import Pool, World
from spotladder.core.durations import parse_duration
from spotladder.core.model import CapacityType, Instant, JobSpec, Price, Seconds, Tier
from spotladder.errors import InvalidSpec

_LEAST_STALL_TIMEOUT = 600.0
_STALL_INTERVALS = 5


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the decision core knows of the capacity behind a tier."""

    capacity_type: CapacityType
    price: Price
    notice: Seconds = 0.0


@dataclass(frozen=True, slots=True)
class LocalProgram:
    """What local mode runs. `ignored` names the keys of runtimeEnvYAML that it does not apply."""

    entrypoint: str
    workers: int
    env: Mapping[str, str]
    ignored: tuple[str, ...]


def capacity_of(world: World) -> dict[str, Capacity]:
    """The world's pools as capacity, by name."""
    capacity = {}
    for name, pool in world.pools.items():
        price = Price()
        if pool.price:
            yardstick = pool.price.on_demand_per_node_hour
            per_node_hour = pool.price.per_node_hour
            price = Price(per_node_hour, per_node_hour if yardstick is None else yardstick)
        capacity[name] = Capacity(pool.capacity_type, price, pool.notice)
    return capacity


def job_spec(
    job: TieredJob, capacity: Mapping[str, Capacity], *, submitted_at: Instant, workers: int | None = None
) -> JobSpec:
    """The job as the core sees it. Raises InvalidSpec for every tier whose capacity is not known.

    `workers` is the number of pods that make the job whole, for workloads other than Ray.
    """
    if problems := missing_capacity(job, capacity):
        raise InvalidDocument(problems)
    spec = job.spec
    tiers = tuple(
        Tier(
            name=tier.name,
            max_failures=tier.max_failures,
            provision_timeout=tier.provision_timeout,
            capacity_type=capacity[tier.capacity_tier].capacity_type,
            price=capacity[tier.capacity_tier].price,
            on_insufficient_capacity=tier.on_insufficient_capacity,
            notice=capacity[tier.capacity_tier].notice,
        )
        for tier in spec.tiers
    )
    return JobSpec(
        tiers=tiers,
        workers=workers_of(_ray_spec(job)) if workers is None else workers,
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
    )


def missing_capacity(
    job: TieredJob,
    known: Mapping[str, object],
    document: Document | None = None,
    *,
    nowhere: str = "is neither a pool of the world file nor a CapacityTier here",
) -> list[Problem]:
    """One problem for each tier that names capacity that is not known; `document` tells where it was read, `nowhere`
    where it was looked for."""
    problems = []
    for index, tier in enumerate(job.spec.tiers):
        if tier.capacity_tier in known:
            continue
        path: Path = ("spec", "tiers", index, "capacityTier")
        near = closest(tier.capacity_tier, known)
        hint = f"did you mean {near}?" if near else f"known: {', '.join(known)}"
        message = f'"{tier.capacity_tier}" {nowhere}; {hint}'
        problems.append(Problem(document.where(path) if document else "", dotted(path), message))
    return problems


def small_pools(job: TieredJob, known: Mapping[str, object], document: Document | None = None) -> list[Problem]:
    """One problem for each tier whose pool of a world has nodes, but fewer than the job has workers: it can never be
    whole there. A pool of 0 nodes stands for one without capacity."""
    ray = job.spec.workload.ray
    workers = workers_of(ray.template.spec) if ray else 0
    problems = []
    for index, tier in enumerate(job.spec.tiers):
        pool = known.get(tier.capacity_tier)
        if not isinstance(pool, Pool) or not 0 < pool.nodes < workers:
            continue
        path: Path = ("spec", "tiers", index, "capacityTier")
        name, has = tier.capacity_tier, "1 node" if pool.nodes == 1 else f"{pool.nodes} nodes"
        message = (
            f'the pool "{name}" has {has}, and the job needs {workers} workers at once: '
            f"set pools.{name}.nodes to {workers} or more in the world file, or lower replicas"
        )
        problems.append(Problem(document.where(path) if document else "", dotted(path), message))
    return problems


def local_program(job: TieredJob, tier: str) -> LocalProgram:
    """What to run on this machine when the job is on that tier. Raises InvalidSpec for a workload without Ray."""
    spec = _ray_spec(job)
    documents = documents_of(spec.get("runtimeEnvYAML") or "", "runtimeEnvYAML")
    runtime_env = documents[0].data if documents else {}
    overrides = next((entry.overrides.env for entry in job.spec.tiers if entry.name == tier), {})
    return LocalProgram(
        entrypoint=spec["entrypoint"],
        workers=workers_of(spec),
        env={**runtime_env.get("env_vars", {}), **overrides},
        ignored=tuple(key for key in runtime_env if key != "env_vars"),
    )


def _ray_spec(job: TieredJob) -> dict[str, Any]:
    ray = job.spec.workload.ray
    if ray is None:
        raise InvalidSpec("a JobSet cannot be run on this machine; use workload.ray", path="spec.workload.jobSet")
    return ray.template.spec


def _default_stall_timeout(checkpoints: Checkpoints) -> Seconds:
    if checkpoints.interval.endswith("steps"):
        return _LEAST_STALL_TIMEOUT
    return max(_LEAST_STALL_TIMEOUT, _STALL_INTERVALS * parse_duration(checkpoints.interval))
