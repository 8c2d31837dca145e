"""The table of rules: its events have names and descriptions, and the docs show it."""

from __future__ import annotations

from spotladder.core.model import TERMINAL, Stage
from spotladder.core.rules.table import RULES_OF_STAGES
from tests.docs import tables


def test_every_stage_but_the_terminal_ones_has_rules() -> None:
    assert {stage for stage, found in RULES_OF_STAGES.items() if found} == set(Stage) - TERMINAL


def test_a_stage_has_each_rule_once() -> None:
    assert [stage for stage, rules in RULES_OF_STAGES.items() if len(set(rules)) < len(rules)] == []


def test_a_rule_says_which_event_it_answers() -> None:
    table = tables.life_cycle()
    rules = {rule for stage in RULES_OF_STAGES.values() for rule in stage}
    assert [rule for rule in rules if not rule.__doc__ or f"`{rule.__name__}`" not in table] == []
