"""The rule for a replacement in progress (`replacing.py`)."""

from __future__ import annotations

from collections.abc import Callable

from spotladder.core.changes.changing import responding
from spotladder.core.changes.replacing import handing_over
from spotladder.core.facts.elastic import continues_smaller, how_many
from spotladder.core.model import PodPhase, PodRole, PodSeen
from spotladder.core.reasons import Reason
from spotladder.core.rules.effect import Effect
from spotladder.core.situation import MAINTENANCE_LIMIT, Situation


def replacement_step(situation: Situation) -> Effect | None:
    """The next step of a replacement is due: the program is asked to continue without the noticed pods, has continued,
    or does not in time, and the attempt drains."""
    attempt = situation.attempt
    if not situation.leaving:
        ready = how_many(situation) or f"{situation.workers} workers"
        return Effect(situation, Reason.HANDED_OVER, f"{ready} are ready without {_count(attempt.notice.leaving)}")
    if attempt.notice.handing_over_since is not None:
        if not situation.passed(situation.handing_over_deadline):
            return None
        return Effect(situation, situation.notice_reason, "the program did not continue without the noticed pods")
    if _replacements_ready(situation):
        return Effect(handing_over(situation))
    if not situation.passed(attempt.notice.replace_by):
        return None
    if _replacements_placed(situation) or continues_smaller(situation):
        return Effect(handing_over(situation))
    if situation.notices_withdrawn:
        return Effect(responding(situation, replace_by=situation.now + MAINTENANCE_LIMIT))
    return Effect(situation, situation.notice_reason, "no capacity for a replacement in time")


def _replacements_ready(situation: Situation) -> bool:
    """Whether enough workers are ready without the leaving pods."""
    return _enough_stay(situation, lambda pod: pod.phase is PodPhase.RUNNING and pod.ready)


def _replacements_placed(situation: Situation) -> bool:
    """Whether enough workers have a node and their image, without the leaving pods."""
    return _enough_stay(situation, lambda pod: pod.phase is not PodPhase.LOST and pod.placed)


def _enough_stay(situation: Situation, met: Callable[[PodSeen], bool]) -> bool:
    seen, going = situation.attempt_seen, situation.attempt.notice.leaving
    if seen is None or not seen.reachable:
        return False
    workers = (pod for pod in seen.pods if pod.role is PodRole.WORKER and pod.uid not in going)
    return sum(1 for pod in workers if met(pod) and not pod.noticed) >= situation.workers


def _count(pods: tuple[str, ...]) -> str:
    return f"{len(pods)} noticed pod" + ("" if len(pods) == 1 else "s")
