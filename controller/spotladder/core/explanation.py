"""Why a job waits, for users: the impediment in a sentence that only changes when something else is the matter, since
when, and what follows when. Conditions, `get`, the live view and the report show this and nothing else.

The sentence is written into the job's status, so it holds no counts and no lists of pods: those of a large job come and
go one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

from spotladder.core.impediment import Finding, Timer, classify
from spotladder.core.model import Impediment, Instant, PodPhase, Seconds, Stage
from spotladder.core.reasons import Reason
from spotladder.core.situation import Situation

WAITS = frozenset({Stage.IDLE, Stage.STARTING, Stage.RECOVERING})
"""Stages in which a job waits for something."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """`until` is when `timer`, a limit by its name in the spec, expires, and `then` what follows. None and "" when no
    timer runs, so that nothing follows by itself."""

    reason: Reason
    message: str
    since: Instant
    timer: str = ""
    until: Instant | None = None
    then: str = ""


def explain(here: Situation) -> Explanation | None:
    """Why the job waits; None when it does not, or when its stage says enough."""
    found = classify(here) if here.state.stage in WAITS else None
    if found is None:
        return None
    impeded = here.state.impeded
    since = impeded.since if impeded is not None and impeded.reason is found.rule.reason else here.now
    timer, until, then = _next(here, found.rule.timer, since)
    return Explanation(found.rule.reason, _sentence(here, found), since, timer, until, then)


def _sentence(here: Situation, found: Finding) -> str:
    seen = here.attempt_seen
    if found.rule.impediment is Impediment.START:
        return "every pod has a node and its image, and not all are ready yet"
    if found.rule.impediment is not Impediment.CAPACITY or here.state.stage is Stage.IDLE:
        return found.message
    pods = () if seen is None else seen.pods
    waiting = [pod for pod in pods if pod.phase is PodPhase.PENDING and not pod.placed and pod.waiting_message]
    words = min(waiting, key=lambda pod: pod.called).waiting_message if waiting else ""
    what = "the provisioner has no capacity" if seen is not None and seen.refused else "pods wait for nodes and images"
    return f"{what}: {words}" if words else what


def _next(here: Situation, timer: Timer, since: Instant) -> tuple[str, Instant | None, str]:
    """The timer that runs, when it expires, and what follows."""
    state, spec, tier = here.state, here.spec, here.tier
    if state.stage is Stage.IDLE:
        return ("pause", state.paused_until, "the next attempt starts") if state.paused_until is not None else _NOTHING
    if state.stage is Stage.RECOVERING and timer in (Timer.PROVISION, Timer.START) and not here.waits_for_capacity:
        return _ends("recoveryTimeout", state.recovering_since, spec.recovery_timeout, "a new attempt starts")
    match timer:
        case Timer.PROVISION if tier is not None:
            return _ends(timer, state.waiting_since, tier.provision_timeout, "the tier is left")
        case Timer.CONTACT:
            return _ends(timer, since, spec.contact_timeout, "pods on silent nodes count as lost")
        case Timer.START:
            return _ends(timer, since, spec.start_timeout, "the attempt is ended")
        case Timer.ATTRIBUTION:
            return _ends(timer, here.attempt.exited_at, spec.settle, "the failure is the program's own")
    return _NOTHING


def _ends(timer: str, begun: Instant | None, length: Seconds, then: str) -> tuple[str, Instant | None, str]:
    return _NOTHING if begun is None else (str(timer), begun + length, then)


_NOTHING: tuple[str, Instant | None, str] = ("", None, "")
