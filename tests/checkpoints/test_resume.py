"""Resume: downloads are verified, and commits that fail verification are skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.checkpoints.entries import FileEntry
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.rank_folders import rank_folder
from spotladder.checkpoints.upload import upload_folder
from spotladder.checkpoints.writer import Writer
from spotladder.errors import CheckpointCorrupt, StoreUnavailable
from tests.checkpoints.builders import a_folder, commit_folder
from tests.checkpoints.memory_store import MemoryStore
from tests.waiting import until


@pytest.fixture
def writer(log: CommitLog, tmp_path: Path) -> Writer:
    """A writer that has committed steps 1, 2 and 3."""
    mine = log.start(1)
    for step in (1, 2, 3):
        commit_folder(mine, step, a_folder(tmp_path / str(step), w=b"weights %d" % step, o=b"optimizer"))
    return mine


def damage(log: CommitLog, step: int, data: bytes | None = b"weights X") -> None:
    key = f"attempts/0001/ckpt-{step:06d}/w"
    log.store.delete([key])
    if data is not None:
        log.store.put_if_absent(key, data)


def test_an_empty_log_has_nothing_to_resume(log: CommitLog, tmp_path: Path) -> None:
    assert log.resume(tmp_path) is None
    log.start(1)
    assert log.resume(tmp_path) is None


def test_the_newest_commit_is_resumed(log: CommitLog, writer: Writer, tmp_path: Path) -> None:
    found = log.resume(tmp_path / "out")
    assert found
    assert (found.step, found.skipped, found.path) == (3, (), tmp_path / "out" / "ckpt-000003")
    assert {path.name: path.read_bytes() for path in found.path.iterdir()} == {"w": b"weights 3", "o": b"optimizer"}


def test_a_long_download_logs_the_bytes_that_it_has_read(
    log: CommitLog, writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole = MemoryStore.get_file

    def slow(store: MemoryStore, key: str, path: Path | None) -> FileEntry:
        if path and path.name == "w":
            path.write_bytes(b"weig")
            until(lambda: "step 3: 13 of 18 bytes are read" in caplog.messages)
        return whole(store, key, path)

    monkeypatch.setattr(MemoryStore, "get_file", slow)
    monkeypatch.setattr("spotladder.checkpoints.resume.PROGRESS_INTERVAL", 0.02)
    caplog.set_level("INFO", "spotladder.checkpoints")
    assert log.resume(tmp_path / "out")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"weights X", r"differs from the committed file \(9 bytes, checksum"),
        (b"weigh", r"\(5 bytes, checksum .* expected 9 bytes"),
        (None, "this file of step 3 is missing"),
    ],
    ids=["changed", "truncated", "missing"],
)
def test_a_corrupt_commit_is_skipped(
    log: CommitLog, writer: Writer, tmp_path: Path, data: bytes | None, says: str
) -> None:
    damage(log, 3, data)
    with pytest.raises(CheckpointCorrupt, match=f"ckpt-000003/w: .*{says}"):
        log.verify(log.commits()[-1])
    found = log.resume(tmp_path / "out")
    assert found
    assert found.step == 2
    ((skipped, why),) = found.skipped
    assert skipped.step == 3
    assert "ckpt-000003/w" in why
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["ckpt-000002"]


def test_commits_that_are_not_to_be_used_are_not_read(log: CommitLog, writer: Writer, tmp_path: Path) -> None:
    damage(log, 2)
    found = log.resume(tmp_path / "out", without={writer.folder(3): "this group made it"})
    assert found
    assert found.step == 1
    assert [commit.step for commit, _ in found.skipped] == [2]


def test_the_log_is_not_read_again_after_the_files(
    log: CommitLog, writer: Writer, store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An outage would repeat the transfer."""
    requests: list[str] = []
    monkeypatch.setattr(store, "arrived", lambda request, _: requests.append(request))
    assert log.resume(tmp_path)
    assert requests[-1] == "get_file"


def test_no_verified_commit_is_an_error(log: CommitLog, writer: Writer, tmp_path: Path) -> None:
    for step in (1, 2, 3):
        damage(log, step)
    with pytest.raises(
        CheckpointCorrupt, match=r"none of the 3 commits verifies .*ckpt-000003/w.* start in a new check"
    ):
        log.resume(tmp_path)


def test_a_commit_that_is_collected_meanwhile_is_not_corrupt(
    log: CommitLog, writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = log.commits
    stale = [read()[:1]]
    writer.collect(1)
    monkeypatch.setattr(log, "commits", lambda: stale.pop() if stale else read())
    found = log.resume(tmp_path)
    assert found
    assert (found.step, found.skipped) == (3, ())


def test_an_outage_is_not_a_corrupt_commit(
    log: CommitLog, writer: Writer, store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(key: str, path: Path | None) -> FileEntry:
        raise StoreUnavailable("503")

    monkeypatch.setattr(store, "get_file", away)
    with pytest.raises(StoreUnavailable):
        log.resume(tmp_path)


def test_each_rank_fetches_its_own_files(log: CommitLog, tmp_path: Path) -> None:
    writer = log.start(1)
    path = writer.folder(1)
    files: tuple[FileEntry, ...] = ()
    for rank in range(3):
        shard = a_folder(tmp_path / str(rank), shard=b"%d" % rank)
        files += upload_folder(log.store, shard, path, rank_folder(rank))
    files += upload_folder(log.store, a_folder(tmp_path / "all", common=b"c"), path)
    commit = writer.commit(1, files)
    log.fetch(commit, tmp_path / "one", ranks=[1])
    assert sorted(str(p.relative_to(tmp_path / "one")) for p in (tmp_path / "one").rglob("*") if p.is_file()) == [
        "common",
        "rank-0001/shard",
    ]
    log.fetch(commit, tmp_path / "every")
    assert len([p for p in (tmp_path / "every").rglob("*") if p.is_file()]) == 4
