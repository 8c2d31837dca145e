"""Recorded jobs as a source of the page: folders of checkpoints, one job of them, and the timeline of a run."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest
from yarl import URL

from spotladder.checkpoints import outputs
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store import folder_of
from spotladder.cli.main import main
from spotladder.core.model import JobSpec, JobState, LeftAttempt, Observation, Progress, Stage, Tier
from spotladder.errors import EnvironmentFailure
from spotladder.places.recorded import RecordedJobs
from spotladder.records.model import Began, Decided, Record, encode
from spotladder.records.stored import append, of_job
from spotladder.web.frame import job_address
from spotladder.web.rows import JobRow
from tests.web.builders import HOSTILE, RECORDED
from tests.web.test_server import browsing

SPEC = JobSpec((Tier("spot-a"),))
TRAINED = JobState(stage=Stage.RUNNING, tier="spot-a", progress=Progress(step=40, total=100))
DONE = JobState(stage=Stage.SUCCEEDED, tier="spot-a", progress=Progress(step=100, total=100))


def record(
    root: Path, name: str, state: JobState, *, ago: float = 3600.0, lasted: float = 0.0, uid: str = "u1"
) -> None:
    """Write the records of a job whose newest one is so old, and the output of its first attempt."""
    at = time.time() - ago
    records: list[Record] = [Began(at - lasted, name, "team-a", SPEC), Decided(at, Observation(0), state)]
    folder = folder_of(open_store(root), name)
    append(of_job(folder, uid), [encode(each) for each in records], None)
    outputs.keep(outputs.of_job(folder, uid), outputs.Output(1, 0, "driver"), f"output of {uid}\n")


def looked_at(address: Path) -> RecordedJobs:
    place = RecordedJobs(str(address))
    place.look()
    return place


def phases(place: RecordedJobs) -> dict[str, str]:
    return {job["metadata"]["name"]: job["status"]["phase"] for job in place.jobs()}


def test_attempts_are_being_removed_only_while_records_are_written(tmp_path: Path) -> None:
    state = replace(TRAINED, left=(LeftAttempt(1, "spot-a", 0.0, 2),))
    record(tmp_path, "digits", state, ago=60.0)
    record(tmp_path, "mnist", state)
    statuses = {job["metadata"]["name"]: job["status"] for job in looked_at(tmp_path).jobs()}
    assert ("removing" in statuses["digits"], "removing" in statuses["mnist"]) == (True, False)


def test_a_folder_has_its_jobs_and_one_without_new_records_is_interrupted(tmp_path: Path) -> None:
    record(tmp_path, "digits", DONE)
    record(tmp_path, "mnist", TRAINED)
    record(tmp_path, "opt", TRAINED, ago=60.0)
    assert phases(looked_at(tmp_path)) == {"digits": "Succeeded", "mnist": "Interrupted", "opt": "Running"}
    assert phases(looked_at(tmp_path / "mnist")) == {"mnist": "Interrupted"}


def test_the_age_of_a_job_that_is_not_running_ends_with_its_records(tmp_path: Path) -> None:
    """Regression: simulated runs, which begin in 2020, were years old."""
    for name, ago in (("digits", 60.0), ("mnist", 9e7)):
        record(tmp_path, name, TRAINED, ago=ago, lasted=7200.0)
    place, now = looked_at(tmp_path), time.time()
    rows = {row.name: row for row in (JobRow.of(place, job, now) for job in place.jobs())}
    assert {name: row.age for name, row in rows.items()} == {"digits": "2h 01m", "mnist": "2h 00m"}


async def test_a_job_has_its_report_and_its_output_and_the_newest_of_a_name_is_shown(tmp_path: Path) -> None:
    record(tmp_path, "digits", TRAINED, ago=90.0, uid="new")
    record(tmp_path, "digits", DONE, uid="old")
    place = looked_at(tmp_path)
    assert phases(place) == {"digits": "Running"}
    facts = await place.facts("team-a", "digits")
    assert facts is not None
    assert facts.going_on
    assert [each.text for each in await place.printed("team-a", "digits", 1)] == ["output of new\n"]
    assert await place.facts("team-a", "other") is None


async def test_the_timeline_of_a_run_is_a_job(tmp_path: Path) -> None:
    place = looked_at(RECORDED)
    assert phases(place) == {"digits-tensorflow": "Succeeded"}
    facts = await place.facts("default", "digits-tensorflow")
    assert facts is not None
    assert facts.exit_code == 0


async def test_a_truncated_stream_shows_what_it_has_and_says_what_is_missing(tmp_path: Path) -> None:
    lines = RECORDED.read_bytes()
    cut = tmp_path / "timeline.jsonl"
    cut.write_bytes(lines[: len(lines) // 2])
    place = looked_at(cut)
    assert phases(place) == {"digits-tensorflow": "Interrupted"}
    record(tmp_path, "digits", DONE)
    record(tmp_path, "mnist", DONE)
    objects = tmp_path / "mnist/records/u1/00000001.jsonl.gz"
    objects.write_bytes(objects.read_bytes()[:20])
    place = looked_at(tmp_path)
    assert phases(place) == {"digits": "Succeeded"}
    assert place.problem == "the records of 1 job have no beginning"


async def test_a_new_job_is_a_change_and_records_that_are_gone_leave_the_last_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spotladder.places.recorded.POLL_INTERVAL", 0.01)
    record(tmp_path, "digits", TRAINED)
    place, changed = looked_at(tmp_path), asyncio.Event()
    following = asyncio.create_task(place.follow(lambda _namespace: changed.set()))
    record(tmp_path, "mnist", TRAINED, uid="u2")
    await changed.wait()
    changed.clear()
    tmp_path.rename(tmp_path.with_name("gone"))
    await changed.wait()
    following.cancel()
    assert phases(place) == {"digits": "Interrupted", "mnist": "Interrupted"}
    assert "has no records" in place.problem


async def test_names_of_a_stream_never_become_markup(tmp_path: Path) -> None:
    records: list[Record] = [
        Began(1.8e9, HOSTILE, HOSTILE, SPEC),
        Decided(1.8e9, Observation(0), replace(TRAINED, message=HOSTILE)),
    ]
    file = tmp_path / "timeline.jsonl"
    file.write_text("".join(f"{encode(each)}\n" for each in records))
    place = looked_at(file)
    async with browsing(place) as client:
        for path in ("/", job_address(place.name, HOSTILE, HOSTILE)):
            answer = await client.get(URL(path, encoded=True))
            assert answer.status == 200
            assert "<img" not in await answer.text()


@pytest.mark.parametrize("content", [None, b"", b"no stream", b"\x00\xff\n" * 9, b'{"kind":"Teleported","at":1.0}\n'])
def test_what_is_no_stream_is_one_line(
    content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "timeline.jsonl"
    if content is not None:
        file.write_bytes(content)
    for address in (file, tmp_path):
        assert main(["web", str(address)]) == EnvironmentFailure.exit_code
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"error: {address}: has no records of a job that this version can read: name a folder")


@pytest.mark.parametrize("options", [("-A",), ("-n", "team-a"), ("--state-dir", "."), ("--context", "west")])
def test_other_jobs_are_refused_beside_recorded_ones(
    options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["web", str(RECORDED), *options]) == 2
    assert "shows only the jobs recorded there" in capsys.readouterr().err
