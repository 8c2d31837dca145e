"""The upload of a checkpoint's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.checkpoints.entries import FileEntry
from spotladder.checkpoints.store import StoreRefused
from spotladder.checkpoints.upload import upload_folder
from spotladder.errors import InvalidSpec, StoreUnavailable
from tests.checkpoints.builders import a_folder, a_log, commit_folder
from tests.checkpoints.memory_store import MemoryStore


class TornStore(MemoryStore):
    """A store that does not respond to the first uploads (`unanswered`), then truncates the next (`torn`)."""

    def __init__(self, unanswered: int = 0, torn: int = 0, refused: bool = False) -> None:
        super().__init__()
        self.unanswered, self.torn, self.refused = unanswered, torn, refused
        self.calls = 0

    def put_file(self, key: str, path: Path) -> FileEntry:
        self.calls += 1
        if self.refused:
            raise StoreRefused("read-only")
        if self.unanswered:
            self.unanswered -= 1
            raise StoreUnavailable("503")
        entry = super().put_file(key, path)
        if self.torn:
            self.torn -= 1
            self.objects[key] = self.objects[key][:3]
        return entry


def test_an_unanswered_upload_is_retried(tmp_path: Path) -> None:
    store = TornStore(unanswered=2)
    commit = commit_folder(a_log(store).start(1), 1, a_folder(tmp_path / "in", w=b"weights"), metrics={"loss": 1})
    assert [file.name for file in commit.files] == ["w"]
    assert store.calls == 3
    with pytest.raises(StoreUnavailable, match="503"):
        upload_folder(TornStore(unanswered=9), tmp_path / "in", "x")


def test_a_refused_upload_is_not_retried(tmp_path: Path) -> None:
    store = TornStore(refused=True)
    with pytest.raises(StoreRefused, match="read-only"):
        upload_folder(store, a_folder(tmp_path / "in", w=b"weights"), "x")
    assert store.calls == 1


def test_a_truncated_upload_is_never_committed(tmp_path: Path) -> None:
    store = TornStore(torn=1)
    writer = a_log(store).start(1)
    folder = a_folder(tmp_path / "in", w=b"weights")
    with pytest.raises(StoreUnavailable, match=r"ckpt-000001/w: has 3 bytes instead of 7 after its upload"):
        commit_folder(writer, 1, folder)
    assert writer.log.newest() is None
    assert commit_folder(writer, 1, folder).step == 1


def test_nested_and_empty_folders(tmp_path: Path) -> None:
    store = MemoryStore()
    a_folder(tmp_path / "in" / "a" / "b", w=b"1")
    (tmp_path / "in" / "empty").mkdir()
    files = upload_folder(store, tmp_path / "in", "path", "rank-0000")
    assert [file.name for file in files] == ["rank-0000/a/b/w"]
    assert list(store.objects) == ["path/rank-0000/a/b/w"]
    assert upload_folder(store, tmp_path / "in" / "empty", "other") == ()


def test_file_names_with_control_characters_are_rejected(tmp_path: Path) -> None:
    a_folder(tmp_path / "in")
    (tmp_path / "in" / "line\nbreak").write_bytes(b"")
    with pytest.raises(InvalidSpec, match=r"'line\\nbreak': buckets refuse control characters"):
        upload_folder(MemoryStore(), tmp_path / "in", "x")
