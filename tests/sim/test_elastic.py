"""Elastic jobs in the simulator: they begin, shrink and grow inside one attempt, and progress follows their size."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.core.facts.work import pace
from spotladder.core.reasons import Reason
from spotladder.sim.world.run import SimulationOutcome, SimulationRun, run
from tests.sim.builders import HOUR, market, runner, zone

RESTART, COMMIT = 60.0, 10.0


def job(
    *steps: tuple[float, int], sizes: tuple[int, ...] = (2, 3, 4), notice: float = 0.0, **more: Any
) -> SimulationRun:
    """One hour of work for four workers. Nodes are ready at once; the program restarts in 60 s, commits take 10 s."""
    here = market(zone("spot", *steps, notice=notice, provision_delay=0.0), zone("on-demand", price=3.0))
    program = {"grow_after": 300.0, "hands_over": True, **more}
    return runner(here, workers=4, sizes=sizes, spec={"min_workers": min(sizes, default=None)}, **program)


def outcome(asked: SimulationRun) -> SimulationOutcome:
    return run(asked.backend.market, [asked], 100 * HOUR)[0]


def reasons(found: SimulationOutcome) -> list[Reason]:
    return [one.move.reason for one in found.path]


def test_a_job_begins_with_the_smallest_size_and_trains_at_its_rate() -> None:
    found = outcome(job((0, 2)))
    assert (found.succeeded, found.attempts) == (True, 1)
    assert found.finished == pytest.approx(RESTART + 2 * HOUR + COMMIT, abs=60)
    assert found.node_hours["spot"] == pytest.approx(2 * found.finished / HOUR, rel=0.01)


@pytest.mark.parametrize(
    "steps",
    [((0, 2),), ((0, 3),), ((0, 4),), ((0, 2), (1500, 4)), ((0, 4), (1000, 3), (2800, 4))],
    ids=["2 workers", "3 workers", "4 workers", "more later", "fewer for a while"],
)
def test_a_job_measures_its_work_with_all_workers_whatever_its_size(steps: tuple[tuple[float, int], ...]) -> None:
    asked = job(*steps)
    outcome(asked)
    assert pace(asked.spec, asked.state) == pytest.approx(1.0, rel=0.01), "one step is one second of work"


def test_a_job_grows_after_a_commit_and_repeats_no_step() -> None:
    found = outcome(job((0, 2), (1000, 4)))
    assert (found.succeeded, found.attempts, found.recomputed) == (True, 1, 0)
    small = 1000 - RESTART
    expected = RESTART + small + COMMIT + RESTART + (HOUR - small / 2) + COMMIT
    assert found.finished == pytest.approx(expected, abs=60)
    assert outcome(job((0, 2), (1000, 4), grow_after=2.0 * HOUR)).finished > found.finished


@pytest.fixture
def lost_one() -> SimulationRun:
    """A job that loses one of four nodes unannounced and gets another one after half an hour."""
    return job((0, 4), (1000, 3), (2800, 4))


def test_a_loss_costs_the_uncommitted_steps_and_one_restart(lost_one: SimulationRun) -> None:
    found = outcome(lost_one)
    assert (found.succeeded, found.attempts, found.evictions) == (True, 1, 1)
    assert lost_one.state.failures == 1
    assert 0 < found.recomputed <= 600 + COMMIT
    gang = outcome(job((0, 4), (1000, 3), (2800, 4), sizes=()))
    assert found.finished < gang.finished


def test_a_notice_costs_no_step() -> None:
    asked = job((0, 4), (1000, 3), notice=120.0)
    found = outcome(asked)
    assert (found.succeeded, found.attempts, found.recomputed, asked.state.failures) == (True, 1, 0, 1)
