"""Files of a checkpoint that are written after the block of `commit`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spotladder.train import writing
from spotladder.train.pending import Checkpoint, Pending


def file(path: Path) -> Callable[[], None]:
    def write() -> None:
        path.write_text("state")

    return write


def test_a_commit_collects_the_writes_to_its_folder_and_below(tmp_path: Path) -> None:
    with writing.deferred(tmp_path) as writes:
        assert writing.is_deferred(tmp_path / "part")
        writing.write(tmp_path, file(tmp_path / "a"))
        writing.write(tmp_path / "part", file(tmp_path / "b"))
        writing.write(tmp_path.parent / "elsewhere", file(tmp_path / "c"))
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    pending = Pending(Checkpoint(1, tmp_path, writes=writes), tmp_path, owned=False)
    pending.write()
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "c"}
    assert writes == []
    assert not writing.is_deferred(tmp_path)


@pytest.mark.parametrize("replicated", [False, True])
def test_a_commit_knows_whether_only_the_files_of_rank_0_are_stored(tmp_path: Path, replicated: bool) -> None:
    with writing.deferred(tmp_path, replicated=replicated):
        assert writing.is_replicated(tmp_path / "part") == replicated
    assert not writing.is_replicated(tmp_path)


def test_a_write_that_failed_is_repeated_and_a_finished_one_is_not(tmp_path: Path) -> None:
    done: list[str] = []
    errors = [OSError("disk full")]

    def second() -> None:
        if errors:
            raise errors.pop()
        done.append("second")

    pending = Pending(Checkpoint(1, tmp_path, writes=[lambda: done.append("first"), second]), tmp_path, owned=False)
    with pytest.raises(OSError, match="disk full"):
        pending.write()
    pending.write()
    assert done == ["first", "second"]
