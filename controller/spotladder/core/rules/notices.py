"""Rules for notices: nodes of the live attempt will be reclaimed, or an administrator drains them.

`notice` decides among four answers, in this order:

1. **Replace.** A replacement for each noticed pod boots inside the attempt (`replacing.py`).
2. **Continue smaller.** An elastic program that has enough workers left continues without the noticed ones
   (`elastic.py`).
3. **Boot the next attempt.** With `overlap` the next attempt boots as a standby attempt (`standing_by.py`).
4. **Drain.** The attempt commits and stops, and the next one follows.

The notice is counted as a failure in either case, once; maintenance is no failure.
"""

from __future__ import annotations

from spotladder.core.changes.changing import asked, counted, exhausted_if_exceeded, responding
from spotladder.core.changes.replacing import commit_due, with_replacement, without_noticed
from spotladder.core.changes.standing_by import PlannedMove, with_standby
from spotladder.core.diagnosis.evidence import maintenance
from spotladder.core.facts import limits
from spotladder.core.facts.elastic import continues_smaller, why_smaller
from spotladder.core.facts.standby import overlaps
from spotladder.core.history.losses import failing, noticed_pods
from spotladder.core.model import PodSeen, Stage
from spotladder.core.reasons import Reason
from spotladder.core.rules.effect import Effect, ended
from spotladder.core.situation import Situation


def drained_node(situation: Situation) -> Effect | None:
    """An administrator drains a node of an attempt that was never ready: it ends, and the next one uses other nodes."""
    notices = _fresh(situation)
    if not notices or situation.notice_reason is not Reason.MAINTENANCE:
        return None
    return Effect(situation, *_leaves(situation, notices))


def notice(situation: Situation) -> Effect | None:
    """Nodes will be reclaimed or are drained: the pods on them are replaced, or the program continues without them, or
    the next attempt boots beside this one, or this one commits and stops."""
    notices = _fresh(situation)
    if not notices:
        return None
    situation = counted(situation, failing(notices))
    answer = _replaced(situation, notices)
    if answer is not None:
        return answer
    if situation.state.stage is not Stage.RECOVERING:
        situation = exhausted_if_exceeded(situation)
    return _smaller(situation, notices) or _next_boots(situation, notices) or _drained(situation, notices)


def _fresh(situation: Situation) -> list[PodSeen]:
    """Pods of the live attempt whose nodes are about to be reclaimed, or are drained, without those that it leaves
    already: pods that are being replaced and, while the next attempt boots, drained nodes."""
    attempt, seen = situation.attempt, situation.attempt_seen
    fresh = [pod for pod in noticed_pods(attempt, seen) if pod.uid not in attempt.notice.leaving] if seen else []
    return fresh if attempt.notice.leave_by is None else failing(fresh)


def _replaced(situation: Situation, notices: list[PodSeen]) -> Effect | None:
    """Replacements for these pods start, if that is possible, unless the next attempt boots already or the program is
    asked to continue without others."""
    stage, attempt = situation.state.stage, situation.attempt
    if stage is Stage.RECOVERING or (stage is Stage.RUNNING and attempt.notice.leave_by is not None):
        return None
    if stage is Stage.REPLACING and attempt.notice.handing_over_since is not None:
        return None
    begun = with_replacement(situation, notices)
    if begun is None:
        return None
    if stage is Stage.REPLACING:
        return Effect(begun)
    return Effect(begun, Reason.REPLACING, _leaves(begun, notices)[1])


def _smaller(situation: Situation, notices: list[PodSeen]) -> Effect | None:
    """An elastic program with enough workers left continues without these pods: it is asked to, or learns of the
    notice by itself."""
    stage, seen = situation.state.stage, situation.attempt_seen
    smaller = without_noticed(situation, notices)
    if smaller is not None and stage is Stage.RUNNING:
        return Effect(smaller, Reason.REPLACING, why_smaller(smaller, list(smaller.changes.losses)))
    if smaller is not None:
        return Effect(smaller)
    learns_of_it = seen is None or seen.surplus is None
    goes_on = stage is not Stage.REPLACING and learns_of_it and continues_smaller(situation)
    return Effect(situation) if goes_on else None


def _next_boots(situation: Situation, notices: list[PodSeen]) -> Effect | None:
    """The next attempt boots as a standby attempt, on the tier that it would have after a drain. The live one commits
    at once, and continues to train until the last moment for another commit."""
    by = commit_due(situation, notices)
    if situation.state.stage is not Stage.RUNNING or by <= situation.now:
        return None
    if not overlaps(situation) or limits.over_backoff_limit(situation):
        return None
    if situation.state.standby.attempt is None:
        situation = asked(situation, live=False)
        tier = situation.spec.tier(situation.changes.choice.tier or "")
        if tier is None or not situation.may_use(tier.name):
            return None
        why = ", ".join(f"{pod.called} ({pod.cause})" for pod in notices)
        situation = with_standby(situation, PlannedMove(tier.name, situation.notice_reason, why))
    leave_by = situation.attempt.notice.leave_by
    if leave_by is None or by < leave_by:
        situation = responding(situation, leave_by=by, commit_asked_at=situation.now)
    return Effect(situation, waits=True)


def _drained(situation: Situation, notices: list[PodSeen]) -> Effect:
    """The attempt commits and stops, or ends if it has lost pods."""
    if situation.state.stage is Stage.RECOVERING:
        return ended(situation, *_leaves(situation, notices))
    return Effect(situation, *_leaves(situation, notices))


def _leaves(situation: Situation, notices: list[PodSeen]) -> tuple[Reason, str]:
    """The reason and the message for the end of an attempt that does not survive these notices."""
    if situation.notice_reason is Reason.MAINTENANCE:
        return Reason.MAINTENANCE, maintenance(situation)
    return Reason.EVICTION_NOTICE, ", ".join(f"{pod.called} ({pod.cause})" for pod in notices)
