"""The documentation explains all phases, conditions, condition reasons and exit codes."""

from __future__ import annotations

import re
from pathlib import Path

from spotladder.cli import main
from spotladder.core.model import Phase
from spotladder.operator.condition_types import ConditionReason, ConditionType
from tests.docs.markdown import ROOT

OF_A_TIER = {ConditionType.AVAILABLE, ConditionType.PRICED}


def section(page: Path, heading: str) -> str:
    return page.read_text(encoding="utf-8").split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def explained_names(text: str) -> set[str]:
    """The names with which the entries of all lists begin."""
    return set(re.findall(r"^- `([A-Z]\w+)`: ", text, re.MULTILINE))


def test_all_phases_and_conditions_of_a_job_are_explained_and_no_others() -> None:
    explained = explained_names(section(ROOT / "docs" / "conditions.md", "Phases and conditions"))
    assert explained == {*Phase, *(set(ConditionType) - OF_A_TIER)}


def test_the_conditions_of_a_capacitytier_are_explained() -> None:
    explained = explained_names(section(ROOT / "docs" / "conditions.md", "CapacityTier status"))
    assert explained == {*OF_A_TIER, ConditionType.VALID}


def test_every_condition_reason_is_explained() -> None:
    page = ROOT / "docs" / "conditions.md"
    explained = re.findall(r"`(\w+)`", section(page, "Condition reasons") + section(page, "Impediments"))
    assert set(ConditionReason) - set(explained) == set()


def test_exit_codes_are_those_of_the_command() -> None:
    assert main.__doc__ is not None
    codes = re.findall(r"(?:^|· |: )(\d+) \w", main.__doc__.split("Exit codes")[1], re.MULTILINE)
    table = section(ROOT / "docs" / "conditions.md", "Exit codes")
    assert re.findall(r"^- `(\d+)`: ", table, re.MULTILINE) == codes
