"""What a move to a tier costs beside the nodes of the start."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.core.facts.tier_view import view_of
from spotladder.core.model import NO_MOVE_COSTS, CommitSize, MoveCosts, Price, Progress, TierView
from tests.core.builders import SteppedJob, spec, tier

HOUR, GIB = 3600.0, 2**30
SIZE = CommitSize(bytes=10 * GIB, shared_bytes=4 * GIB)


def job(**more: Any) -> SteppedJob:
    """A job with two workers at $1 an hour, whose second tier is in another region."""
    tiers = (
        tier("spot-a", 0, price=Price(1.0, 3.0)),
        tier("on-demand", -1, price=Price(3.0, 3.0), egress_per_gib=0.09),
    )
    return SteppedJob(spec(*tiers, **more))


def committed(made: SteppedJob, seconds: float) -> SteppedJob:
    """The job has just made its first commit, in this time."""
    made.progress = Progress(10, 100, made.now, made.number, size=SIZE, commit_seconds=seconds)
    made.see_again(after=0.0)
    return made


def view(made: SteppedJob) -> TierView:
    return view_of(made.situation, live=made.state.attempt is not None)


def costs(made: SteppedJob) -> dict[str, MoveCosts]:
    return {one.name: one.move for one in view(made).outlooks}


def test_before_the_first_attempt_a_start_costs_nothing() -> None:
    assert set(costs(job()).values()) == {NO_MOVE_COSTS}


def test_the_egress_is_that_of_the_start_of_a_program_as_it_is_charged() -> None:
    made = committed(job().running(), 0.0)
    assert costs(made)["on-demand"].egress == pytest.approx((10 + 4) * 0.09)
    assert costs(made)["spot-a"] == NO_MOVE_COSTS


@pytest.mark.parametrize(
    ("seconds", "lost"),
    [(30.0, 30.0), (90.0, 90.0), (91.0, 300.0)],
    ids=["a short commit", "as long as the grace period", "longer than the grace period"],
)
def test_a_move_costs_the_commit_or_the_work_since_the_newest_one(seconds: float, lost: float) -> None:
    made = committed(job().running(), seconds)
    made.see_again(after=300.0)
    assert costs(made)["on-demand"].lost_work == pytest.approx(lost * 2 / HOUR)
    assert costs(made)["spot-a"].lost_work == 0.0, "the job is there"


def test_without_a_commit_all_work_of_the_attempt_is_lost() -> None:
    made = job().running()
    made.see_again(after=300.0)
    assert costs(made)["on-demand"].total == pytest.approx(300 * 2 / HOUR)
    made.edit(capacity_lasts=True)
    assert costs(made)["on-demand"] == NO_MOVE_COSTS


def test_an_attempt_that_waits_loses_no_work() -> None:
    made = job().planned()
    made.see_again(after=1.0)
    assert costs(made)["on-demand"].lost_work == 0.0
