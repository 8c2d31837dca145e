"""The time that an attempt needs from its plan to its first step, as the job has measured it.

Rules
 1. A start is the wait until all workers are ready, and the boot of the program until its first step. The starts of a
    tier are kept in its record. Those of standby attempts are not: they wait for another attempt to end.
 2. A start on capacity that is not spot counts as the longest wait of the job on that tier, or else the usual wait of
    all jobs there (`Tier.wait`) or the job's shortest on any other tier, if that is longer, plus the longest boot. A
    start on spot capacity counts as the shortest wait, since a longer one is a wait for capacity, plus the longest
    boot.
 3. The safety net keeps LEAST_RESERVE at least for a start on capacity that is not spot: one short start does not show
    that the next one is short.
 4. `JobSpec.overhead`, if given, is used instead of the measured starts, without a reserve.
"""

from __future__ import annotations

from dataclasses import replace

from spotladder.core.facts import limits
from spotladder.core.facts.work import pace, speed
from spotladder.core.history.losses import with_record
from spotladder.core.model import (
    Attempt,
    AttemptRecord,
    AttemptSeen,
    CapacityType,
    Instant,
    JobSpec,
    JobState,
    Seconds,
    Start,
    Tier,
)

KEPT = 8
"""Maximum number of starts that are kept for each tier; the oldest are dropped."""

LEAST_RESERVE: Seconds = 600.0
"""Shortest time that is kept for a start on capacity that is not spot: for a node, the image and the program."""

RESERVE_SHARE = 0.1
"""The share of the time from the submission to the deadline that LEAST_RESERVE is limited to."""


def with_first_step(state: JobState, spec: JobSpec, seen: AttemptSeen) -> JobState:
    """The state with the start of the live attempt, once its program has made a step."""
    attempt = state.attempt
    if attempt is None or attempt.standby or attempt.stepped_at is not None or attempt.running_at is None:
        return state
    if state.timers.waiting_since is not None or attempt.all_ready_at != attempt.running_at:
        return state  # It has lost pods since.
    if (found := _first_step_at(state, spec, attempt, seen)) is None:
        return state
    at = max(attempt.running_at, found)
    record = state.record(attempt.tier)
    start = Start(attempt.running_at - attempt.created_at, at - attempt.running_at)
    state = with_record(state, replace(record, starts=(*record.starts, start)[-KEPT:]))
    return replace(state, attempt=replace(attempt, stepped_at=at))


def _first_step_at(state: JobState, spec: JobSpec, attempt: Attempt, seen: AttemptSeen) -> Instant | None:
    """When the program began its first step; None while that is unknown. The first heartbeat and the first commit are
    observed after some steps, whose duration the pace gives."""
    each, progress = pace(spec, state), state.progress
    if attempt.steps:
        group = attempt.steps[0]
        early = group.first > attempt.start_step  # Else it is from before the first step.
        step, at = (group.first, group.first_at) if early else (group.last, group.last_at)
        if step > attempt.start_step:
            return at - (step - attempt.start_step) * (each or 0.0) / speed(group.workers, spec.workers)
    elif seen.moved_at is not None:
        return seen.moved_at
    if progress.attempt != attempt.number or each is None or state.progress_at is None:
        return None
    committed = progress.step - attempt.start_step
    took = committed * each / speed(progress.workers, spec.workers)
    return state.progress_at - took if committed > 0 else None


def start_overhead(spec: JobSpec, state: JobState, tier: Tier) -> Seconds:
    """The time that a new attempt on this tier needs until it makes progress; 0 if unknown."""
    steady = tier.capacity_type is not CapacityType.SPOT
    attempts = (state.attempt, *state.history)
    seen = [_wait(attempt) for attempt in attempts if attempt is not None and attempt.tier == tier.name]
    if spec.overhead is not None:
        return spec.overhead + (max(seen, default=0.0) if steady else 0.0)
    starts = {record.name: record.starts for record in state.tiers}
    own = [start.wait for start in starts.get(tier.name, ())]
    others = [start.wait for known in starts.values() for start in known]
    boot = max((start.boot for known in starts.values() for start in known), default=0.0)
    if steady:
        return (max([*own, *seen], default=0.0) or max(tier.wait, min(others, default=0.0))) + boot
    return min(own or others) + boot if others else 0.0


def start_reserve(spec: JobSpec, state: JobState, tier: Tier) -> Seconds | None:
    """The time that the safety net keeps for a start on this tier; None: that of `start_overhead`."""
    end = limits.deadline(spec)
    if tier.capacity_type is CapacityType.SPOT or spec.overhead is not None or end is None:
        return None
    least = min(LEAST_RESERVE, RESERVE_SHARE * max(0.0, end - spec.submitted_at))
    return max(start_overhead(spec, state, tier), least)


def _wait(attempt: Attempt | AttemptRecord) -> Seconds:
    began = attempt.created_at if isinstance(attempt, Attempt) else attempt.started_at
    return 0.0 if attempt.running_at is None else attempt.running_at - began
