"""`spotladder sim replay` and `spotladder report` of records beside checkpoints, as a user sees them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store import folder_of
from spotladder.core.reasons import Reason
from spotladder.records import stored
from spotladder.records.model import Moved, Record, encode
from tests.cli.terminal import Answer, call
from tests.display.builders import CloudEvents, PlayedRun

Capture = pytest.CaptureFixture[str]


def keep(bucket: Path, records: list[Record], uid: str = "u1") -> Path:
    """The folder of a job with these records in a bucket."""
    store = stored.of_job(folder_of(open_store(bucket.as_uri()), "digits"), uid)
    stored.append(store, [encode(record) for record in records], None)
    return bucket / "digits"


@pytest.fixture
def records() -> list[Record]:
    return PlayedRun(world=CloudEvents(notices={}, kills=frozenset())).play().records


def replayed(capsys: Capture, where: Path, *more: str) -> Answer:
    return call(capsys, "sim", "replay", where, *more)


def test_the_policy_of_the_job_decides_as_recorded(capsys: Capture, tmp_path: Path, records: list[Record]) -> None:
    folder = keep(tmp_path, records)
    answer = replayed(capsys, folder)
    assert (answer.code, answer.err) == (0, "")
    header, row = answer.out.splitlines()
    assert header.split()[:3] == ["POLICY", "DECISIONS", "DIFFERENT"]
    assert (row.split()[0], row.split()[2]) == ("ordered", "0")


def test_a_decision_that_differs_from_the_recorded_one_fails(
    capsys: Capture, tmp_path: Path, records: list[Record]
) -> None:
    changed = [
        replace(record, move=replace(record.move, reason=Reason.FELL_BACK))
        if isinstance(record, Moved) and record.move.reason is Reason.STARTED
        else record
        for record in records
    ]
    answer = replayed(capsys, keep(tmp_path, changed))
    assert answer.code == 1
    assert "Idle → Starting (Started) on spot-a instead of Idle → Starting (FellBack)" in answer.out


def test_other_policies_are_compared(capsys: Capture, tmp_path: Path, records: list[Record]) -> None:
    folder = keep(tmp_path, records)
    answer = replayed(capsys, folder, "--policy", "ordered", "--policy", "on-demand")
    assert answer.code == 0, "a difference is no failure of the job's policy"
    assert [line.split()[0] for line in answer.out.splitlines()[1:3]] == ["ordered", "on-demand"]
    found = json.loads(replayed(capsys, folder, "--policy", "on-demand", "--output", "json").out)["policies"][0]
    assert found["policy"] == "on-demand"
    assert found["estimatedUsd"] > 2 * found["paidUsd"] > 0
    assert found["differences"][0]["tier"] == "on-demand"
    assert found["differences"][0]["recorded"] == "Idle → Starting (Started)"
    refused = replayed(capsys, folder, "--policy", "night-owl")
    assert refused.code == 2
    assert refused.err.startswith("error: --policy: no policy is called 'night-owl'")


def test_a_job_that_was_deleted_has_a_report(capsys: Capture, tmp_path: Path, records: list[Record]) -> None:
    folder = keep(tmp_path, records)
    answer = call(capsys, "report", folder, "--to", tmp_path / "report")
    assert (answer.code, answer.err) == (0, "")
    found = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert (found["job"], found["phase"], len(found["attempts"])) == ("digits", "Succeeded", 1)
    nothing = call(capsys, "report", tmp_path / "none")
    assert nothing.code == 5
    assert nothing.err.endswith("none/records: has no records: name the folder of a job\n")
