"""Where ended jobs lie in their plans: computed once for each job, while its page is shown without it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from spotladder.clusters.clock import SystemClock
from spotladder.clusters.shared_reads import SharedReads
from spotladder.core.model import TERMINAL, Instant
from spotladder.display.report.facts import RunFacts
from spotladder.display.report.plan import PlanPlace

Plan = Callable[[RunFacts], Awaitable[PlanPlace | None]]


PLAN_TIMEOUT = 600.0
"""Seconds after which a plan is given up: records of others may ask for endless runs."""

MAX_WAITING = 64
"""Maximum number of jobs whose facts are held for the computation of their places."""

KEPT = 24 * 3600.0
"""Seconds for which a place in the plan is kept."""


async def no_plan(_facts: RunFacts) -> PlanPlace | None:
    """No plan is known for any job."""
    return None


class Plans:
    """`plan` is asked for one job at a time. `ready` is called with the namespace of a job whose place is known now."""

    def __init__(self, plan: Plan, ready: Callable[[str], None]) -> None:
        self._plan, self._ready = plan, ready
        self._one = asyncio.Semaphore(1)
        self._waiting = 0
        self._places = SharedReads[tuple[str, str, Instant], PlanPlace | None](SystemClock(), lambda _: KEPT)

    def of(self, facts: RunFacts) -> PlanPlace | None:
        """The place of the job in its plan; None if it has not ended, has no plan, or is not computed yet."""
        if facts.state.stage not in TERMINAL:
            return None
        key = (facts.namespace, facts.job, facts.began_at)
        place = self._places.begun(key, lambda: self._computed(facts))
        return place.result() if place.done() else None

    async def _computed(self, facts: RunFacts) -> PlanPlace | None:
        if self._waiting >= MAX_WAITING:
            raise asyncio.QueueFull  # A later page of this job asks again.
        self._waiting += 1
        try:
            async with self._one, asyncio.timeout(PLAN_TIMEOUT):
                found = await self._plan(facts)
        except OSError:  # Among them TimeoutError.
            return None
        finally:
            self._waiting -= 1
        if found is not None:
            self._ready(facts.namespace)
        return found
