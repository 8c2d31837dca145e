"""The files of a report."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.display.report import gather, write_report
from spotladder.errors import EnvironmentFailure
from spotladder.records.model import Began
from spotladder.records.recorded import Recorded
from tests.display.builders import SPEC, PlayedRun
from tests.display.report_checks import check_json, check_page, facts_of


def test_both_files_are_written_and_the_json_matches_its_schema(tmp_path: Path, run: PlayedRun) -> None:
    folder = tmp_path / "deep" / "report"
    write_report(folder, facts_of(run))
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "report.json"]
    check_json((folder / "report.json").read_text(encoding="utf-8"))


def test_a_report_folder_that_cannot_be_written_is_reported(tmp_path: Path, run: PlayedRun) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFailure, match=r"cannot write the report: .*; use another folder"):
        write_report(tmp_path / "file" / "report", facts_of(run))


def test_a_run_without_attempts_has_a_report(tmp_path: Path) -> None:
    facts = gather(Recorded((Began(0.0, "j", "n", SPEC),)))
    write_report(tmp_path, facts)
    assert facts.time.goodput is None
    check_page((tmp_path / "report.html").read_text(encoding="utf-8"))
