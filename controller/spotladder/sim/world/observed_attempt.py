"""What a backend of the simulation observes of an attempt."""

from __future__ import annotations

from spotladder.core.model import AttemptSeen, PodRole, PodSeen
from spotladder.sim.world.attempt import SimAttempt
from spotladder.sim.world.market import START, Market
from spotladder.sim.world.program import ProgramPlan


def attempt_seen(attempt: SimAttempt, market: Market, program: ProgramPlan, workers: int) -> AttemptSeen:
    """The attempt of a job with this program and number of workers."""
    now = market.now
    head = PodSeen(f"{attempt.number}-head", PodRole.HEAD)
    reports = attempt.exit is None and market.zones[attempt.zone].plan.reports_shortage
    pods = (head, *attempt.lost, *(pod.seen(now, START, reports_shortage=reports) for pod in attempt.pods))
    return AttemptSeen(
        attempt.number,
        pods,
        attempt.exit,
        attempt.message,
        surplus=len(attempt.pods) - workers if program.hands_over else None,
        held=attempt.held(now),
        size=attempt.size or None if program.sizes else None,
        waits_for_all_workers=bool(program.sizes) and not attempt.size,
    )
