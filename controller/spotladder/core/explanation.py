"""Explains to users why a job waits: the impediment in a sentence that does not change while the reason is the same,
its start, and the next step with its time. Conditions, `get`, the live view and the report show only this.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from spotladder.core.changes.hedging import hedge_due, hedge_tier
from spotladder.core.diagnosis.impediment import ImpedimentRule, Timer, classify
from spotladder.core.facts.elastic import begin_due
from spotladder.core.model import Instant, Stage
from spotladder.core.reasons import Reason
from spotladder.core.situation import Situation

ELASTIC_MIN = "elastic.min"
"""The `timer` of an elastic attempt whose program begins with fewer workers when it expires."""

AVOIDANCE = "avoidance of nodes"
"""The `timer` of an attempt that avoids nodes, while no other node can take its pods."""

MISFIT = "pods that fit no node"
"""The `timer` of an attempt whose pods fit no node of the tier, where waiting does not help."""

HEDGE_AFTER = "overlap.hedgeAfter"
"""The timer after which the next tier is started beside the attempt."""

WAITS = frozenset({Stage.IDLE, Stage.STARTING, Stage.RECOVERING})
"""Stages in which a job waits for something."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """`until` is when `timer`, named like the limit in the spec, expires, and `then` is its effect. They are None and
    "" if no timer runs, so that nothing happens without an event."""

    reason: Reason
    message: str
    since: Instant
    timer: str = ""
    until: Instant | None = None
    then: str = ""


def explain(situation: Situation) -> Explanation | None:
    """Why the job waits; None if it does not wait, or if its stage is explanation enough."""
    found = classify(situation) if situation.state.stage in WAITS else None
    if found is None:
        return None
    impeded = situation.state.impeded
    since = impeded.since if impeded is not None and impeded.reason is found.rule.reason else situation.now
    timer, until, then = _next(situation, found.rule)
    return Explanation(found.rule.reason, found.message + _beside(situation), since, timer, until, then)


def _beside(situation: Situation) -> str:
    """The hedge of the live attempt, for the sentence; "" without one."""
    hedge, reason = situation.state.standby.attempt, situation.state.standby.reason
    if hedge is None or reason is not Reason.HEDGED or situation.state.stage is Stage.IDLE:
        return ""
    return f"; attempt {hedge.number} on {hedge.tier} starts beside it"


def _next(situation: Situation, rule: ImpedimentRule) -> tuple[str, Instant | None, str]:
    """The running timer, when it expires, and its effect."""
    state, timer = situation.state, rule.timer
    if state.stage is Stage.IDLE:
        until = state.timers.paused_until
        return _NOTHING if until is None else ("pause", until, "the next attempt starts")
    if timer is Timer.START and (due := begin_due(situation, situation.attempt)) is not None:
        return _ends(ELASTIC_MIN, due, "the program begins with fewer workers")
    recovers = state.stage is Stage.RECOVERING and situation.reachable and not situation.waits_for_capacity
    if recovers and timer in (Timer.PROVISION, Timer.START):
        return _ends("recoveryTimeout", situation.recovery_deadline, "a new attempt starts")
    match timer:
        case Timer.PROVISION:
            return _leaves(situation, rule)
        case Timer.QUEUE:
            return _ends(timer, situation.queue_deadline, "the job leaves the tier")
        case Timer.CONTACT:
            return _ends(timer, situation.contact_deadline, "pods on silent nodes count as lost")
        case Timer.START:
            return _ends(timer, situation.start_deadline, "the attempt ends")
        case Timer.ATTRIBUTION:
            return _ends(timer, situation.attribution_deadline, "the failure counts as the program's own")
    return _NOTHING


def _leaves(situation: Situation, rule: ImpedimentRule) -> tuple[str, Instant | None, str]:
    """What follows first while provisionTimeout runs."""
    due, hedge = hedge_due(situation), hedge_tier(situation)
    follows = [(situation.provision_deadline, str(Timer.PROVISION), "the job leaves the tier")]
    if rule.reason is Reason.POD_DOES_NOT_FIT:
        follows.append((situation.misfit_deadline, MISFIT, "the job leaves the tier"))
    if rule.reason is Reason.WAITING_FOR_CAPACITY and (lifted := situation.avoidance_deadline) is not None:
        follows.append((lifted, AVOIDANCE, "the next attempt may use the avoided nodes"))
    if due is not None and hedge is not None:
        follows.append((due, HEDGE_AFTER, f"{hedge.name} is started beside it"))
    until, timer, then = min(follows, key=lambda follow: inf if follow[0] is None else follow[0])
    return _ends(timer, until, then)


def _ends(timer: str, until: Instant | None, then: str) -> tuple[str, Instant | None, str]:
    return _NOTHING if until is None else (str(timer), until, then)


_NOTHING: tuple[str, Instant | None, str] = ("", None, "")
