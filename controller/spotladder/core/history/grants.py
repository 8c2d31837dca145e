"""Grants and refusals of a tier, as the decisions of jobs show them: jobs that share capacity learn from each other.

Rules
 1. A tier grants a job when the head and all workers of an attempt are ready.
 2. A tier refuses a job when an attempt ends without its nodes: no capacity for `provisionTimeout`. A loss of
    capacity that a job observes is a refusal, too, once for each outage.
 3. A grant stands until a refusal. A refusal at the same time is the newer one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spotladder.core.model import Decision, Instant, JobState, Move, TierRecord
from spotladder.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class Answer:
    """A tier granted or refused the nodes of a job. `move` shows it; None: the job observed that an outage began."""

    tier: str
    granted: bool
    move: Move | None = None


def answers(before: JobState, decision: Decision) -> Iterator[Answer]:
    """The answers of the tiers that this decision shows, oldest first. `before` is the state before the decision."""
    for record in decision.state.tiers:
        if _outage_began(before.record(record.name), record):
            yield Answer(record.name, granted=False)
    for move in decision.moves:
        if move.reason is Reason.ALL_READY:
            yield Answer(move.tier, granted=True, move=move)
        elif move.reason is Reason.INSUFFICIENT_CAPACITY:
            yield Answer(move.tier, granted=False, move=move)


def standing_grant(granted: Instant | None, refused: Instant | None) -> Instant | None:
    """The time of the newest grant of a tier if it stands; None without one. `granted` and `refused` are the times of
    the newest answers."""
    return granted if granted is not None and (refused is None or granted > refused) else None


def _outage_began(before: TierRecord, after: TierRecord) -> bool:
    """Whether the job has observed since `before` that the tier has no capacity."""
    newest, last = after.spells[-1:], before.spells[-1:]
    return bool(newest) and not newest[0].available and not (last and last[0].since == newest[0].since)
