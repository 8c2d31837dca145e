"""Leaves out of `provisionTimeout` and `recoveryTimeout` the time in which they do not run.

A timer is stored as the time of its start, which moves by the time that is left out:

1. The time between two decisions counts only if the timer ran at both. The decider may not be called while an image
   cannot be pulled or a queue holds the attempt, so the first decision after an impediment covers most of it.
2. An unreachable cluster and a limit of the CapacityTier are no lack of capacity, although `provisionTimeout` runs
   meanwhile, so that the job can leave the tier. If they end before it does, all of their time is left out.
"""

from __future__ import annotations

from spotladder.core.copying import replace
from spotladder.core.draft import Draft
from spotladder.core.impediment import BY_REASON, ImpedimentRule, Timer
from spotladder.core.model import Impeded, Instant, Seconds
from spotladder.core.situation import LIVE

_BEYOND_THE_JOB = (Timer.NONE, Timer.CONTACT, Timer.QUEUE)
"""The timers of impediments that suspend recoveryTimeout, too: only the user, an administrator or restored contact can
help, and not a new attempt."""


def leave_out_impeded_time(draft: Draft) -> None:
    """Move the start of each timer that was suspended since the last decision."""
    if draft.state.stage not in LIVE:
        return
    before, after = draft.impeded_before, draft.state.impeded
    if before is not None and _keeps_from_asking(before) and (after is None or after.reason is not before.reason):
        waiting = recovering = max(draft.since_last, draft.now - before.since)
    else:
        timers = {BY_REASON[one.reason].timer for one in (before, after) if one is not None}
        waiting = draft.since_last if timers - {Timer.PROVISION} else 0.0
        recovering = draft.since_last if timers.intersection(_BEYOND_THE_JOB) else 0.0
    state = draft.state
    draft.state = replace(
        state,
        waiting_since=_later(state.waiting_since, waiting, draft.now),
        recovering_since=_later(state.recovering_since, recovering, draft.now),
    )


def _keeps_from_asking(impeded: Impeded) -> bool:
    """Whether the impediment shows nothing about capacity, although provisionTimeout runs."""
    rule: ImpedimentRule = BY_REASON[impeded.reason]
    return rule.timer is Timer.PROVISION and not rule.exhausts


def _later(start: Instant | None, seconds: Seconds, now: Instant) -> Instant | None:
    """The start of a timer with this much time left out."""
    return None if start is None else min(now, start + seconds)
