from __future__ import annotations

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


def test_after_a_failed_write_the_file_is_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def full(self: Path, *_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
