"""Why a job is not training: a closed list of impediments, and a table with the effect of each.

Backends report facts (`PodSeen`, `AttemptSeen`, `Observation`). `classify` turns them into at most one `MatchedRule`.
The job's state keeps the reason and its start time. Conditions, views and reports use this value and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from spotladder.core.diagnosis import evidence
from spotladder.core.model import Impeded, Stage
from spotladder.core.reasons import Reason
from spotladder.core.situation import LIVE, Situation

EXPLAINED = LIVE | {Stage.IDLE}
"""Stages in which an impediment can exist. In the other stages the stage itself explains why the job does not train."""


class Timer(StrEnum):
    """The timer that runs during an impediment. `provisionTimeout` and `recoveryTimeout` are suspended unless named."""

    PROVISION = "provisionTimeout"
    CONTACT = "contactTimeout"
    START = "startTimeout"
    QUEUE = "queueTimeout"
    STALL = "stallTimeout"
    ATTRIBUTION = "failure attribution window"
    BACKOFF = "start backoff"
    GRACE = "grace"  # the attempt ends at once: it commits within this time, and a new one follows on other nodes
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ImpedimentRule:
    """One row of the table.

    `describe` returns the sentence for the user, or "" if the facts do not show this impediment. `counted`: the expiry
    of the timer counts one failure. `exhausts`: the expiry of the timer exhausts the tier. `degraded`: the job's
    `Degraded` condition is True with this reason.
    """

    reason: Reason
    describe: Callable[[Situation], str]
    timer: Timer = Timer.NONE
    counted: bool = False
    exhausts: bool = False
    degraded: bool = True


@dataclass(frozen=True, slots=True)
class MatchedRule:
    """The rule that applies now, and its sentence for the user."""

    rule: ImpedimentRule
    message: str


IMPEDIMENTS: tuple[ImpedimentRule, ...] = (
    ImpedimentRule(Reason.PROGRAM_ENDED, evidence.program_ended, Timer.ATTRIBUTION, degraded=False),
    ImpedimentRule(Reason.CLUSTER_UNREACHABLE, evidence.cluster_unreachable, Timer.PROVISION, counted=True),
    ImpedimentRule(Reason.CONTACT_LOST, evidence.contact_lost, Timer.CONTACT, counted=True),
    ImpedimentRule(Reason.OPERATOR_SILENT, evidence.operator_silent),
    ImpedimentRule(Reason.ACCESS_DENIED, evidence.access_denied),
    ImpedimentRule(Reason.STORE_UNSAFE, evidence.store_unsafe, Timer.BACKOFF),
    ImpedimentRule(Reason.INADMISSIBLE, evidence.inadmissible, Timer.QUEUE, exhausts=True),
    ImpedimentRule(Reason.WAITING_FOR_QUOTA, evidence.waits_for_quota, Timer.QUEUE, exhausts=True, degraded=False),
    ImpedimentRule(Reason.QUOTA_EXCEEDED, evidence.quota_exceeded),
    ImpedimentRule(Reason.IMAGE_UNAVAILABLE, evidence.image_unavailable),
    ImpedimentRule(Reason.VOLUME_UNAVAILABLE, evidence.volume_unavailable),
    ImpedimentRule(Reason.BLOCKED, evidence.template_refused),
    ImpedimentRule(Reason.MAINTENANCE, evidence.maintenance, Timer.GRACE, degraded=False),
    ImpedimentRule(Reason.STORE_UNAVAILABLE, evidence.store_unavailable, Timer.STALL, counted=True),
    ImpedimentRule(Reason.CRASH_LOOP, evidence.crash_loop, Timer.BACKOFF),
    ImpedimentRule(Reason.WAITING_FOR_PODS, evidence.slow_start, Timer.START, degraded=False),
    ImpedimentRule(Reason.POD_DOES_NOT_FIT, evidence.does_not_fit, Timer.PROVISION, exhausts=True),
    ImpedimentRule(Reason.WAITING_FOR_CAPACITY, evidence.no_capacity, Timer.PROVISION, exhausts=True, degraded=False),
)
"""The table, in order of precedence: the first rule whose facts are seen applies."""

BY_REASON: Mapping[Reason, ImpedimentRule] = MappingProxyType({rule.reason: rule for rule in IMPEDIMENTS})


def classify(situation: Situation) -> MatchedRule | None:
    """Why the job is not training; None if it trains or if its stage is explanation enough."""
    if situation.state.stage not in EXPLAINED:
        return None
    found = ((rule, rule.describe(situation)) for rule in IMPEDIMENTS)
    return next((MatchedRule(rule, message) for rule, message in found if message), None)


def impeded(situation: Situation) -> Impeded | None:
    """The impediment as the state keeps it. The start time is kept while the reason stays the same."""
    found = classify(situation)
    if found is None:
        return None
    before = situation.state.impeded
    if before is not None and before.reason is found.rule.reason:
        return before
    return Impeded(found.rule.reason, situation.now)


def rule_of(situation: Situation) -> ImpedimentRule | None:
    """The rule of the impediment in the state."""
    return None if situation.state.impeded is None else BY_REASON[situation.state.impeded.reason]


def timer_of(situation: Situation) -> Timer | None:
    """The timer of the impediment in the state; None without an impediment."""
    rule = rule_of(situation)
    return None if rule is None else rule.timer
