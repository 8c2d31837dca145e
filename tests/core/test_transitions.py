"""The transition table: every stage is reachable, every live stage has a transition to another stage, and the docs show
this table."""

from __future__ import annotations

import pytest

from spotladder.core.model import PHASE_OF, TERMINAL, Stage
from spotladder.core.reasons import Reason
from spotladder.core.transitions import TRANSITIONS, target
from spotladder.errors import IllegalTransition


def test_every_stage_has_a_row_and_a_phase() -> None:
    assert set(TRANSITIONS) == set(Stage) == set(PHASE_OF)


def test_exactly_the_terminal_stages_have_no_transitions() -> None:
    assert {stage for stage, row in TRANSITIONS.items() if not row} == TERMINAL


def test_every_stage_is_reachable_from_idle() -> None:
    reached, frontier = {Stage.IDLE}, [Stage.IDLE]
    while frontier:
        new = set(TRANSITIONS[frontier.pop()].values()) - reached
        reached |= new
        frontier.extend(new)
    assert reached == set(Stage)


@pytest.mark.parametrize("stage", list(Stage))
def test_a_transition_that_is_not_in_the_table_raises(stage: Stage) -> None:
    for reason in TRANSITIONS[stage]:
        assert target(stage, reason) in Stage
    for reason in set(Reason) - set(TRANSITIONS[stage]):
        with pytest.raises(IllegalTransition):
            target(stage, reason)
