"""The script that draws the README's pictures from a recorded run."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from spotladder.core.reasons import Reason
from tests.core.builders import START
from tests.display.builders import PlayedRun

SCRIPT = Path(__file__).parents[2] / "docs" / "images" / "record.py"


@pytest.fixture(scope="module")
def record() -> ModuleType:
    spec = importlib.util.spec_from_file_location("record", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_replayed_snapshot_equals_the_live_snapshot(record: ModuleType, run: PlayedRun) -> None:
    for shot in run.shots:
        past = [each for each in run.records if each.at <= shot.now]
        replayed = record.snapshot(past, shot.now)
        assert (replayed.state, replayed.spec) == (shot.state, shot.spec)
        assert replayed.seen.progress.step == shot.seen.progress.step


def test_the_picture_shows_the_wait_for_capacity_and_loads_no_resources(record: ModuleType, run: PlayedRun) -> None:
    at = record.telling_moment(tuple(run.records))
    assert START + 59 < at < START + 72, "attempt 3 waits on spot-b"
    drawing = record.live_view(tuple(run.records), at)
    assert "spot-b&#160;has&#160;no&#160;capacity" in drawing
    assert "@font-face" not in drawing
    assert "url(http" not in drawing
    assert len(drawing) < 300_000


def test_the_stored_pictures_are_up_to_date(record: ModuleType) -> None:
    """`make pictures` updates them."""
    for name, drawn in (("live-view.svg", record.kept_live_view()), ("report.svg", record.kept_report())):
        assert (SCRIPT.parent / name).read_text(encoding="utf-8") == drawn, "run `make pictures`"
        ElementTree.fromstring(drawn)  # noqa: S314 – drawn here


def test_a_tier_that_was_exhausted_by_a_notice_is_not_shown_as_open(record: ModuleType) -> None:
    records = record.read(record.RUN / "timeline.jsonl").records
    shot = record.snapshot(list(records), records[-1].at)
    exhausted = {tier.name: tier.exhausted_by for tier in shot.state.tiers}
    assert exhausted["spot-a"] is Reason.MAX_FAILURES_EXCEEDED
    assert "open" not in record.kept_live_view().partition("spot-b")[0].partition("spot-a")[2]
