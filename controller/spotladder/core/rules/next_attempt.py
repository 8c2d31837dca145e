"""Rules for a job without a live attempt: which attempt comes next, and when."""

from __future__ import annotations

from dataclasses import replace

from spotladder.core.changes.changing import asked, without_wait
from spotladder.core.changes.leaving_behind import is_left
from spotladder.core.changes.moving import planned
from spotladder.core.changes.standing_by import adopted
from spotladder.core.durations import format_duration
from spotladder.core.facts.standby import takes_over
from spotladder.core.history.crashes import corrected, forgotten
from spotladder.core.model import Exhausted
from spotladder.core.reasons import Reason
from spotladder.core.rules.effect import Effect
from spotladder.core.situation import Situation


def corrected_template(situation: Situation) -> Effect | None:
    """The user has changed the pod template after failed starts: the pause ends."""
    if not corrected(situation.state, situation.spec):
        return None
    timers = replace(situation.state.timers, paused_until=None)
    return Effect(replace(situation, state=forgotten(replace(situation.state, timers=timers))))


def takeover(situation: Situation) -> Effect | None:
    """A standby attempt exists: it becomes the live one."""
    if not takes_over(situation):
        return None
    state, reason, message = adopted(situation)
    return Effect(replace(situation, state=state), reason, message)


def pause(situation: Situation) -> Effect | None:
    """The job pauses, after failed starts or when every tier was exhausted: it waits."""
    return Effect(situation, waits=True) if situation.paused else None


def exhausted_tiers(situation: Situation) -> Effect | None:
    """Every tier is exhausted: the job fails, or restarts at the first tier, as `exhausted` says. A job that fits no
    tier would at once end in the same way: it pauses."""
    if situation.open:
        return None
    spec, exhausted = situation.spec, situation.spec.exhausted
    reasons = {tier.name: situation.state.record(tier.name).exhausted_by for tier in spec.tiers}
    misfit = situation.state.misfit if set(reasons.values()) == {Reason.POD_DOES_NOT_FIT} else ""
    named = ", ".join(f"{name} ({reason})" for name, reason in reasons.items())
    message = f"every tier is exhausted: {named}" + (f": {misfit}" if misfit else "")
    if exhausted is Exhausted.FAIL:
        return Effect(situation, Reason.POD_DOES_NOT_FIT if misfit else Reason.TIERS_EXHAUSTED, message)
    until, reason = None, Reason.BEGIN_AGAIN
    if exhausted is Exhausted.WAIT or misfit:
        length = max(tier.provision_timeout for tier in spec.tiers)
        until, reason = situation.now + length, Reason.WAITING_TO_BEGIN_AGAIN
        message += f"; restarts at {spec.tiers[0].name} in {format_duration(length)} (exhausted: {exhausted})"
    fresh = tuple(replace(record, failures=0, exhausted_by=None) for record in situation.state.tiers)
    timers = replace(situation.state.timers, paused_until=until)
    state = replace(situation.state, tiers=fresh, tier="", timers=timers, misfit=misfit)
    return Effect(replace(situation, state=state), reason, message)


def chosen_tier(situation: Situation) -> Effect | None:
    """The policy chooses a tier: the next attempt starts there, once no earlier one holds nodes that it could use."""
    situation = asked(situation, live=False)
    choice = situation.changes.choice
    if choice.tier is None:  # The next attempt has its own provisionTimeout.
        return Effect(without_wait(situation))
    if choice.tier not in situation.open or is_left(situation, choice.tier):
        return Effect(situation)
    state, reason, message = planned(situation, choice.tier)
    return Effect(replace(situation, state=state), reason, f"{message}: {choice.why}" if choice.why else message)


def resumption(situation: Situation) -> Effect | None:
    """`suspend` is no longer set: the job continues."""
    if situation.spec.suspend:
        return None
    timers = replace(situation.state.timers, waiting_since=None, paused_until=None)
    state = forgotten(replace(situation.state, timers=timers))
    return Effect(replace(situation, state=state), Reason.RESUME_REQUESTED)
