"""Golden files: a recorded run and its expected reports. `UPDATE_GOLDEN=1 pytest …` updates them."""

from __future__ import annotations

import os
from pathlib import Path

from spotladder.core import codec
from spotladder.core.model import JobState
from spotladder.display.records import Recorded
from spotladder.display.timeline import Timeline, read
from tests.display.builders import PlayedRun

FOLDER = Path(__file__).parent
UPDATE = os.environ.get("UPDATE_GOLDEN") == "1"


def recorded_run() -> tuple[Recorded, JobState]:
    """A run on three tiers: an eviction with notice, one without, a tier without capacity, success on on-demand."""
    timeline, state = FOLDER / "digits.jsonl", FOLDER / "digits.state.json"
    if UPDATE:
        run = PlayedRun().play()
        timeline.unlink(missing_ok=True)
        with Timeline(timeline) as written:
            for record in run.records:
                written.append(record)
        state.write_text(codec.dump(run.state) + "\n", encoding="utf-8")
    return read(timeline), codec.load_state(state.read_text(encoding="utf-8"))


def check(name: str, text: str) -> None:
    """Assert that the text equals the golden file."""
    path = FOLDER / name
    if UPDATE:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{name} differs; see the change with UPDATE_GOLDEN=1 and git diff"
