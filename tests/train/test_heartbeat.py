"""The heartbeat file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest

from spotladder.train.heartbeat import Heartbeat
from tests.train.builders import ManualClock


def heartbeat(path: Path | None) -> tuple[Heartbeat, ManualClock]:
    clock = ManualClock()
    return Heartbeat(path, clock, lambda: 1700000000.0), clock


def read(path: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads(path.read_text())
    return content


def test_it_is_written_at_most_once_a_second(tmp_path: Path) -> None:
    beats, clock = heartbeat(tmp_path / "beat")
    seen = []
    for step in range(1, 7):
        beats.beat(step, 100)
        seen.append(read(tmp_path / "beat")["step"])
        clock.now += 0.4
    assert seen == [1, 1, 1, 4, 4, 4]


def test_a_hang_is_written_until_it_ends(tmp_path: Path) -> None:
    beats, _ = heartbeat(tmp_path / "beat")
    beats.beat(7, 100)
    beats.report_hang("no step for 60 s")
    assert (read(tmp_path / "beat")["step"], read(tmp_path / "beat")["hang"]) == (7, "no step for 60 s")
    beats.report_hang("")
    assert "hang" not in read(tmp_path / "beat")


def test_metrics_of_any_library_are_written(tmp_path: Path) -> None:
    beats, _ = heartbeat(tmp_path / "beat")
    beats.learned({"loss": numpy.float32(0.5), "step": 999, "epoch": 3, "nothing": float("nan")})
    # What the heartbeat says by these names is its own: the metric "hang" ended the attempt.
    beats.learned({"phase": "warm-up", "hang": 0.1, "workers": 8, "store": 1, "reached": 2})
    beats.beat(1, 100)
    assert read(tmp_path / "beat") == {
        "step": 1,
        "total": 100,
        "at": 1700000000.0,
        "loss": 0.5,
        "epoch": 3,
        "nothing": None,
    }


def test_a_file_that_cannot_be_written_for_a_time_is_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As on a disk that is full until old checkpoints are deleted."""
    beats, clock = heartbeat(tmp_path / "missing" / "beat")
    for step in (1, 2):
        beats.beat(step, 100)
        clock.now += 5
    (tmp_path / "missing").mkdir()
    beats.beat(3, 100)
    assert read(tmp_path / "missing" / "beat")["step"] == 3
    assert caplog.text.count("cannot write") == 1


def test_the_phase_is_written_until_the_first_step_is_done(tmp_path: Path) -> None:
    beats, clock = heartbeat(tmp_path / "beat")
    beats.enter("joined")
    assert json.loads((tmp_path / "beat").read_text())["phase"] == "joined"
    beats.beat(0, 9, at_once=True)
    beats.enter("first step")
    said = json.loads((tmp_path / "beat").read_text())
    assert (said["step"], said["phase"]) == (0, "first step")
    clock.now += 2
    beats.beat(1, 9)
    assert "phase" not in json.loads((tmp_path / "beat").read_text())
