"""The report of a job: report.html and report.json, computed only from its records."""

from __future__ import annotations

from pathlib import Path

from spotladder.atomic import write_text
from spotladder.display.report.data import as_json
from spotladder.display.report.facts import RunFacts, gather
from spotladder.display.report.page import page
from spotladder.errors import EnvironmentFailure


def write_report(folder: Path, facts: RunFacts) -> None:
    """Write both files into the folder, each atomically. Raises `EnvironmentFailure` if the folder cannot be
    written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / "report.html", page(facts))
        write_text(folder / "report.json", as_json(facts))
    except OSError as error:
        raise EnvironmentFailure(
            f"{folder}: cannot write the report: {error.strerror or error}; use another folder"
        ) from error


__all__ = ["RunFacts", "gather", "write_report"]
