"""Computes a TieredJob's status, and whether a change justifies a write."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from typing import Any

from spotladder.api.status import (
    AttemptStatus,
    Condition,
    CostStatus,
    ElasticStatus,
    ProgressStatus,
    RemovedAttemptStatus,
    StandbyStatus,
    TieredJobStatus,
    TierStatus,
    WaitingStatus,
)
from spotladder.core.diagnosis.impediment import BY_REASON, Timer
from spotladder.core.explanation import Explanation
from spotladder.core.facts.elastic import trains_with
from spotladder.core.model import Attempt, Instant, JobState, Seconds, Stage, codec
from spotladder.operator.condition_types import ConditionReason, Diagnosis, one_line
from spotladder.records.job_object import cost_fields, usd

COST_WRITE_INTERVAL: Seconds = 300.0
"""Minimum interval between two status writes that only change the cost."""

COST_WRITES_PER_SECOND = 5.0
"""Maximum rate of such writes of all jobs together: with more than 1,500 jobs their interval is longer."""

PODS_WRITE_INTERVAL: Seconds = 15.0
"""Minimum interval between two status writes that only change which pods are alive, or that the attempt exists."""

ENDING_WRITE_INTERVAL: Seconds = 30.0
"""The same for an attempt that is being removed: the status is written anyway when it is gone."""

WAITING_WRITE_INTERVAL: Seconds = 60.0
"""Interval between two status writes that only move the start of a suspended timer."""


def launch_diagnosis(status: TieredJobStatus, state: JobState) -> Diagnosis | None:
    """Why the attempt could not be launched when the status was written; None if it exists or waits for capacity.

    It is valid until this process has tried the launch itself: a suspended timer must not expire before.
    """
    impeded, attempt = state.impeded, state.attempt
    if impeded is None or attempt is None or attempt.seen or status.waiting is None:
        return None
    untimed = BY_REASON[impeded.reason].timer is Timer.NONE
    return Diagnosis(impeded.reason, status.waiting.message) if untimed else None


def of_state(
    state: JobState,
    conditions: Sequence[Condition],
    *,
    generation: int,
    uri: str,
    clusters: Mapping[str, str],
    tiers: Collection[str],
    message: str = "",
    waits: Explanation | None = None,
    uninterrupted: float | None = None,
) -> TieredJobStatus:
    """The status for this state, with its message or another `message`. `clusters` maps tiers to their clusters.
    `tiers` are the tier names of the spec. `uninterrupted` is what the committed steps cost without interruptions on
    demand, None if unknown."""
    progress, size = state.progress, trains_with(state)
    known = progress.committed_at is not None
    return TieredJobStatus(
        phase=state.phase,
        message=message or one_line(state.message),
        attempt=state.number,
        tier=state.tier,
        cluster=clusters.get(state.tier, ""),
        failures=state.failures,
        observed_generation=generation,
        conditions=list(conditions),
        tiers=[
            TierStatus(
                name=tier.name,
                failures=tier.failures,
                attempts=tier.attempts,
                node_seconds=round(tier.node_seconds, 1),
                cost=usd(tier.cost, unpriced=bool(tier.unpriced), places=4),
                last_reason=tier.last_reason or "",
                spent=tier.exhausted_by or "",
                removed=tier.name not in tiers,
            )
            for tier in state.tiers
        ],
        attempts=[
            AttemptStatus(
                number=attempt.number,
                tier=attempt.tier,
                cluster=clusters.get(attempt.tier, ""),
                started_at=_time(attempt.started_at),
                running_at=_time(attempt.running_at),
                ended_at=_time(attempt.ended_at),
                reason=attempt.reason,
                failures=attempt.failures,
                start_step=attempt.start_step,
                end_step=attempt.end_step,
            )
            for attempt in state.history
        ],
        progress=ProgressStatus(
            step=progress.step,
            total=progress.total,
            committed_at=_time(progress.committed_at),
            uri=uri if known else "",
            text=(f"{progress.step}/{progress.total}" if progress.total else str(progress.step)) if known else "",
        ),
        elastic=None if size is None else ElasticStatus(workers=size[0], wanted=size[1]),
        cost=CostStatus.model_validate(cost_fields(state, uninterrupted, places=2)),
        standby=None if state.standby.attempt is None else _standby(state, state.standby.attempt, clusters),
        removing=[
            RemovedAttemptStatus(
                number=left.number,
                tier=left.tier,
                cluster=clusters.get(left.tier, ""),
                since=datetime.fromtimestamp(int(left.since), UTC),
                nodes=left.nodes,
            )
            for left in state.left
        ],
        waiting=None if waits is None else _waiting(waits),
        state=codec.pack(state),
    )


def refusal(state: JobState, problems: Sequence[Diagnosis]) -> str:
    """Why the namespace may not run the attempt that is to be launched; "" if it may."""
    if state.attempt is not None and state.attempt.seen:
        return ""
    return next((one_line(each.message) for each in problems if each.reason is ConditionReason.NOT_ALLOWED), "")


def _standby(state: JobState, standby: Attempt, clusters: Mapping[str, str]) -> StandbyStatus:
    return StandbyStatus(
        number=standby.number,
        tier=standby.tier,
        cluster=clusters.get(standby.tier, ""),
        since=datetime.fromtimestamp(int(standby.created_at), UTC),
        reason=state.standby.reason,
    )


def _waiting(waits: Explanation) -> WaitingStatus:
    return WaitingStatus(
        reason=waits.reason,
        message=one_line(waits.message),
        since=datetime.fromtimestamp(int(waits.since), UTC),
        timer=waits.timer,
        until=_time(waits.until),
        then=waits.then,
    )


def plain(status: TieredJobStatus) -> dict[str, Any]:
    """The status as a merge patch, with null for removed fields."""
    waiting = status.waiting and status.waiting.model_dump(mode="json", by_alias=True)
    standby = status.standby and status.standby.model_dump(mode="json", by_alias=True)
    elastic = status.elastic and status.elastic.model_dump(mode="json", by_alias=True)
    written = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {**written, "waiting": waiting, "standby": standby, "elastic": elastic}


def worth_writing(
    held: TieredJobStatus,
    conditions: Sequence[Condition],
    old: JobState,
    new: JobState,
    *,
    generation: int,
    message: str = "",
    jobs: int = 1,
) -> bool:
    """Whether the status `old` must be replaced with `new` now. `message` is as for `of_state`, and `jobs` the number
    of jobs of the controller.

    Fields that change with time are written at intervals. So is what a new leader observes itself: the list of live
    pods, which changes often in a large job, which earlier attempts are being removed, and that the attempt exists.
    Until the latter is written, a new leader that does not find the attempt launches it under the same number, as after
    a crash during the launch.
    """
    if not held.state or _lasting(old) != _lasting(new):
        return True
    said = message or one_line(new.message)
    if (held.conditions, held.message, held.observed_generation) != (conditions, said, generation):
        return True
    waited = (new.timers.waiting_since or 0.0) - (old.timers.waiting_since or 0.0)
    return waited >= WAITING_WRITE_INTERVAL or new.clock >= _due(old, new, jobs)


def _lasting(state: JobState) -> JobState:
    lasting = state.lasting
    return replace(lasting, attempt=lasting.attempt and replace(lasting.attempt, seen=False), left=())


def due_in(old: JobState, new: JobState, *, jobs: int = 1) -> Seconds | None:
    """Seconds until the status `old` must be written again, without any event."""
    due = _due(old, new, jobs)
    return None if due == inf else max(0.1, due - new.clock)


def _due(old: JobState, new: JobState, jobs: int) -> Instant:
    interval = ENDING_WRITE_INTERVAL if new.stage is Stage.ENDING else PODS_WRITE_INTERVAL
    return min(
        old.clock + interval if _observed(old) != _observed(new) else inf,
        old.clock + max(COST_WRITE_INTERVAL, jobs / COST_WRITES_PER_SECOND) if _held(old) else inf,
    )


def _observed(state: JobState) -> tuple[int, tuple[str, ...], bool, tuple[int, ...]]:
    attempt = state.attempt
    pods, seen = (attempt.known.alive, attempt.seen) if attempt else ((), False)
    return _held(state), pods, seen, tuple(left.number for left in state.left)


def _held(state: JobState) -> int:
    """The number of nodes of all attempts."""
    return state.nodes + state.standby.nodes + state.left_nodes


def _time(instant: Instant | None) -> datetime | None:
    return None if instant is None else datetime.fromtimestamp(int(instant), UTC)
