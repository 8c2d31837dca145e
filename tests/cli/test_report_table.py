"""The report as `report` and `run` print it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.cli.report_table import print_report, sentences
from tests import golden
from tests.display.builders import PlayedRun
from tests.display.report_checks import facts_of


def test_the_printed_table_matches_the_golden_file(capsys: pytest.CaptureFixture[str]) -> None:
    print_report(facts_of(PlayedRun().play()))
    golden.check("display/golden/digits.report.txt", capsys.readouterr().out)


def test_the_parts_of_restarts_are_in_real_time_where_steps_stand_for_longer_ones() -> None:
    facts = facts_of(PlayedRun().play())
    scaled = replace(facts, spec=replace(facts.spec, step_time=60.0))
    assert ("", "8s until the first step: nodes 3s, first step 4s") in sentences(facts)
    assert ("", "8s of real time until the first step: nodes 3s, first step 4s") in sentences(scaled)


def test_the_parts_of_restarts_have_a_label_when_no_new_step_followed() -> None:
    facts = facts_of(PlayedRun().play())
    repeated = replace(facts, attempts=tuple(replace(attempt, overhead=None) for attempt in facts.attempts))
    assert ("restarts", "8s until the first step: nodes 3s, first step 4s") in sentences(repeated)
