"""The cache of a machine in the in-job library: a restart in place reads it, another machine reads the store."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from spotladder.checkpoints import cache
from spotladder.errors import CheckpointCorrupt
from spotladder.train import rendezvous
from spotladder.train.commits import Commits
from spotladder.train.pending import Checkpoint
from spotladder.train.session import Job
from tests.train.builders import Ranks, job, log_of, member, train


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a copy takes longer than an upload to the disk."""
    monkeypatch.setattr(cache, "COPY_TIMEOUT", 20.0)
    monkeypatch.setattr(rendezvous, "RETRY_INTERVAL", 0.01)


def meet(barrier: threading.Barrier) -> None:
    barrier.wait(600)


def empty_store(folder: Path) -> None:
    """Remove the files of all commits from the store, so that only a cache has them. The log stays."""
    shutil.rmtree(folder / "digits" / "attempts")


def found_sum(job: Job) -> tuple[int, int] | None:
    with job.resume() as found:
        return (found.step, int((found.path / "sum").read_text())) if found else None


def test_a_restart_in_place_reads_the_cache(tmp_path: Path) -> None:
    store, here = tmp_path / "store", tmp_path / "here"
    train(job(store, cache=here), 25)
    empty_store(store)
    assert found_sum(job(store, cache=here)) == (25, sum(range(26)))
    with pytest.raises(CheckpointCorrupt):
        found_sum(job(store, cache=tmp_path / "another machine"))


def test_without_the_variable_no_file_is_cached(tmp_path: Path) -> None:
    rank = member(tmp_path / "store", cache_size=1 << 30)
    assert rank.log.cache is None
    rank.close()


def test_the_cache_holds_only_the_newest_commit(tmp_path: Path) -> None:
    train(job(tmp_path / "store", cache=tmp_path / "here"), 25)
    assert [path.read_text() for path in (tmp_path / "here").rglob("sum")] == [str(sum(range(26)))]


def test_a_resume_removes_what_was_never_committed(tmp_path: Path) -> None:
    train(job(tmp_path / "store", cache=tmp_path / "here"), 25)
    (own,) = (tmp_path / "here").iterdir()
    (own / "attempts%2F0001%2Fckpt-000026").mkdir()
    found_sum(job(tmp_path / "store", cache=tmp_path / "here"))
    assert [path.name for path in own.iterdir()] == ["attempts%2F0001%2Fckpt-000025"]


def test_a_start_without_a_commit_empties_the_cache(tmp_path: Path) -> None:
    here = member(tmp_path / "store", cache=tmp_path / "here")
    assert here.log.cache is not None
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "w").write_text("weights")
    with here.log.cache.copying(tmp_path / "program", "attempts/0001/ckpt-000001"):
        pass
    here.close()
    assert len(list((tmp_path / "here").glob("*/*"))) == 1
    assert found_sum(job(tmp_path / "store", cache=tmp_path / "here")) is None
    assert list((tmp_path / "here").glob("*/*")) == []


def test_the_program_may_reuse_its_own_folder(tmp_path: Path) -> None:
    """Under Ray Train the checkpoint is a folder of the program, which it overwrites after the report."""
    rank = member(tmp_path / "store", cache=tmp_path / "here")
    folder = tmp_path / "program"
    folder.mkdir()
    commits: Commits = rank.commits
    for step in (1, 2):
        (folder / "w").write_text(f"weights {step}")
        commits.submit(Checkpoint(step, folder, keep_folder=True, path=f"attempts/0001/own/{step}"))
        assert commits.wait(600)
    (folder / "w").write_text("weights X")
    assert [path.read_text() for path in (tmp_path / "here").rglob("w")] == ["weights 2"]
    rank.close()


def test_ranks_on_several_machines_restart_in_place(tmp_path: Path) -> None:
    """Machine 1 is replaced: its rank downloads its files, the others read theirs from their machines."""
    store, machines = tmp_path / "store", [{"cache": tmp_path / f"machine {number}"} for number in range(3)]
    barrier = threading.Barrier(3)
    with Ranks(store, 3, own=machines) as ranks:
        assert (
            ranks.on_all(lambda job: train(job, 25, on_step=lambda _: meet(barrier), flush=True)) == [[10, 20, 25]] * 3
        )
    newest = log_of(store).newest()
    assert newest is not None
    shutil.rmtree(tmp_path / "machine 1")
    for rank in (0, 2):
        (store / "digits" / newest.path / f"rank-{rank:04d}" / "sum").unlink()
    with Ranks(store, 3, own=machines, attempt=1) as ranks:
        assert ranks.on_all(found_sum) == [(25, sum(range(26)))] * 3


def test_all_ranks_use_an_older_commit_when_one_of_them_has_its_files_nowhere(tmp_path: Path) -> None:
    store, machines = tmp_path / "store", [{"cache": tmp_path / f"machine {number}"} for number in range(2)]
    barrier = threading.Barrier(2)
    with Ranks(store, 2, own=machines) as ranks:
        ranks.on_all(lambda job: train(job, 25, on_step=lambda _: meet(barrier), flush=True))
    newest = log_of(store).newest()
    assert newest is not None
    shutil.rmtree(tmp_path / "machine 1")
    shutil.rmtree(store / "digits" / newest.path)
    with Ranks(store, 2, own=machines) as ranks:
        assert ranks.on_all(found_sum) == [(20, sum(range(21)))] * 2
