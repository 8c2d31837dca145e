"""The table itself: every stage can be reached, every live stage can be left, and the docs show the table as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.core.model import PHASE_OF, TERMINAL, Stage
from spotladder.core.reasons import Reason
from spotladder.core.transitions import TRANSITIONS, mermaid, target
from spotladder.errors import IllegalTransition


def test_every_stage_has_a_row_and_a_phase() -> None:
    assert set(TRANSITIONS) == set(Stage) == set(PHASE_OF)


def test_terminal_stages_and_only_those_have_no_way_out() -> None:
    assert {stage for stage, row in TRANSITIONS.items() if not row} == TERMINAL


def test_every_stage_is_reached_from_idle() -> None:
    reached, frontier = {Stage.IDLE}, [Stage.IDLE]
    while frontier:
        new = set(TRANSITIONS[frontier.pop()].values()) - reached
        reached |= new
        frontier.extend(new)
    assert reached == set(Stage)


@pytest.mark.parametrize("stage", list(Stage))
@pytest.mark.parametrize("reason", list(Reason))
def test_what_the_table_does_not_have_is_refused(stage: Stage, reason: Reason) -> None:
    if reason in TRANSITIONS[stage]:
        assert target(stage, reason) in Stage
    else:
        with pytest.raises(IllegalTransition):
            target(stage, reason)


def test_the_docs_show_the_table() -> None:
    assert mermaid() in (Path(__file__).parents[2] / "docs/design.md").read_text()
