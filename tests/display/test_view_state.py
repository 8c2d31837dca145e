"""Progress and pace from the records of a timeline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.core.model import (
    JobState,
    Observation,
    Progress,
)
from spotladder.display.view_state import RunSummary, ViewSnapshot
from spotladder.records.model import Beat
from tests.core.builders import START
from tests.display.builders import LIVE, SPEC


def test_the_pace_is_measured_over_the_last_seconds_of_the_current_attempt() -> None:
    summary = RunSummary()
    for second in range(100):
        summary.add(Beat(START + second, 1, second * (2 if second < 50 else 1) + (50 if second >= 50 else 0)))
    assert summary.pace(START + 99) == pytest.approx(1.0)
    assert summary.pace(START + 200) is None, "no heartbeat within the window"
    summary.add(Beat(START + 100, 2, 3))
    assert summary.pace(START + 100) is None, "a new attempt has no pace yet"


def test_steps_that_take_longer_than_the_window_have_a_pace() -> None:
    summary = RunSummary()
    for step in range(5):
        summary.add(Beat(START + 90 * step, 1, step))
        assert summary.pace(START + 90 * step + 89) == (pytest.approx(1 / 90) if step else None)


def test_the_step_is_that_of_the_heartbeat_or_else_of_the_newest_commit() -> None:
    summary = RunSummary()
    summary.add(Beat(START, 1, 70, 400))
    progress = Observation(1, (), Progress(50, 400, START, 1))
    assert summary.step(ViewSnapshot(START, SPEC, JobState(attempt=LIVE), progress)) == 70
    assert summary.step(ViewSnapshot(START, SPEC, JobState(attempt=replace(LIVE, number=2)), progress)) == 50
