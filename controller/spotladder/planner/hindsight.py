"""Plans a finished job again, from what was known at its start, and finds where its run lies in that plan.

The records have the prices, the capacity that was known and the policy at the start. What no plan can know before, the
work, is that of the run; so are the properties of the program: its start-up and its commits. What is left is what the
plan promised: when capacity comes and goes, and what that costs.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from statistics import fmean, median
from subprocess import DEVNULL, PIPE

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.model import Stage
from spotladder.display.report.facts import RunFacts
from spotladder.display.report.plan import Place, PlanPlace
from spotladder.errors import SpotladderError
from spotladder.planner.plan import PlanInput, TierFacts
from spotladder.planner.simulated import Assumptions, Distribution, looks_at_progress, outcomes

RUNS = 100
"""Number of simulated runs."""

MAX_COMMITS = 500
"""Maximum number of commits of a simulated run, about, if each may change the choice of the policy."""


def hindsight(facts: RunFacts) -> PlanPlace | None:
    """The place of the run in its plan. None if the job has not ended or is elastic, if its capacity or its work is
    unknown, or if it cannot be simulated."""
    ended, start = facts.state.stage in (Stage.SUCCEEDED, Stage.FAILED), facts.start
    if not ended or start is None or start.spec.min_workers is not None or not facts.steps or not facts.time.new:
        return None
    if len(start.known) != len(start.spec.tiers):
        return None  # An older version has recorded the start.
    hours = facts.time.new / HOUR * max(1.0, facts.total / facts.steps)
    # The step time is part of the work. What the commits of the run have cost is that of each simulated run, too: a
    # decision after each commit would take minutes.
    spec, stored = replace(start.spec, step_time=0.0, storage_per_gib_month=0.0), facts.state.extra
    assumptions = _assumptions(facts)
    if looks_at_progress(start.policy, spec):
        least = hours * HOUR / MAX_COMMITS
        assumptions = replace(assumptions, commit_interval=max(assumptions.commit_interval, least))
    tiers = tuple(TierFacts(tier, "", known) for tier, known in zip(start.spec.tiers, start.known, strict=True))
    if any(one.spot and one.known.evictions is None for one in tiers):
        return None
    given = PlanInput(
        spec, tiers, hours, 0.0, assumptions.commit_interval, assumptions.commit_time, policy=start.policy
    )
    try:
        runs = outcomes(given, assumptions, range(1, RUNS + 1))
    except SpotladderError:
        return None
    ends = [run.finished / HOUR for run in runs if run.succeeded]
    succeeded = facts.state.stage is Stage.SUCCEEDED
    priced = facts.on_demand > 0 and not facts.unpriced
    return PlanPlace(
        len(runs),
        len(ends) / len(runs),
        _placed(facts.spent, [run.cost + stored.storage for run in runs]) if priced else None,
        _placed(facts.time.total / HOUR, ends) if succeeded and ends else None,
    )


async def hindsight_aside(facts: RunFacts) -> PlanPlace | None:
    """The same from a process of its own with low priority, since the runs can take a minute of a processor."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", __name__, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
    )
    try:
        answer, _ = await process.communicate(pickle.dumps(facts))
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # Also the processes of its runs.
    found: PlanPlace | None = pickle.loads(answer) if answer else None  # noqa: S301 – of this program
    return found


def place(value: float, simulated: Sequence[float]) -> float:
    """The share of the simulated runs below the value, and half of those that are equal to it (to 1 %)."""
    below = sum(one < value * 0.99 for one in simulated)
    equal = sum(value * 0.99 <= one <= value * 1.01 for one in simulated)
    return (below + 0.5 * (equal + 1)) / (len(simulated) + 1)


def _placed(value: float, simulated: Sequence[float]) -> Place:
    at = Distribution.of(simulated).at
    return Place(value, place(value, simulated), at[10], at[50], at[90])


def _assumptions(facts: RunFacts) -> Assumptions:
    """The program of the run; where it is unknown, that of a plan."""
    state, usual = facts.state, Assumptions()
    boots = [start.boot for tier in state.tiers for start in tier.starts]
    gaps = [after.at - before.at for before, after in pairwise(facts.commits) if before.attempt == after.attempt]
    return Assumptions(
        restart=fmean(boots) if boots else usual.restart,
        commit_time=state.measured.commit_seconds or usual.commit_time,
        commit_interval=(median(gaps) if gaps else 0.0) or usual.commit_interval,
        commit_size=state.progress.size if state.progress.size.bytes else None,
    )


if __name__ == "__main__":
    os.nice(10)
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)  # A policy may print.
        pickle.dump(hindsight(pickle.load(sys.stdin.buffer)), answer)  # noqa: S301 – of this program
