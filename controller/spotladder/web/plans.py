"""Where ended jobs lie in their plans: computed once for each job, while its page is shown without it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from spotladder.core.model import TERMINAL, Instant
from spotladder.display.report.facts import Facts
from spotladder.display.report.plan import PlanPlace

Plan = Callable[[Facts], Awaitable[PlanPlace | None]]


PLAN_TIMEOUT = 600.0
"""Seconds after which a plan is given up: records of others may ask for endless runs."""

KEPT = 64
"""Number of jobs whose place in the plan is kept."""


async def no_plan(_facts: Facts) -> PlanPlace | None:
    """No plan is known for any job."""
    return None


class Plans:
    """`plan` is asked for one job at a time. `ready` is called with the namespace of a job whose place is known now."""

    def __init__(self, plan: Plan, ready: Callable[[str], None]) -> None:
        self._plan, self._ready = plan, ready
        self._one = asyncio.Semaphore(1)
        self._tasks: dict[tuple[str, str, Instant], asyncio.Task[PlanPlace | None]] = {}

    def of(self, facts: Facts) -> PlanPlace | None:
        """The place of the job in its plan; None if it has not ended, has no plan, or is not computed yet."""
        if facts.state.stage not in TERMINAL:
            return None
        key = (facts.namespace, facts.job, facts.began_at)
        if key not in self._tasks:
            if len(self._tasks) >= KEPT:
                self._tasks.pop(next(iter(self._tasks))).cancel()
            self._tasks[key] = asyncio.create_task(self._computed(facts))
        task = self._tasks[key]
        return task.result() if task.done() and not task.cancelled() else None

    async def _computed(self, facts: Facts) -> PlanPlace | None:
        try:
            async with self._one, asyncio.timeout(PLAN_TIMEOUT):
                found = await self._plan(facts)
        except OSError:  # Among them TimeoutError.
            return None
        if found is not None:
            self._ready(facts.namespace)
        return found
