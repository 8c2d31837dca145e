"""Where ended jobs lie in their plans: how many jobs may wait for it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from spotladder.display.report.facts import RunFacts
from spotladder.display.report.plan import PlanPlace
from spotladder.places.this_machine import ThisMachine
from spotladder.web import plans
from tests.web.builders import recorded_run


async def test_a_job_for_which_no_room_is_left_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The facts of a job that waits are in memory."""
    monkeypatch.setattr(plans, "MAX_WAITING", 2)
    recorded_run(tmp_path)
    facts = await ThisMachine(tmp_path).facts("default", "digits-tensorflow")
    assert facts is not None
    jobs = [replace(facts, job=name) for name in ("a", "b", "c")]
    asked, ready = [], asyncio.Queue[str]()

    async def plan(of: RunFacts) -> PlanPlace:
        await asyncio.sleep(0)
        asked.append(of.job)
        return PlanPlace(100, 1.0, None, None)

    found = plans.Plans(plan, ready.put_nowait)
    assert [found.of(job) for job in jobs] == [None] * 3
    await ready.get()
    await ready.get()
    assert asked == ["a", "b"]
    assert found.of(jobs[2]) is None
    await ready.get()
    assert asked == ["a", "b", "c"]
    assert all(map(found.of, jobs))
