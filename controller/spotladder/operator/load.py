"""The first third of a pass: one TieredJob and what the caches know, as the records that `decide` works on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf

from spotladder.api.check import checked
from spotladder.api.document import Document
from spotladder.api.resolve import Capacity, job_spec
from spotladder.api.status import TieredJobStatus
from spotladder.api.tieredjob import TieredJob
from spotladder.core.durations import parse_duration
from spotladder.core.model import TERMINAL, AttemptSeen, CapacityType, JobSpec, JobState, Observation, Price, Seconds
from spotladder.errors import InvalidSpec
from spotladder.operator import status as statuses
from spotladder.operator.conditions import Problem, Trouble
from spotladder.operator.inventory import Inventory
from spotladder.operator.logs import LogAddress, Reading
from spotladder.operator.records import CapacityRecord, JobRecord
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.tiers import ResolvedTier, resolve_tier
from spotladder.workloads.workload import AttemptObjects, Workload

PARSED = 128
"""So many specs are kept parsed: those of the jobs that move. The others are kept as text."""

_STEPS_EVERY: Seconds = 15.0
_SELDOM: Seconds = 60.0
_OFTEN: Seconds = 5.0


@dataclass(frozen=True, slots=True)
class Loaded:
    """Everything that one pass knows. `problems` are what a person should know of; `held` is why nothing is begun."""

    record: JobRecord
    job: TieredJob
    workload: Workload
    tiers: Mapping[str, ResolvedTier]
    clusters: Mapping[str, str]
    spec: JobSpec
    status: TieredJobStatus
    state: JobState
    seen: Observation
    objects: Mapping[int, AttemptObjects]
    problems: tuple[Problem, ...] = ()


class Specs:
    """Parses specs, once for each generation of those in use."""

    def __init__(self) -> None:
        self._parsed: OrderedDict[tuple[str, int], TieredJob] = OrderedDict()

    def of(self, record: JobRecord) -> TieredJob:
        """The TieredJob. Raises InvalidSpec with every problem."""
        key = record.uid, record.generation
        if key not in self._parsed:
            self._parsed[key] = checked(Document("", record.document(), {}, {}), TieredJob)
            if len(self._parsed) > PARSED:
                self._parsed.popitem(last=False)
        self._parsed.move_to_end(key)
        return self._parsed[key]


@dataclass(frozen=True, slots=True)
class Tiers:
    """A job's tiers, resolved, and why those that cannot be are not."""

    resolved: Mapping[str, ResolvedTier]
    missing: Mapping[str, Problem]


def resolve(
    job: TieredJob, capacity: Callable[[str], CapacityRecord | None], clusters: frozenset[str]
) -> Tiers:
    """Find the capacity of each tier."""
    resolved: dict[str, ResolvedTier] = {}
    missing: dict[str, Problem] = {}
    for index, tier in enumerate(job.spec.tiers):
        where = f"spec.tiers[{index}].capacityTier"
        record = capacity(tier.capacity_tier)
        if record is None or record.deleting:
            said = "is being deleted" if record else "does not exist"
            missing[tier.name] = Problem(
                Trouble.UNKNOWN_CAPACITY_TIER, f'{where}: CapacityTier "{tier.capacity_tier}" {said}'
            )
        elif record.model is None:
            missing[tier.name] = Problem(
                Trouble.UNKNOWN_CAPACITY_TIER,
                f'{where}: CapacityTier "{tier.capacity_tier}" is not valid: {record.problem}',
            )
        elif record.model.spec.cluster not in clusters:
            missing[tier.name] = Problem(
                Trouble.UNKNOWN_CLUSTER,
                f'{where}: CapacityTier "{tier.capacity_tier}" is in cluster "{record.model.spec.cluster}", which this '
                f"controller does not know; it knows {', '.join(sorted(clusters))}",
            )
        else:
            try:
                resolved[tier.name] = resolve_tier(index, tier, record.model)
            except InvalidSpec as error:
                missing[tier.name] = Problem(Trouble.UNKNOWN_CAPACITY_TIER, f"{where}: {error}")
    return Tiers(resolved, missing)


def spec_of(
    record: JobRecord, job: TieredJob, workload: Workload, tiers: Tiers, reading: Reading, settle: Seconds
) -> JobSpec:
    """The job as the core sees it.

    One that is being deleted is suspended: it commits and holds nothing. Without a look at the log nobody can tell a
    job that has stalled from one that goes on.
    """
    capacity = {
        entry.capacity_tier: Capacity(tier.capacity_type, tier.price)
        if (tier := tiers.resolved.get(entry.name))
        else Capacity(CapacityType.ON_DEMAND, Price())
        for entry in job.spec.tiers
    }
    spec = job_spec(job, capacity, submitted_at=record.created_at, workers=workload.workers(job))
    return replace(
        spec,
        settle=settle,
        suspend=spec.suspend or record.deleting,
        stall_timeout=inf if reading.unreadable or not reading.known else spec.stall_timeout,
    )


def address_of(record: JobRecord, job: TieredJob) -> LogAddress:
    """Where the job's log lies."""
    return LogAddress(record.name, record.namespace, record.uid, job.spec.checkpoints.uri)


def reads_every(job: TieredJob) -> Seconds:
    """How often the log is worth a look: about twice for each commit."""
    interval = job.spec.checkpoints.interval
    if interval.strip().endswith(("step", "steps")):
        return _STEPS_EVERY
    return min(_SELDOM, max(_OFTEN, parse_duration(interval) / 2))


def observe(
    record: JobRecord,
    state: JobState,
    workload: Workload,
    inventory: Inventory,
    tiers: Tiers,
    reading: Reading,
    blocked: str,
) -> tuple[Observation, dict[int, AttemptObjects]]:
    """What exists of the job.

    The snapshot is never older than the state that it is judged by: caches are listed after the lease was won, only
    go forward, and hold the answers to our own writes. So its revision is the state's own, or newer.
    """
    objects = inventory.attempts(record.key)
    nodes, events = inventory.nodes, inventory.events
    attempts: list[AttemptSeen] = [
        workload.read(number, found, nodes, events) for number, found in sorted(objects.items()) if number > 0
    ]
    live = state.attempt
    unavailable = {
        name: problem.message
        for name, problem in tiers.missing.items()
        if not (live and live.seen and live.tier == name)  # what exists there can still be looked at
    }
    version = int(record.resource_version) if record.resource_version.isdigit() else 0
    seen = Observation(
        revision=max(state.revision, version),
        attempts=tuple(attempts),
        progress=reading.progress if reading.known else state.progress,
        unavailable=unavailable,
        blocked=blocked,
    )
    return seen, objects


def problems_of(state: JobState, seen: Observation, reading: Reading, tiers: Tiers) -> list[Problem]:
    """What stands in the way of a job that is under way."""
    problems = []
    if seen.blocked:
        problems.append(Problem(Trouble.LAUNCH_REFUSED, seen.blocked))
    for attempt in seen.attempts:
        if attempt.blocked and state.attempt and attempt.number == state.attempt.number:
            problems.append(Problem(Trouble.BLOCKED, attempt.blocked))
    if reading.foreign:
        problems.append(Problem(Trouble.CHECKPOINTS_IN_USE, reading.foreign))
    if reading.corrupt:
        problems.append(Problem(Trouble.CHECKPOINTS_CORRUPT, reading.corrupt))
    if reading.unreadable and state.stage not in TERMINAL:
        problems.append(Problem(Trouble.CHECKPOINTS_UNREADABLE, reading.unreadable))
    problems += [
        Problem(Trouble.CAPACITY_TIER_GONE, problem.message)
        if problem.trouble is Trouble.UNKNOWN_CAPACITY_TIER
        else problem
        for problem in tiers.missing.values()
    ]
    return problems


def started(state: JobState) -> bool:
    """Whether an attempt was ever planned."""
    return state.last_number > 0


def state_from(record: JobRecord) -> tuple[TieredJobStatus, JobState]:
    """What was persisted. Raises InvalidSpec when a newer version wrote it."""
    status = statuses.held(record)
    return status, statuses.state_of(status)
