"""The timeline: records survive a killed writer and have a bounded cost."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotladder.core.model import JobSpec, JobState, Measured, Move, Observation, Stage, Tier
from spotladder.core.reasons import Reason
from spotladder.errors import EnvironmentFailure
from spotladder.records import timeline
from spotladder.records.model import Beat, Began, Committed, Decided, Ended, Moved, Noted, Record
from spotladder.records.recorded import Recorded
from spotladder.records.timeline import Timeline, read

SAMPLES = 1000
"""Into how many parts the run's length is divided for the interval between two heartbeats."""

STORY: list[Record] = [
    Began(100.0, "digits", "team-a", JobSpec((Tier("spot-a"),))),
    Moved(101.0, Move(Stage.IDLE, Stage.STARTING, Reason.STARTED, 1, "spot-a")),
    Committed(130.0, 1, "spot-a", 50, 400, {"loss": 0.5}),
    Ended(140.0, 75, Reason.INTERRUPTED),
]


def write(path: Path, *records: Record) -> bytes:
    with Timeline(path) as written:
        for record in records:
            written.append(record)
    return path.read_bytes()


@given(cut=st.integers(0, 10_000))
def test_a_truncated_timeline_keeps_its_complete_records_and_can_be_continued(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("torn") / "timeline.jsonl"
    complete = write(path, *STORY)
    left = complete[: cut % (len(complete) + 1)]
    path.write_bytes(left)
    lines = left.count(b"\n")
    assert read(path) == Recorded(tuple(STORY[:lines]))
    write(path, Noted(150.0, "resumed"))
    assert read(path) == Recorded((*STORY[:lines], Noted(150.0, "resumed")))


def test_an_incomplete_last_line_longer_than_one_block_is_truncated(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    complete = write(path, *STORY)
    path.write_bytes(complete + b"\0" * 200_000)
    Timeline(path).close()
    assert path.read_bytes() == complete


@given(junk=st.binary(max_size=80))
def test_an_invalid_line_is_counted_and_the_others_are_read(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes
) -> None:
    path = tmp_path_factory.mktemp("junk") / "timeline.jsonl"
    lines = write(path, *STORY).splitlines(keepends=True)
    junk = b"x" + junk.replace(b"\n", b"")
    path.write_bytes(b"".join([*lines[:2], junk + b"\n", *lines[2:]]))
    assert read(path) == Recorded(tuple(STORY), damaged=1)


@pytest.mark.parametrize(
    "line",
    [
        '{"kind":"Noted","at":"soon","text":"x"}',
        '{"kind":"Noted","at":1e308,"text":"x"}',
        '{"kind":"Noted","at":-1.0,"text":"x"}',
        '{"kind":"Noted","at":1' + 400 * "0" + ',"text":"x"}',
        '{"kind":"Noted","at":"inf","text":"x"}',
        '{"kind":"Noted","at":1.0,"text":5}',
        '{"kind":"Noted","at":1.0}',
        '{"kind":"Ended","at":1.0,"exit_code":0,"reason":3}',
        '{"at":1.0}',
        "[]",
        "null",
        "[" * 100_000,
    ],
)
def test_json_that_is_not_a_record_counts_as_an_invalid_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "timeline.jsonl"
    path.write_text(line + "\n", encoding="ascii")
    assert read(path) == Recorded((), damaged=1)
    Timeline(path).close()


def test_kinds_and_fields_of_a_newer_version_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    path.write_text('{"kind":"Invented","at":1.0}\n{"kind":"Noted","at":2.0,"text":"x","more":[]}\n', encoding="ascii")
    assert read(path) == Recorded((Noted(2.0, "x"),))


def test_the_number_of_samples_and_the_size_of_the_file_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    seconds = 30 * 86_400
    with Timeline(path) as written:
        written.append(replace(STORY[0], at=0.0))
        for at in range(1, seconds, 30):
            written.append(Beat(float(at), 1, at))
    beats = [record for record in read(path).records if isinstance(record, Beat)]
    bound = SAMPLES + SAMPLES * math.log(seconds / SAMPLES) + 10
    assert len(beats) < bound
    assert path.stat().st_size < 1_000_000
    assert beats[-1].step == max(range(1, seconds, 30)), "the last sample is kept at the close"


def decided(at: float, step: int = 0, *, changed: bool = False) -> Decided:
    state = JobState(clock=at, measured=Measured(total=step))
    return Decided(at, Observation(step), state, state if changed else None)


def test_decisions_are_samples_unless_they_changed_the_job_and_the_last_one_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    samples = [decided(10_000.0 + second, second) for second in range(300)]
    moved = decided(10_020.5, 21, changed=True)
    write(path, replace(STORY[0], at=0.0), *samples[:21], moved, *samples[21:], replace(STORY[3], at=10_400.0))
    kept = [record for record in read(path).records if isinstance(record, Decided)]
    assert moved in kept
    assert len(kept) < 10
    assert kept[-1] == samples[-1], "the state at the end"


def test_a_full_timeline_has_the_changes_and_the_last_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MAX_SAMPLED", 100)
    path, changed = tmp_path / "timeline.jsonl", decided(5000.0, changed=True)
    samples = [decided(at) for at in (1000.0, 2000.0, 9000.0)]
    write(path, STORY[0], *samples[:2], changed, samples[2], replace(STORY[3], at=10_000.0))
    assert read(path).records == (STORY[0], changed, samples[2], replace(STORY[3], at=10_000.0))


def test_secrets_in_messages_are_removed(tmp_path: Path) -> None:
    text = write(tmp_path / "timeline.jsonl", STORY[0], Noted(1.0, "AWS_SECRET_ACCESS_KEY=abcdefgh refused")).decode()
    assert "abcdefgh" not in text
    assert "[redacted] refused" in text


def test_each_append_is_one_write_of_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[int] = []
    real = os.write

    def counting(file: int, data: bytes) -> int:
        writes.append(len(data))
        return real(file, data)

    with Timeline(tmp_path / "timeline.jsonl") as written:
        monkeypatch.setattr(os, "write", counting)
        for at in range(2000):
            written.append(Noted(float(at), "x"))
    assert len(writes) == 2000
    assert max(writes) < 80


class FullDisk:
    """A disk with room for the given number of bytes."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.real = os.write

    def __call__(self, file: int, data: bytes) -> int:
        if self.room <= 0:
            raise OSError(28, "No space left on device")
        taken = self.real(file, bytes(data)[: self.room])
        self.room -= taken
        return taken


def test_a_full_disk_is_reported_and_leaves_no_incomplete_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "timeline.jsonl"
    written = Timeline(path)
    written.append(STORY[0])
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", FullDisk(10))
        with pytest.raises(EnvironmentFailure, match=r"timeline\.jsonl: .*No space left on device; free space"):
            written.append(STORY[1])
    assert read(path) == Recorded((STORY[0],))
    written.append(STORY[2])
    written.close()
    assert read(path) == Recorded((STORY[0], STORY[2]))


def test_a_timeline_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFailure, match="cannot write the timeline"):
        Timeline(tmp_path / "file" / "timeline.jsonl")


ENDLESS = """
import sys
from pathlib import Path
from spotladder.records.model import Committed
from spotladder.records.timeline import Timeline
timeline = Timeline(Path(sys.argv[1]))
step = 0
while True:
    timeline.append(Committed(float(step), 1, "spot-a", step))
    step += 1
"""


def test_all_records_before_a_kill_are_readable(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    writer = subprocess.Popen([sys.executable, "-c", ENDLESS, str(path)])
    try:
        deadline = time.monotonic() + 60
        while not (path.exists() and path.stat().st_size > 100_000) and time.monotonic() < deadline:
            assert writer.poll() is None, "the writer ended on its own"
    finally:
        writer.kill()
        writer.wait()
    back = read(path)
    assert len(back.records) > 500
    assert [record.step for record in back.records if isinstance(record, Committed)] == list(range(len(back.records)))
    assert back.damaged == 0
