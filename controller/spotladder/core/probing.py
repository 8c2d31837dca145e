"""Probes: on a tier with `probe`, that many workers ask for a node before the rest of their gang.

1. All workers of the attempt are created with a scheduling gate, so that they ask for no node. They exist so that the
   program begins only with all of them.
2. `probe` of them are ungated first. Once that many workers have a node, the tier has capacity and all others are
   ungated, including replacements of lost workers.
3. The timers and the idle budget run as without a probe. A tier whose nodes do not come up, or are reclaimed at once,
   costs the nodes of the probe at most.
"""

from __future__ import annotations

from spotladder.core.gang import launched_workers
from spotladder.core.model import Attempt, JobSpec, PodPhase, PodRole, Ungate
from spotladder.core.situation import LIVE, Situation


def gated(attempt: Attempt, spec: JobSpec) -> bool:
    """Whether the workers of this attempt are created with a scheduling gate."""
    tier = spec.tier(attempt.tier)
    return tier is not None and 0 < tier.probe < launched_workers(attempt, spec)


def ungating(situation: Situation) -> tuple[Ungate, ...]:
    """The workers of the live and of the standby attempt that may ask for a node now. A standby attempt still boots
    while the live one is being ended."""
    own = (situation.state.attempt if situation.state.stage in LIVE else None, situation.state.standby)
    found = (_ungating(situation, attempt) for attempt in own if attempt is not None)
    return tuple(action for action in found if action is not None)


def _ungating(situation: Situation, attempt: Attempt) -> Ungate | None:
    seen, tier = situation.seen.attempt(attempt.number), situation.spec.tier(attempt.tier)
    if seen is None or not seen.reachable or tier is None:
        return None
    workers = [pod for pod in seen.pods if pod.role is PodRole.WORKER and pod.phase is not PodPhase.LOST]
    waiting = [pod for pod in workers if pod.gated]
    probed = sum(1 for pod in workers if pod.scheduled or pod.phase is PodPhase.RUNNING) >= tier.probe
    due = waiting if probed else waiting[: max(0, tier.probe - (len(workers) - len(waiting)))]
    return Ungate(attempt.number, tuple(pod.uid for pod in due)) if due else None
