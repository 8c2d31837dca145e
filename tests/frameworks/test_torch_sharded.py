"""Sharded state that another number of ranks restores: each file of the commit is read once from its store."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.frameworks import resharding
from tests.frameworks.test_same_weights import LIMIT, log_of, processes
from tests.ports import free_port

pytest.importorskip("torch")
pytestmark = pytest.mark.frameworks


def run(folder: Path, attempt: int, size: int, full: int = -1) -> list[int]:
    """Run all ranks of an attempt; the disk of rank `full` is full. Returns their exit codes."""
    port = free_port()
    ranks = [
        processes("torch").Process(target=resharding.main, args=(folder, attempt, rank, size, port, full))  # type: ignore[attr-defined]
        for rank in range(size)
    ]
    try:
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join(LIMIT)
        return [rank.exitcode for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.join()


def test_all_ranks_together_read_each_file_of_sharded_state_once(tmp_path: Path) -> None:
    for attempt, size in ((1, 2), (2, 4), (3, 2)):
        before = log_of(tmp_path).newest()
        assert run(tmp_path, attempt, size) == [0] * size
        if before is not None:
            downloads = Counter((tmp_path / f"downloads-{attempt}").read_text().split())
            assert downloads == {f"digits/{before.path}/{file.name}": 1 for file in before.files}


def test_a_damaged_share_or_a_full_disk_of_one_rank_is_an_error_on_all(tmp_path: Path) -> None:
    assert run(tmp_path, 1, 3) == [0] * 3
    assert run(tmp_path, 2, 2, full=1) == [resharding.CORRUPT] * 2
    commit = log_of(tmp_path).newest()
    assert commit is not None
    damaged = next(file for file in commit.files if file.name.startswith("rank-0002/"))
    (tmp_path / "digits" / commit.path / damaged.name).write_bytes(bytes(damaged.size))
    assert run(tmp_path, 3, 2) == [resharding.CORRUPT] * 2, "rank 0 reads the files of rank 2"
