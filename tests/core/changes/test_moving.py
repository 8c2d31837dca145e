"""The record of each change of stage."""

from __future__ import annotations

from spotladder.core.model import Stage, TierChoice, TierView
from spotladder.core.reasons import Reason
from tests.core.builders import SteppedJob, all_ready, lost, spec, tier, worker


def test_each_move_has_its_stages_its_reason_and_its_attempt() -> None:
    made = SteppedJob(spec(tier("spot-a", 0), tier("on-demand", -1))).running()
    made.lose_attempt(lost("w1-0"), worker("w1-1"))
    assert [(move.source, move.target, move.reason, move.attempt, move.tier) for move in made.moves] == [
        (Stage.IDLE, Stage.STARTING, Reason.STARTED, 1, "spot-a"),
        (Stage.STARTING, Stage.RUNNING, Reason.ALL_READY, 1, "spot-a"),
        (Stage.RUNNING, Stage.ENDING, Reason.MAX_FAILURES_EXCEEDED, 1, "spot-a"),
        (Stage.ENDING, Stage.IDLE, Reason.MOVED_ON, 1, "spot-a"),
        (Stage.IDLE, Stage.STARTING, Reason.FELL_BACK, 2, "on-demand"),
    ]


class WantsFirst:
    """A policy that wants the first tier, even if it is exhausted or the job is on it."""

    def choose(self, view: TierView) -> TierChoice:
        return TierChoice(view.tiers[0].name, why="it is the first")


def test_a_live_attempt_does_not_move_to_an_exhausted_tier() -> None:
    made = SteppedJob(spec(tier("spot-a", 0), tier("on-demand", -1))).running()
    made.lose_attempt(lost("w1-0"), worker("w1-1"))
    made.running(2)
    assert made.state.tier == "on-demand"
    made.policy = WantsFirst()
    made.see(all_ready(2), after=100)
    assert (made.state.stage, made.state.tier, made.reasons[-1]) == (Stage.RUNNING, "on-demand", Reason.ALL_READY)
