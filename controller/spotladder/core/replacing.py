"""Replacing pods inside an attempt before their nodes go (surge), so that the loss costs one commit and one restart.

1. A notice with time left starts a replacement beside each noticed pod. The program is asked to commit at once, since
   a node may be reclaimed before its notice ends. Training continues.
2. When the replacements are ready, or at the last moment if they are at least placed, the program is asked to commit
   again and to continue without the noticed pods, which are removed.
3. Without capacity in time, an elastic program that has enough workers left continues with fewer. It does so at once
   if there is no time for a replacement, or the tier wants none.
4. Otherwise, and for a program that cannot hand over, the attempt is drained as for any notice.

The notice is counted as a failure in either case, once. Pods on nodes that an administrator drains are replaced in the
same way; their notice is no failure. It may be withdrawn: then the program still moves, whenever it can.

A pod on a silent node that its cluster has not marked yet is replaced in the same way, without a handover. It keeps its
room on the node until the cluster marks the node: the scheduler would give the room to the replacement.
"""

from __future__ import annotations

from collections.abc import Callable

from spotladder.core import limits
from spotladder.core.copying import replace
from spotladder.core.draft import Draft
from spotladder.core.elastic import continues_smaller, how_many
from spotladder.core.losses import suspect_pods
from spotladder.core.model import (
    Attempt,
    AttemptSeen,
    Handover,
    Instant,
    Observation,
    PodPhase,
    PodRole,
    PodSeen,
    Seconds,
    Stage,
)
from spotladder.core.reasons import Reason
from spotladder.core.situation import MAINTENANCE_LIMIT, READY, Situation

COMMIT_RESERVE: Seconds = 10.0
"""Time before the end of a notice that is kept for the commit, unless a longer one was measured."""


def started(draft: Draft, notices: list[PodSeen]) -> bool:
    """Begin to replace these pods, whose failures are counted, if that is possible. Returns whether it is."""
    by = _possible_until(draft.situation, notices)
    if by is None:
        return False
    draft.count(notices)  # During maintenance they are not failures, and their removal must not count as one.
    attempt = draft.situation.attempt
    known = (*attempt.leaving, *(pod.uid for pod in notices if pod.uid not in attempt.leaving))
    if attempt.replace_by is not None and draft.state.stage is Stage.REPLACING:
        by = min(by, attempt.replace_by)
    attempt = replace(attempt, leaving=known, replace_by=by, handing_over_since=None, commit_asked_at=draft.now)
    draft.state = replace(draft.state, attempt=attempt)
    draft.replanned = True
    return True


def continues_without(draft: Draft, notices: list[PodSeen]) -> bool:
    """Ask an elastic program to continue without these pods now, if enough workers are left and it can. Returns
    whether it is asked."""
    situation = draft.situation
    if not continues_smaller(situation) or not _can_hand_over(situation, notices):
        return False
    draft.count(notices)
    attempt = draft.situation.attempt
    fresh = (pod.uid for pod in notices if pod.uid not in attempt.leaving)
    attempt = replace(attempt, leaving=(*attempt.leaving, *fresh))
    draft.state = replace(draft.state, attempt=attempt)
    hand_over(draft)
    return True


def replace_suspects(draft: Draft) -> None:
    """Count the workers on silent nodes as lost and start to replace them, if that is possible. Otherwise they are lost
    when their cluster marks the nodes."""
    attempt, seen = draft.state.attempt, draft.situation.attempt_seen
    if attempt is None or seen is None or not any(pod.suspect for pod in seen.pods):
        return
    if not seen.reachable or draft.state.stage not in READY | {Stage.RECOVERING}:
        return
    fresh = suspect_pods(attempt, seen)
    if fresh and seen.exit is None and _possible(draft.situation, fresh):
        draft.count(fresh)
        going = (*attempt.leaving, *(pod.uid for pod in fresh))
        attempt = replace(draft.situation.attempt, leaving=going, handing_over_since=None)
        draft.state = replace(draft.state, attempt=attempt)
        draft.replanned = True
    draft.seen = _without_suspects(draft.seen, draft.situation.attempt)


def _without_suspects(seen: Observation, attempt: Attempt) -> Observation:
    """The observation in which the suspect pods that are being replaced are not ready."""

    def without_suspects(entry: AttemptSeen) -> AttemptSeen:
        going = {pod.uid for pod in entry.pods if pod.suspect and pod.uid in attempt.leaving}
        return replace(entry, pods=tuple(replace(pod, ready=pod.ready and pod.uid not in going) for pod in entry.pods))

    return replace(
        seen,
        attempts=tuple(without_suspects(entry) if entry.number == attempt.number else entry for entry in seen.attempts),
    )


def advance(draft: Draft) -> None:
    """Perform the next step of a replacement in progress, if one is due."""
    situation = draft.situation
    attempt = situation.attempt
    if not situation.leaving:
        ready = how_many(situation) or f"{situation.workers} workers"
        draft.move(Reason.HANDED_OVER, f"{ready} are ready without {_count(attempt.leaving)}")
    elif attempt.handing_over_since is not None:
        if situation.passed(situation.handing_over_deadline):
            draft.move(situation.notice_reason, "the program did not continue without the noticed pods")
    elif _replacements_ready(situation) or (situation.passed(attempt.replace_by) and _continues_before(situation)):
        hand_over(draft)
    elif situation.passed(attempt.replace_by) and situation.notices_withdrawn:
        draft.state = replace(draft.state, attempt=replace(attempt, replace_by=draft.now + MAINTENANCE_LIMIT))
        draft.replanned = True
    elif situation.passed(attempt.replace_by):
        draft.move(situation.notice_reason, "no capacity for a replacement in time")


def _continues_before(situation: Situation) -> bool:
    """Whether the program continues although the replacements are not ready."""
    return _replacements_placed(situation) or continues_smaller(situation)


def _replacements_ready(situation: Situation) -> bool:
    """Whether enough workers are ready without the leaving pods."""
    return _enough_stay(situation, lambda pod: pod.phase is PodPhase.RUNNING and pod.ready)


def _replacements_placed(situation: Situation) -> bool:
    """Whether enough workers have a node and their image, without the leaving pods."""
    return _enough_stay(situation, lambda pod: pod.phase is not PodPhase.LOST and pod.placed)


def _enough_stay(situation: Situation, met: Callable[[PodSeen], bool]) -> bool:
    seen, going = situation.attempt_seen, situation.attempt.leaving
    if seen is None or not seen.reachable:
        return False
    workers = (pod for pod in seen.pods if pod.role is PodRole.WORKER and pod.uid not in going)
    return sum(1 for pod in workers if met(pod) and not pod.noticed) >= situation.workers


def hand_over(draft: Draft) -> None:
    """Ask the program to continue without the leaving pods."""
    draft.state = replace(draft.state, attempt=replace(draft.situation.attempt, handing_over_since=draft.now))
    draft.replanned = True


def forget_finished(draft: Draft) -> None:
    """Forget a replacement once its pods are gone and no worker is left over."""
    attempt, seen = draft.state.attempt, draft.situation.attempt_seen
    if attempt is None or not attempt.leaving or seen is None or not seen.reachable:
        return
    present = any(pod.uid in attempt.leaving for pod in seen.pods)
    if draft.state.stage in (Stage.RUNNING, Stage.RECOVERING) and not present and not seen.surplus:
        attempt = replace(attempt, leaving=(), replace_by=None, handing_over_since=None)
        draft.state = replace(draft.state, attempt=attempt)


def _possible_until(situation: Situation, notices: list[PodSeen]) -> Instant | None:
    """The time by which replacements for these pods must be ready; None if the pods cannot be replaced."""
    if not _possible(situation, notices):
        return None
    by = commit_due(situation, notices)
    return by if by > situation.now else None


def commit_due(situation: Situation, notices: list[PodSeen]) -> Instant:
    """The latest time at which to ask the program to commit, before the first of these pods is gone."""
    return min(situation.gone_at(pod) for pod in notices) - max(COMMIT_RESERVE, situation.state.commit_seconds)


def _possible(situation: Situation, pods: list[PodSeen]) -> bool:
    """Whether these pods can be replaced inside the attempt."""
    if situation.tier is None or not situation.tier.surge or not _can_hand_over(situation, pods):
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


def _count(pods: tuple[str, ...]) -> str:
    return f"{len(pods)} noticed pod" + ("" if len(pods) == 1 else "s")
