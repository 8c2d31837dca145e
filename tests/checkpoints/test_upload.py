"""The upload of a checkpoint's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.checkpoints.entries import FileEntry
from spotladder.checkpoints.upload import upload_folder
from spotladder.errors import InvalidSpec, StoreUnavailable
from tests.checkpoints.builders import a_folder, a_log, commit_folder
from tests.checkpoints.memory_store import MemoryStore


class TornStore(MemoryStore):
    """A store that truncates the first upload."""

    torn = True

    def put_file(self, key: str, path: Path) -> FileEntry:
        entry = super().put_file(key, path)
        if self.torn:
            self.torn = False
            self.objects[key] = self.objects[key][:3]
        return entry


def test_a_truncated_upload_is_never_committed(tmp_path: Path) -> None:
    store = TornStore()
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
