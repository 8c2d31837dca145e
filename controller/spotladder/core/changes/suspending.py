"""Leaves out of `provisionTimeout` and `recoveryTimeout` the time in which they do not run.

A timer is stored as the time of its start, which moves by the time that is left out:

1. The time between two decisions counts only if the timer ran at both. The decider may not be called while an image
   cannot be pulled or a queue holds the attempt, so the first decision after an impediment covers most of it.
2. An unreachable cluster is no lack of capacity, although `provisionTimeout` runs meanwhile, so that the job can leave
   the tier. If the cluster answers before it ends, all of the time is left out.
3. So is the time between two attempts, in which nothing asks for capacity: while the earlier one is being removed, or
   until the policy finds a tier available.
"""

from __future__ import annotations

from dataclasses import replace

from spotladder.core.diagnosis.impediment import BY_REASON, Timer
from spotladder.core.model import Impeded, Instant, JobState, Seconds
from spotladder.core.situation import LIVE, Situation

_BEYOND_THE_JOB = (Timer.NONE, Timer.CONTACT, Timer.QUEUE)
"""The timers of impediments that suspend recoveryTimeout, too: only the user, an administrator or restored contact can
help, and not a new attempt."""


def without_impeded_time(situation: Situation, last: JobState) -> Situation:
    """The situation in which the start of each timer that was suspended since the last decision is moved. `last` is the
    state of that decision."""
    state, now = situation.state, situation.now
    if state.timers.waiting_since is None and state.timers.recovering_since is None:
        return situation
    since_last = max(0.0, now - last.clock) if last.clock else 0.0
    before, after = last.impeded, state.impeded
    over = before is not None and (after is None or after.reason is not before.reason)
    if before is not None and over and _keeps_from_asking(before):
        waiting = recovering = max(since_last, now - before.since)
    elif state.stage not in LIVE:
        waiting = recovering = since_last
    else:
        timers = {BY_REASON[one.reason].timer for one in (before, after) if one is not None}
        waiting = since_last if timers - {Timer.PROVISION} else 0.0
        recovering = since_last if timers.intersection(_BEYOND_THE_JOB) else 0.0
    moved = replace(
        state.timers,
        waiting_since=_later(state.timers.waiting_since, waiting, now),
        recovering_since=_later(state.timers.recovering_since, recovering, now),
    )
    return replace(situation, state=replace(state, timers=moved))


def _keeps_from_asking(impeded: Impeded) -> bool:
    """Whether the impediment shows nothing about capacity, although provisionTimeout runs."""
    rule = BY_REASON[impeded.reason]
    return rule.timer is Timer.PROVISION and not rule.exhausts


def _later(start: Instant | None, seconds: Seconds, now: Instant) -> Instant | None:
    """The start of a timer with this much time left out."""
    return None if start is None else min(now, start + seconds)
