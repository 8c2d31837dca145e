"""The reason of a decision without a transition, and the state after the end of a job."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spotladder.core.model import Exit, Stage
from spotladder.core.reasons import Reason
from tests.core.builders import SteppedJob, all_ready, attempt, head, lost, pending, spec, tier, worker


def running() -> SteppedJob:
    return SteppedJob().running()


def waiting() -> SteppedJob:
    made = SteppedJob().planned()
    made.see(attempt(made.number, head(), pending("w1-0"), pending("w1-1")), after=1)
    return made


def recovering() -> SteppedJob:
    made = SteppedJob(spec(tier("spot-a", 3))).running()
    made.see(attempt(made.number, head(), lost("w1-0"), worker("w1-1")), after=1)
    return made


def running_without_store() -> SteppedJob:
    made = running()
    made.see(all_ready(made.number, store_unavailable_since=made.now, store_message="no answer"), after=1)
    return made


def ended(exit_: Exit) -> SteppedJob:
    made = running()
    made.see(all_ready(made.number, exit=exit_), after=1)
    made.see(after=1)
    return made


@pytest.mark.parametrize(
    ("build", "stage", "reason"),
    [
        pytest.param(running, Stage.RUNNING, Reason.STEADY, id="running"),
        pytest.param(running_without_store, Stage.RUNNING, Reason.STEADY, id="running, with an impediment"),
        pytest.param(waiting, Stage.STARTING, Reason.WAITING_FOR_CAPACITY, id="an impediment of the start"),
        pytest.param(recovering, Stage.RECOVERING, Reason.WAITING_FOR_CAPACITY, id="an impediment of the recovery"),
        pytest.param(lambda: ended(Exit.SUCCEEDED), Stage.SUCCEEDED, Reason.COMPLETED, id="succeeded"),
        pytest.param(lambda: ended(Exit.FAILED), Stage.FAILED, Reason.APPLICATION_FAILED, id="failed"),
    ],
)
def test_the_reason_of_a_decision_without_a_transition(
    build: Callable[[], SteppedJob], stage: Stage, reason: Reason
) -> None:
    made = build()
    decision = made.see_again(after=0)
    assert (made.state.stage, decision.moves) == (stage, ())
    assert decision.reason is reason


def test_a_job_that_succeeds_while_it_recovers_has_no_running_timers() -> None:
    made = recovering()
    assert made.state.timers.recovering_since is not None
    made.commit(100, 100)
    made.see(attempt(made.number, head(), lost("w1-0"), worker("w1-1"), exit=Exit.SUCCEEDED), after=1)
    assert made.state.stage is Stage.SUCCEEDED
    assert (made.state.timers.waiting_since, made.state.timers.recovering_since) == (None, None)
    assert made.state.ended_at == made.now
