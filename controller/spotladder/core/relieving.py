"""Standby attempts for eviction notices: the next attempt boots during the notice, so that the loss costs one commit.

1. A notice that the live attempt does not survive (its tier is exhausted by it, or the noticed pods cannot be replaced
   inside the attempt) plans the next attempt as a standby, on the tier that the policy chooses. The program is asked to
   commit at once. Training continues.
2. When the standby attempt is ready, or at the last moment for a commit, the live attempt is drained as for any notice.
3. When the live attempt has ended, the standby attempt becomes the live one, ready or not.

The notice is counted as a failure as soon as it is observed, once. Without a standby attempt the drain begins at once.
The attempt leaves nodes that an administrator drains in the same way, and no failure is counted. When all of them are
usable again, the standby attempt is given up.
"""

from __future__ import annotations

from spotladder.core import limits
from spotladder.core.copying import replace
from spotladder.core.draft import Draft
from spotladder.core.model import PodSeen
from spotladder.core.reasons import Reason
from spotladder.core.replacing import commit_due
from spotladder.core.situation import READY
from spotladder.core.standby_facts import overlaps, standby_ready
from spotladder.core.standing_by import PlannedMove, plan


def trains_until_relieved(draft: Draft, notices: list[PodSeen]) -> bool:
    """Begin to wait for the next attempt after these notices, whose failures are counted, if that is possible. Returns
    whether the live attempt continues for now."""
    situation, by = draft.situation, commit_due(draft.situation, notices)
    if by <= situation.now or not overlaps(situation) or limits.over_backoff_limit(situation):
        return False
    if draft.state.standby is None and not _planned(draft, notices):
        return False
    attempt = draft.situation.attempt
    if attempt.leave_by is None or by < attempt.leave_by:
        draft.state = replace(draft.state, attempt=replace(attempt, leave_by=by, commit_asked_at=draft.now))
        draft.replanned = True
    return True


def waits_for_relief(draft: Draft) -> bool:
    """Whether the live attempt, which has a notice, continues for now because the next one boots."""
    situation = draft.situation
    if situation.state.standby is None or standby_ready(situation):
        return False
    return situation.state.stage in READY and not situation.passed(situation.attempt.leave_by)


def stays(draft: Draft) -> bool:
    """Forget that the live attempt is to be relieved, if its nodes were only drained for maintenance and are usable
    again. Returns whether it stays."""
    if draft.state.loss_counted or not draft.situation.notices_withdrawn:
        return False
    draft.state = replace(draft.state, attempt=replace(draft.situation.attempt, leave_by=None))
    draft.replanned = True
    return True


def relief(draft: Draft) -> str:
    """The message when the live attempt is drained after it has waited for the next one."""
    standby = draft.state.standby
    what = "drained" if draft.situation.notice_reason is Reason.MAINTENANCE else "being reclaimed"
    if standby is None:
        return f"its nodes are {what}, and no attempt stands by"
    ready = "stands by" if standby_ready(draft.situation) else "is not ready yet"
    return f"its nodes are {what}; attempt {standby.number} on {standby.tier} {ready}"


def _planned(draft: Draft, notices: list[PodSeen]) -> bool:
    """Plan the next attempt as a standby, on the tier that it would have after a drain. Returns whether it may run
    beside the live one."""
    name = draft.choose(live=False).tier
    tier = draft.spec.tier(name) if name is not None else None
    if tier is None or tier.name not in draft.situation.open or tier.name in draft.seen.unavailable:
        return False
    why = ", ".join(f"{pod.called} ({pod.cause})" for pod in notices)
    plan(draft, PlannedMove(tier.name, draft.situation.notice_reason, why))
    return True
