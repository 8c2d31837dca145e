"""Workers that are replaced inside an attempt before their nodes are reclaimed, and the cost of waiting gangs."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.core.model import Stage
from spotladder.sim.world.run import SimulationOutcome, SimulationRun, run
from tests.sim.builders import HOUR, market, runner, zone


def job(*steps: tuple[float, int], notice: float = 120.0, hands_over: bool = True, **more: Any) -> SimulationRun:
    """Two workers. A spot node is ready after 30 s; the program restarts in 60 s, commits take 10 s."""
    here = market(zone("spot", *steps, notice=notice, provision_delay=30.0), zone("on-demand", price=3.0))
    return runner(here, workers=2, hands_over=hands_over, **more)


def outcome(asked: SimulationRun) -> SimulationOutcome:
    return run(asked.backend.market, [asked], 100 * HOUR)[0]


def stages(found: SimulationOutcome) -> list[str]:
    return [str(one.move.target) for one in found.path]


@pytest.fixture
def reclaimed() -> SimulationRun:
    """A job that holds both nodes of its zone when one of them gets a notice; another node comes at once."""
    return job((0, 2), (1000, 1), (1001, 2))


def test_a_noticed_worker_is_replaced_inside_the_attempt(reclaimed: SimulationRun) -> None:
    found = outcome(reclaimed)
    assert (found.succeeded, found.attempts, found.evictions, found.recomputed) == (True, 1, 1, 0)
    assert Stage.REPLACING in stages(found)
    assert Stage.DRAINING not in stages(found)


def test_surge_loses_one_commit_and_one_restart(reclaimed: SimulationRun) -> None:
    """The replacement is ready 31 s after the notice; the program commits for 10 s and restarts in 60 s."""
    found = outcome(reclaimed)
    undisturbed = 30 + 60 + HOUR + 10
    assert found.finished == pytest.approx(undisturbed + 10 + 60, abs=1)
    drained = outcome(job((0, 2), (1000, 1), (1001, 2), hands_over=False))
    assert drained.attempts == 2
    assert found.finished < drained.finished


def test_a_handover_that_takes_longer_than_the_notice_loses_work() -> None:
    """A commit takes 100 s, and 60 s of the notice remain when the replacement is ready."""
    found = outcome(job((0, 2), (1000, 1), (1060, 2), commit_time=100.0))
    assert found.succeeded
    assert found.recomputed > 0


def test_nodes_of_a_gang_that_is_not_complete_are_counted_as_waiting() -> None:
    """One of two nodes is ready from 30 s on and waits for the other one until 600 s."""
    found = outcome(job((0, 1), (570, 2)))
    assert found.succeeded
    assert found.waiting == pytest.approx((600 - 30) / HOUR)
    assert outcome(job()).waiting == 0.0
