"""What `plan` and `sim run` estimate: a job on its tiers, and the assumptions about its program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spotladder.api.checkpoint_fields import interval_seconds
from spotladder.api.read import errors_located, read_job
from spotladder.api.resolve import sizes
from spotladder.cli.option_errors import seconds
from spotladder.cli.target import ClusterTarget
from spotladder.cli.tier_facts import KnownFacts, tier_facts
from spotladder.core.accounting.held_nodes import GIB, HOUR
from spotladder.core.model import CommitSize, Instant, Seconds
from spotladder.errors import InvalidSpec
from spotladder.planner.plan import PlanInput, check_budget, time_limit

if TYPE_CHECKING:
    from spotladder.planner.simulated import Assumptions
    from spotladder.sim.trace import Trace

RESTART = 0.05
"""Default restart time after a failure, in hours (3 minutes)."""

RECENT: Seconds = 3600.0
"""Maximum age of the end of a trace that shows the present."""


@dataclass(frozen=True, slots=True)
class PlanArguments:
    """The options of the command, as they were given; None is the default."""

    file: Path
    hours: float
    world: Path | None
    traces: Sequence[str]
    evictions: float | None
    restart: Seconds
    overhead: float | None = None
    commit_time: str | None = None
    checkpoint_gib: float | None = None


def simulator_installed() -> bool:
    """Whether the packages of the simulator are installed."""
    return find_spec("numpy") is not None


def read_plan_input(given: PlanArguments, target: ClusterTarget) -> tuple[PlanInput, KnownFacts]:
    """The job on its tiers, and the facts about these. Raises InvalidSpec, located at the job file or the option, and
    Refused without a cluster whose tiers are known."""
    job = read_job(given.file)
    known = _with_traces(tier_facts(job, given.world, target, given.evictions), given.traces)
    with errors_located(given.file):
        time_limit(known.spec, given.hours)
        check_budget(known.spec, given.hours, [facts.tier.price.per_node_hour for facts in known.tiers])
    interval = interval_seconds(job.spec.checkpoints.interval)
    overhead = RESTART + (interval or 0.0) / 2 / HOUR if given.overhead is None else given.overhead
    longest = 0.0 if known.run is None else known.run.measured.commit_seconds
    commit = math.ceil(longest) if given.commit_time is None else seconds("--commit-time", given.commit_time)
    measured = given.commit_time is None and commit > 0
    policy = job.spec.policy
    plan_input = PlanInput(known.spec, known.tiers, given.hours, overhead, interval, commit, measured, policy)
    return replace(plan_input, sizes=sizes(job)), known


def assumed_program(plan_input: PlanInput, known: KnownFacts, given: PlanArguments) -> Assumptions:
    """The assumptions about the program of the job."""
    from spotladder.planner.simulated import Assumptions

    found: dict[str, Any] = {"restart": given.restart, "commit_size": _commit_size(known, given.checkpoint_gib)}
    if plan_input.commit_time:
        found["commit_time"] = plan_input.commit_time
    if plan_input.interval is not None:
        found["commit_interval"] = plan_input.interval
    return Assumptions(**found)


def _with_traces(known: KnownFacts, given: Sequence[str]) -> KnownFacts:
    """The facts with the recorded traces of --trace. Raises InvalidSpec."""
    if not given:
        return known
    if not simulator_installed():
        raise InvalidSpec("install 'spotladder[sim]'", path="--trace")
    from spotladder.cli.traces import traces
    from spotladder.planner.tier_capacity import with_traces

    found = traces(given)
    names = [facts.tier.name for facts in known.tiers]
    if unknown := [name for name in found if name not in names]:
        raise InvalidSpec(
            f"the job has no tier {unknown[0]!r} (expected one of {', '.join(names)}): write TIER=FILE", path="--trace"
        )
    until_now = all(_ends_at(trace, known.spec.submitted_at) for each in found.values() for trace in each)
    tiers = tuple(
        with_traces(facts, found[facts.tier.name], known.spec.workers, until_now=until_now)
        if facts.tier.name in found
        else facts
        for facts in known.tiers
    )
    return replace(known, tiers=tiers, spec=replace(known.spec, tiers=tuple(facts.tier for facts in tiers)))


def _ends_at(trace: Trace, now: Instant) -> bool:
    return trace.origin is not None and abs(trace.origin + trace.end - now) <= RECENT


def _commit_size(known: KnownFacts, gib: float | None) -> CommitSize | None:
    """The size of a commit: the GiB, otherwise that of the newest commit of the job's run. None if unknown."""
    if gib is not None:
        return CommitSize(round(gib * GIB))
    return None if known.run is None or not known.run.progress.size.bytes else known.run.progress.size
