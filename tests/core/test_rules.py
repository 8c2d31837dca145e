"""The table of rules: its events have names and descriptions, and the docs show it."""

from __future__ import annotations

import pytest

from spotladder.core.model import TERMINAL, Stage
from spotladder.core.rules.effect import Rule
from spotladder.core.rules.table import RULES_OF_STAGES
from tests.docs import tables


def rules() -> list[Rule]:
    return list(dict.fromkeys(rule for stage in RULES_OF_STAGES.values() for rule in stage))


def test_every_stage_but_the_terminal_ones_has_rules() -> None:
    assert {stage for stage, found in RULES_OF_STAGES.items() if found} == set(Stage) - TERMINAL


@pytest.mark.parametrize("stage", list(Stage))
def test_a_stage_has_each_rule_once(stage: Stage) -> None:
    assert len(set(RULES_OF_STAGES[stage])) == len(RULES_OF_STAGES[stage])


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.__name__)
def test_a_rule_says_which_event_it_answers(rule: Rule) -> None:
    assert rule.__doc__
    assert f"`{rule.__name__}`" in tables.life_cycle()
