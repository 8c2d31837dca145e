"""`spotladder checkpoints`: output, and errors for invalid addresses and checkpoints."""

from __future__ import annotations

import errno
import json
import os
import shutil
import zlib
from pathlib import Path

import pytest

from spotladder.checkpoints import outputs
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.cli.main import main
from tests.checkpoints.builders import AT, a_folder, commit_folder
from tests.checkpoints.memory_store import MemoryStore
from tests.checkpoints.unsafe_stores import Ignores

Output = pytest.CaptureFixture[str]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the log of one job: steps 10, 20 and 30 in two attempts, ended."""
    log = CommitLog(open_store(tmp_path / "bucket"), "digits", namespace="team-a", clock=lambda: AT)
    folder = a_folder(tmp_path / "in", weights=b"w" * 3000)
    first = log.start(1, "spot-a")
    commit_folder(first, 10, folder, total=30, metrics={"loss": 0.51234567})
    second = log.start(2, "on-demand")
    for step in (20, 30):
        commit_folder(second, step, folder, total=30)
    log.end_as_controller("Succeeded")
    return tmp_path / "bucket"


def run(capsys: Output, *arguments: str) -> tuple[int, str, str]:
    code = main(["checkpoints", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_ls_lists_the_commits(place: Path, capsys: Output) -> None:
    code, out, _ = run(capsys, "ls", str(place))
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == f"{(place / 'digits').as_uri()}"
    assert lines[1].split() == ["STEP", "ATTEMPT", "TIER", "COMMITTED", "FILES", "SIZE", "METRICS", "PATH"]
    assert lines[2].split() == (
        ["10", "1", "spot-a", "2027-01-15T08:00:00Z", "1", "2.9", "KiB", "loss", "0.5123", "attempts/0001/ckpt-000010"]
    )
    assert len(lines) == 5


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_ls_for_programs(place: Path, capsys: Output, output: str) -> None:
    _, out, _ = run(capsys, "ls", str(place), "--output", output)
    if output == "json":
        assert [(commit["step"], commit["bytes"]) for commit in json.loads(out)] == [(10, 3000), (20, 3000), (30, 3000)]
    else:
        assert "step: 10" in out


def test_show_prints_the_entries_of_the_log(place: Path, capsys: Output) -> None:
    _, out, _ = run(capsys, "show", str(place))
    lines = out.splitlines()
    assert lines[0].endswith(": job team-a/digits, attempt 2, Succeeded")
    assert [line.split()[1] for line in lines[2:]] == ["start", "commit", "start", "commit", "commit", "end"]
    _, out, _ = run(capsys, "show", str(place), "-o", "json")
    assert [entry["seq"] for entry in json.loads(out)["entries"]] == list(range(6))


def test_show_prints_the_files_of_one_commit(place: Path, capsys: Output) -> None:
    _, out, _ = run(capsys, "show", str(place), "--step", "20")
    assert out.splitlines()[-1].split() == ["weights", "3000", f"{zlib.crc32(b'w' * 3000):08x}"]
    code, _, err = run(capsys, "show", str(place), "--step", "21")
    assert code == 2
    assert "step 21 has no commit; committed steps: 10, 20, 30" in err


def test_verify_reports_a_changed_file(place: Path, capsys: Output) -> None:
    code, out, _ = run(capsys, "verify", str(place))
    assert code == 0
    assert out.count(" ok") == 3
    (place / "digits/attempts/0002/ckpt-000020/weights").write_bytes(b"v" * 3000)
    code, out, _ = run(capsys, "verify", str(place))
    assert code == 5
    assert (out.count(" ok"), out.count(" corrupt ")) == (2, 1)
    assert "ckpt-000020/weights: this file of step 20 differs from the committed file" in out
    assert run(capsys, "verify", str(place), "--step", "30")[0] == 0
    code, out, _ = run(capsys, "verify", str(place), "-o", "json")
    assert (code, [commit["ok"] for commit in json.loads(out)]) == (5, [True, False, True])


def test_verify_refuses_a_store_that_cannot_fence(place: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", shutil.copyfile)
    code, out, err = run(capsys, "verify", str(place))
    assert (code, out.count(" ok")) == (5, 3)
    assert "a second create of an object succeeds" in err
    monkeypatch.setattr(os, "fsync", refused)
    code, _, err = run(capsys, "verify", str(place))
    assert (code, err.startswith("not checked whether the store can fence an attempt: cannot create")) == (0, True)


def test_verify_checks_a_bucket_before_the_first_job(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    class Bucket(Ignores):
        endpoint = "s3: the endpoint"

    class SafeBucket(MemoryStore):
        endpoint = "s3: the endpoint"

    monkeypatch.setattr("spotladder.cli.checkpoints.open_store", lambda _: Bucket())
    code, _, err = run(capsys, "verify", "s3://bucket/prefix")
    assert (code, "a second create of an object succeeds" in err) == (5, True)
    monkeypatch.setattr("spotladder.cli.checkpoints.open_store", lambda _: SafeBucket())
    code, _, err = run(capsys, "verify", "s3://bucket/prefix")
    assert (code, "the store can fence an attempt" in err, "no commit log found" in err) == (2, True, True)


def refused(_: int) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def test_gc_deletes_all_but_the_newest_commits(place: Path, capsys: Output) -> None:
    code, out, _ = run(capsys, "gc", str(place), "--keep", "1", "--dry-run")
    assert (code, "would delete 2 commits" in out) == (0, True)
    assert len(list(place.glob("digits/attempts/*/*"))) == 3
    code, out, _ = run(capsys, "gc", str(place), "--keep", "1")
    assert (code, "deleted 2 commits, 2 objects, 5.9 KiB" in out) == (0, True)
    assert [path.name for path in place.glob("digits/attempts/*/*")] == ["ckpt-000030"]
    code, _, err = run(capsys, "gc", str(place), "--keep", "0")
    assert (code, "'--keep'" in err) == (2, True)


def test_gc_deletes_old_program_output(place: Path, capsys: Output) -> None:
    store = outputs.of_job(open_store(place / "digits"), "")
    for attempt in range(1, 23):
        outputs.keep(store, outputs.Output(attempt, 0, "driver"), "x")
    code, out, _ = run(capsys, "gc", str(place))
    assert (code, "deleted 0 commits, 2 objects" in out) == (0, True)
    assert [output.attempt for output in outputs.kept(store)] == list(range(3, 23))


def test_other_folders_beside_a_job_are_ignored(place: Path, capsys: Output) -> None:
    (place / ".DS_Store").write_bytes(b"Bud1")
    (place / "zeros").write_bytes(b"0")
    (place / "around").symlink_to("around")
    (place / "cut").symlink_to("nowhere")
    (place / "back").symlink_to(place)
    (place / "flat").mkdir()
    (place / "flat" / "log").write_text("a file")
    (place / "round" / "deep").mkdir(parents=True)
    (place / "round" / "log").symlink_to("log")
    (place / "var" / "log").mkdir(parents=True)
    (place / "var" / "log" / "messages").write_text("of another kind")
    assert run(capsys, "ls", str(place)) == run(capsys, "ls", str(place / "digits"))


def test_a_missing_folder_is_rejected(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "file").write_text("a file")
    code, _, err = run(capsys, "ls", str(tmp_path / "file"))
    assert (code, "a file has the name of a required folder" in err) == (5, True)
    assert run(capsys, "ls", str(tmp_path / "none"))[0] == 2


def test_an_address_with_several_logs(place: Path, capsys: Output) -> None:
    CommitLog(open_store(place), "other").start(1)
    code, _, err = run(capsys, "ls", str(place))
    assert code == 2
    assert f"contains the logs of 2 jobs: name one: {place}/digits, {place}/other" in err
