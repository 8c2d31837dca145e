"""The report as `report` and `run` print it."""

from __future__ import annotations

import pytest

from spotladder.cli.report_table import print_report
from tests.display import golden
from tests.display.builders import PlayedRun
from tests.display.report_checks import facts_of


def test_the_printed_table_matches_the_golden_file(capsys: pytest.CaptureFixture[str]) -> None:
    print_report(facts_of(PlayedRun().play()))
    golden.check("digits.report.txt", capsys.readouterr().out)
