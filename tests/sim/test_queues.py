"""Admission queues in the simulated world: waiting for quota, and quota that is taken away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.core.model import Stage
from spotladder.core.reasons import Reason
from spotladder.sim.world.run import SimulationOutcome, SimulationRun, run
from tests.sim.builders import HOUR, market, runner, trace, zone


def job(*quota: tuple[float, int], queue_timeout: float | None = None, max_failures: int = 0) -> SimulationRun:
    """Two workers; the zone `spot` has capacity at all times and a queue."""
    here = market(zone("spot", quota=trace(*quota)), zone("on-demand", price=3.0))
    found = runner(here, workers=2, max_failures=max_failures)
    tiers = tuple(replace(tier, queue_timeout=queue_timeout) for tier in found.spec.tiers)
    found.spec = replace(found.spec, tiers=tiers)
    return found


def outcome(asked: SimulationRun) -> SimulationOutcome:
    return run(asked.backend.market, [asked], 100 * HOUR)[0]


def reasons(found: SimulationOutcome) -> list[Reason]:
    return [step.move.reason for step in found.path]


def test_a_job_waits_for_quota_beyond_provision_timeout() -> None:
    found = outcome(job((0, 0), (5000, 2)))
    assert (found.succeeded, found.attempts, found.waiting) == (True, 1, 0.0)
    assert found.finished == 5000 + 60 + HOUR + 10
    assert found.cost == pytest.approx(2 * (60 + HOUR + 10) / HOUR)


def test_a_quota_smaller_than_the_gang_admits_nothing() -> None:
    found = outcome(job((0, 1), (5000, 2)))
    assert found.finished == 5000 + 60 + HOUR + 10


def test_the_tier_is_exhausted_after_queue_timeout() -> None:
    found = outcome(job((0, 0), queue_timeout=1200.0))
    assert found.succeeded
    assert Reason.QUEUE_TIMEOUT in reasons(found)
    assert found.node_hours["spot"] == 0.0
    assert found.finished == 1200 + 60 + HOUR + 10


def test_a_preemption_keeps_the_tier_and_loses_uncommitted_work() -> None:
    found = outcome(job((0, 2), (1000, 0), (1300, 2), max_failures=0))
    assert (found.succeeded, found.recomputed, found.evictions) == (True, 340, 0)
    assert Reason.PREEMPTED in reasons(found)
    assert [step.move.tier for step in found.path if step.move.target is Stage.STARTING] == ["spot", "spot"]


def test_nodes_are_not_billed_while_the_job_waits_for_quota() -> None:
    found = outcome(job((0, 2), (1000, 0), (1300, 2), max_failures=1))
    assert found.cost == pytest.approx(2 * (found.finished - 300) / HOUR)
