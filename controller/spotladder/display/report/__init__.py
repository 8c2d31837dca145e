"""The report of a job: report.html, report.json and timeline.png, computed only from its timeline and its state."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from spotladder.atomic import write_text
from spotladder.core.model import JobState
from spotladder.display.records import Recorded
from spotladder.display.report.facts import Facts, gather
from spotladder.display.report.plan_comparison import PlanComparison
from spotladder.errors import EnvironmentFailure

PICTURE = "timeline.png"


def can_draw() -> bool:
    """Whether this installation can draw pictures."""
    return find_spec("matplotlib") is not None


def write_report(folder: Path, recorded: Recorded, state: JobState, plan: PlanComparison | None = None) -> Facts:
    """Write the three files into the folder, each atomically, and return the facts in them. With `plan`, the page and
    the data compare this plan with the run.

    Without matplotlib it writes no picture and removes that of an earlier report. Raises `EnvironmentFailure` if the
    timeline has no beginning or the folder cannot be written.
    """
    from spotladder.display.report.data import as_json
    from spotladder.display.report.page import page
    from spotladder.display.report.png import draw_png

    facts = gather(recorded, state)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / "report.html", page(facts, plan))
        write_text(folder / "report.json", as_json(facts, plan))
        picture = folder / PICTURE
        if can_draw():
            draft = folder / f".{PICTURE}"
            draw_png(facts, draft)
            draft.replace(picture)
        else:
            picture.unlink(missing_ok=True)
    except OSError as error:
        raise EnvironmentFailure(
            f"{folder}: cannot write the report: {error.strerror or error}; use another folder"
        ) from error
    return facts


__all__ = ["PICTURE", "Facts", "can_draw", "gather", "write_report"]
