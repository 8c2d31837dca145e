from __future__ import annotations

import os
from pathlib import Path

import pytest

from spotladder.atomic import write_text


def test_the_text_is_replaced_and_the_draft_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    for text in ("old", "größer"):
        write_text(path, text)
    assert path.read_text(encoding="utf-8") == "größer"
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_has_the_given_permissions(tmp_path: Path) -> None:
    write_text(tmp_path / "kubeconfig", "x", mode=0o600)
    assert (tmp_path / "kubeconfig").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("durable", [False, True])
def test_after_a_failed_write_the_file_is_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def full(self: Path, *_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_text(path, "new", durable=durable)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_durable_text_is_on_the_disk_before_it_replaces_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, flushed = tmp_path / "file", []
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", lambda file: flushed.append((os.fstat(file).st_size, path.read_text())))
    write_text(path, "newer", durable=True)
    assert flushed == [(5, "old")]
    assert path.read_text() == "newer"
