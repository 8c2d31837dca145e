"""Standby attempts: the next attempt boots beside the live one, and takes over from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from spotladder.core.model import Overlap, TierChoice, TierView
from spotladder.core.reasons import Reason
from spotladder.errors import InvalidSpec
from spotladder.sim.world.market import START
from spotladder.sim.world.program import ProgramPlan
from spotladder.sim.world.run import SimulationOutcome, run
from tests.sim.builders import HOUR, market, runner, zone

MOVE = 1000.0
BOOT, RESTART, RESUME, COMMIT = 100.0, 60.0, 20.0, 10.0
UNDISTURBED = RESTART + HOUR + COMMIT


@dataclass(frozen=True)
class Returns:
    """On demand at first, on spot from `MOVE` on."""

    def choose(self, view: TierView) -> TierChoice:
        at = START + MOVE
        return TierChoice("spot") if view.now >= at else TierChoice("on-demand", review_at=at)


def outcome(*steps: tuple[float, int], overlap: Overlap | None = None, stands_by: bool = True) -> SimulationOutcome:
    """One worker, for three hours. A spot node joins after 100 s; a program restarts in 60 s, 20 s of which read the
    checkpoint."""
    here = market(zone("spot", *steps, provision_delay=BOOT), zone("on-demand", price=3.0))
    program: dict[str, Any] = {"restart": RESTART, "resume": RESUME, "commit_time": COMMIT, "stands_by": stands_by}
    job = runner(here, policy=Returns(), spec={"overlap": overlap, "start_timeout": 600.0}, **program)
    return run(here, [job], 3 * HOUR)[0]


def test_a_return_by_standby_costs_one_commit_and_the_reading_of_the_checkpoint() -> None:
    found = outcome(overlap=Overlap())
    assert (found.succeeded, found.attempts, found.recomputed) == (True, 2, 0)
    assert found.finished == pytest.approx(UNDISTURBED + COMMIT + RESUME)
    assert outcome().finished == pytest.approx(UNDISTURBED + COMMIT + BOOT + RESTART)
    assert outcome(overlap=Overlap(), stands_by=False).finished == outcome().finished


def test_both_attempts_are_paid_while_they_overlap() -> None:
    """The spot node joins at 1100 s, its program is held at 1140 s, and the commit of the other is complete at
    1150 s."""
    found = outcome(overlap=Overlap())
    joined, left = MOVE + BOOT, MOVE + BOOT + RESTART - RESUME + COMMIT
    assert found.node_hours["on-demand"] * HOUR == pytest.approx(left)
    assert found.node_hours["spot"] * HOUR == pytest.approx(found.finished - joined)
    assert found.cost == pytest.approx((3.0 * left + found.finished - joined) / HOUR)
    assert found.overlap == pytest.approx((left - joined) / HOUR)
    assert found.waiting == 0.0


def test_a_return_to_a_tier_without_capacity_costs_neither_training_nor_money() -> None:
    found = outcome((0, 0), overlap=Overlap())
    assert found.succeeded
    assert found.finished == pytest.approx(UNDISTURBED)
    assert found.node_hours["spot"] == 0
    assert found.attempts > 2, "it was tried again"
    assert outcome((0, 0)).finished > UNDISTURBED


def test_the_live_attempt_is_replaced_when_its_node_is_lost_during_the_overlap() -> None:
    """The on-demand node is reclaimed while the spot program starts: it takes over as soon as it is ready."""
    here = market(zone("spot", provision_delay=BOOT), zone("on-demand", (0, 1), (MOVE + BOOT + 5.0, 0), price=3.0))
    job = runner(
        here,
        policy=Returns(),
        max_failures=0,
        spec={"overlap": Overlap()},
        restart=RESTART,
        resume=RESUME,
        stands_by=True,
    )
    found = run(here, [job], 100 * HOUR)[0]
    assert (found.succeeded, found.attempts) == (True, 2)
    adopted = next(one for one in found.path if one.move.attempt == 2)
    assert adopted.move.reason is Reason.MIGRATED_BACK
    assert adopted.at == pytest.approx(MOVE + BOOT + 5.0)


def test_a_resume_that_takes_longer_than_the_restart_is_refused() -> None:
    with pytest.raises(InvalidSpec, match=r"resume: expected at most restart, 60, got 61"):
        ProgramPlan(HOUR, restart=60.0, resume=61.0)
