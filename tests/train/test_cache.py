"""The cache of a machine in the in-job library: a restart in place reads it, another machine reads the store."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from spotladder.checkpoints import cache
from spotladder.train.session import Job
from tests.train.builders import Ranks, newest_of, train

pytestmark = pytest.mark.usefixtures("no_waiting")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a copy takes longer than an upload to the disk."""
    monkeypatch.setattr(cache, "COPY_TIMEOUT", 20.0)


def found_sum(job: Job) -> tuple[int, int] | None:
    with job.resume() as found:
        return (found.step, int((found.path / "sum").read_text())) if found else None


def test_ranks_on_several_machines_restart_in_place(tmp_path: Path) -> None:
    """Machine 1 is replaced: its rank downloads its files, the others read theirs from their machines."""
    store, machines = tmp_path / "store", [{"cache": tmp_path / f"machine {number}"} for number in range(3)]
    barrier = threading.Barrier(3)
    with Ranks(store, 3, own=machines) as ranks:
        assert (
            ranks.on_all(lambda job: train(job, 25, on_step=lambda _: barrier.wait(600), flush=True))
            == [[10, 20, 25]] * 3
        )
    newest = newest_of(store)
    shutil.rmtree(tmp_path / "machine 1")
    for rank in (0, 2):
        (store / "digits" / newest.path / f"rank-{rank:04d}" / "sum").unlink()
    with Ranks(store, 3, own=machines, attempt=1) as ranks:
        assert ranks.on_all(found_sum) == [(25, sum(range(26)))] * 3


def test_all_ranks_use_an_older_commit_when_one_of_them_has_its_files_nowhere(tmp_path: Path) -> None:
    store, machines = tmp_path / "store", [{"cache": tmp_path / f"machine {number}"} for number in range(2)]
    barrier = threading.Barrier(2)
    with Ranks(store, 2, own=machines) as ranks:
        ranks.on_all(lambda job: train(job, 25, on_step=lambda _: barrier.wait(600), flush=True))
    newest = newest_of(store)
    shutil.rmtree(tmp_path / "machine 1")
    shutil.rmtree(store / "digits" / newest.path)
    with Ranks(store, 2, own=machines) as ranks:
        assert ranks.on_all(found_sum) == [(20, sum(range(21)))] * 2
