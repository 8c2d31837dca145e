"""Replacing pods inside an attempt before their nodes go (surge), so that the loss costs one commit and one restart.

1. A notice with time left starts a replacement beside each noticed pod. The program is asked to commit at once, since
   a node may be reclaimed before its notice ends. Training continues.
2. When the replacements are ready, or at the last moment if they are at least placed, the program is asked to commit
   again and to continue without the noticed pods, which are removed.
3. Without capacity in time, an elastic program that has enough workers left continues with fewer. It does so at once
   if there is no time or no room for a replacement.
4. Otherwise, and for a program that cannot hand over, the attempt is drained as for any notice.

The notice is counted as a failure in either case, once. Pods on nodes that an administrator drains are replaced in the
same way; their notice is no failure. It may be withdrawn: then the program still moves, whenever it can.

A pod on a silent node that its cluster has not marked yet is replaced in the same way, without a handover. It keeps its
room on the node until the cluster marks the node: the scheduler would give the room to the replacement.

`rules.notices` begins a replacement, and `rules.replacements` advances it.
"""

from __future__ import annotations

from dataclasses import replace

from spotladder.core.changes.changing import counted, responding, with_response
from spotladder.core.facts import limits
from spotladder.core.facts.elastic import continues_smaller
from spotladder.core.history.losses import suspect_pods
from spotladder.core.model import (
    Handover,
    Instant,
    PodRole,
    PodSeen,
    Seconds,
    Stage,
)
from spotladder.core.situation import READY, Situation

COMMIT_RESERVE: Seconds = 10.0
"""Time before the end of a notice that is kept for the commit, but no more than half of a short notice, unless a longer
commit was measured."""


def with_replacement(situation: Situation, notices: list[PodSeen]) -> Situation | None:
    """The situation in which these pods, whose failures are counted, are being replaced; None if they cannot be."""
    by = _possible_until(situation, notices)
    if by is None:
        return None
    situation = counted(situation, notices)  # In maintenance they are no failures, and their removal must be none.
    attempt = situation.attempt
    known = (*attempt.notice.leaving, *(pod.uid for pod in notices if pod.uid not in attempt.notice.leaving))
    if attempt.notice.replace_by is not None and situation.state.stage is Stage.REPLACING:
        by = min(by, attempt.notice.replace_by)
    return responding(situation, leaving=known, replace_by=by, handing_over_since=None, commit_asked_at=situation.now)


def without_noticed(situation: Situation, notices: list[PodSeen]) -> Situation | None:
    """The situation in which an elastic program is asked to continue without these pods now; None if it cannot, or if
    too few workers are left."""
    if not continues_smaller(situation) or not _can_hand_over(situation, notices):
        return None
    situation = counted(situation, notices)
    leaving = situation.attempt.notice.leaving
    fresh = (pod.uid for pod in notices if pod.uid not in leaving)
    return handing_over(with_response(situation, leaving=(*leaving, *fresh)))


def handing_over(situation: Situation) -> Situation:
    """The situation in which the program is asked to continue without the leaving pods."""
    return responding(situation, handing_over_since=situation.now)


def with_suspects_replaced(situation: Situation) -> Situation:
    """The situation in which the workers on silent nodes count as lost and are being replaced, if that is possible.
    Otherwise they are lost when their cluster marks the nodes."""
    attempt, seen = situation.state.attempt, situation.attempt_seen
    if attempt is None or seen is None or not any(pod.suspect for pod in seen.pods):
        return situation
    if not seen.reachable or situation.state.stage not in READY | {Stage.RECOVERING}:
        return situation
    fresh = suspect_pods(attempt, seen)
    if fresh and seen.exit is None and _possible(situation, fresh):
        leaving = (*attempt.notice.leaving, *(pod.uid for pod in fresh))
        situation = responding(counted(situation, fresh), leaving=leaving, handing_over_since=None)
    going = situation.attempt.notice.leaving
    return replace(situation, seen=situation.seen.with_pods(attempt.number, lambda pod: _unready(pod, going)))


def _unready(pod: PodSeen, going: tuple[str, ...]) -> PodSeen:
    """A suspect pod that is being replaced is not ready."""
    return replace(pod, ready=False) if pod.suspect and pod.uid in going else pod


def without_finished_replacement(situation: Situation) -> Situation:
    """The situation without a replacement whose leaving pods are gone and which has no surplus worker."""
    attempt, seen = situation.state.attempt, situation.attempt_seen
    if attempt is None or not attempt.notice.leaving or seen is None or not seen.reachable:
        return situation
    present = any(pod.uid in attempt.notice.leaving for pod in seen.pods)
    if situation.state.stage not in (Stage.RUNNING, Stage.RECOVERING) or present or seen.surplus:
        return situation
    return with_response(situation, leaving=(), replace_by=None, handing_over_since=None)


def _possible_until(situation: Situation, notices: list[PodSeen]) -> Instant | None:
    """The time by which replacements for these pods must be ready; None if the pods cannot be replaced."""
    if not _possible(situation, notices):
        return None
    by = commit_due(situation, notices)
    return by if by > situation.now else None


def commit_due(situation: Situation, notices: list[PodSeen]) -> Instant:
    """The latest time at which to ask the program to commit, before the first of these pods is gone."""
    gone_at = min(situation.gone_at(pod) for pod in notices)
    reserve = min(COMMIT_RESERVE, (gone_at - situation.now) / 2)
    return gone_at - max(reserve, situation.state.measured.commit_seconds)


def _possible(situation: Situation, pods: list[PodSeen]) -> bool:
    """Whether these pods can be replaced inside the attempt."""
    if situation.tier is None or not _can_hand_over(situation, pods):
        return False
    if limits.over_tier_limit(situation) or limits.over_backoff_limit(situation):
        return False
    going = {pod.uid for pod in (*situation.leaving, *pods)}
    return situation.seen.surge_room is None or len(going) <= situation.seen.surge_room


def _can_hand_over(situation: Situation, pods: list[PodSeen]) -> bool:
    """Whether the program can continue inside the attempt without these pods."""
    seen, progress = situation.attempt_seen, situation.seen.progress
    if seen is None or seen.surplus is None or situation.finished or situation.spec.handover is not Handover.FENCED:
        return False
    if not progress.hands_over or progress.attempt != situation.attempt.number:
        return False
    return all(pod.role is PodRole.WORKER for pod in pods)
