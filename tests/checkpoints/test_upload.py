"""The upload of a checkpoint's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.checkpoints.upload import upload_folder
from spotladder.errors import InvalidSpec
from tests.checkpoints.builders import a_folder
from tests.checkpoints.memory_store import MemoryStore


def test_nested_and_empty_folders(tmp_path: Path) -> None:
    store = MemoryStore()
    a_folder(tmp_path / "in" / "a" / "b", w=b"1")
    (tmp_path / "in" / "empty").mkdir()
    files = upload_folder(store, tmp_path / "in", "path", "rank-0000")
    assert [file.name for file in files] == ["rank-0000/a/b/w"]
    assert list(store.objects) == ["path/rank-0000/a/b/w"]
    assert upload_folder(store, tmp_path / "in" / "empty", "other") == ()


def test_a_link_to_a_folder_beside_it_is_uploaded_and_one_to_a_folder_above_is_not(tmp_path: Path) -> None:
    """Of a folder and a link to it, a program may read either."""
    a_folder(tmp_path / "in" / "step-1", w=b"1")
    for name, target in (("latest", "step-1"), ("next", "step-1"), ("step-1/up", "..")):
        (tmp_path / "in" / name).symlink_to(target)
    files = upload_folder(MemoryStore(), tmp_path / "in", "path")
    assert [file.name for file in files] == ["latest/w", "next/w", "step-1/w"]


def test_file_names_with_control_characters_are_rejected(tmp_path: Path) -> None:
    a_folder(tmp_path / "in")
    (tmp_path / "in" / "line\nbreak").write_bytes(b"")
    with pytest.raises(InvalidSpec, match=r"'line\\nbreak': buckets refuse control characters"):
        upload_folder(MemoryStore(), tmp_path / "in", "x")
