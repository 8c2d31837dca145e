"""Sharded state that another number of ranks restores: each file of the commit is read once from its store."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.frameworks import resharding
from tests.frameworks.test_same_weights import LIMIT, free_port, log_of, processes

pytest.importorskip("torch")
pytestmark = pytest.mark.frameworks


def run(folder: Path, attempt: int, size: int) -> None:
    """Run all ranks of an attempt, which succeed."""
    port = free_port()
    ranks = [
        processes("torch").Process(target=resharding.main, args=(folder, attempt, rank, size, port))  # type: ignore[attr-defined]
        for rank in range(size)
    ]
    try:
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join(LIMIT)
        assert [rank.exitcode for rank in ranks] == [0] * size
    finally:
        for rank in ranks:
            rank.kill()
            rank.join()


@pytest.mark.parametrize(("before", "after"), [(4, 2), (2, 4), (2, 2)])
def test_all_ranks_together_read_each_file_of_sharded_state_once(before: int, after: int, tmp_path: Path) -> None:
    run(tmp_path, 1, before)
    run(tmp_path, 2, after)
    commit = log_of(tmp_path).newest()
    assert commit is not None
    downloads = Counter((tmp_path / "downloads-2").read_text().split())
    assert downloads == {f"digits/{commit.path}/{file.name}": 1 for file in commit.files}
