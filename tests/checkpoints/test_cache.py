"""The cache on the machine saves downloads and has no other effect, even if its files are damaged."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from spotladder.checkpoints import cache as module
from spotladder.checkpoints.cache import BLOCK, NodeCache
from spotladder.checkpoints.cache_links import PREFIX, READ_ONLY
from spotladder.checkpoints.entries import FileEntry
from spotladder.checkpoints.rank_folders import rank_folder
from spotladder.checkpoints.upload import upload_folder
from spotladder.errors import CheckpointCorrupt, StoreUnavailable
from tests.checkpoints.builders import a_folder, a_log
from tests.checkpoints.cached_machine import DAMAGE, CachedMachine, blocks, overwrite


@pytest.fixture(autouse=True)
def long_copy_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a copy takes longer than an upload into memory."""
    monkeypatch.setattr(module, "COPY_TIMEOUT", 20.0)


@pytest.fixture
def machine(tmp_path: Path) -> CachedMachine:
    return CachedMachine(tmp_path)


def test_a_restart_on_the_same_machine_downloads_nothing(machine: CachedMachine) -> None:
    machine.commit(1, w=b"weights 1", o=b"optimizer")
    machine.commit(2, w=b"weights 2", o=b"optimizer", empty=b"")
    assert machine.resume() == (2, {"w": b"weights 2", "o": b"optimizer", "empty": b""})
    assert machine.store.downloads == []


def test_another_machine_downloads_everything(machine: CachedMachine) -> None:
    machine.commit(1, w=b"weights 1", o=b"optimizer")
    shutil.rmtree(machine.folder / "cache")
    assert machine.resume() == (1, {"w": b"weights 1", "o": b"optimizer"})
    assert sorted(machine.store.downloads) == ["o", "w"]


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_downloaded_and_only_this_one(
    machine: CachedMachine, damage: Callable[[Path], object]
) -> None:
    machine.commit(1, w=b"weights 1", o=b"optimizer")
    damage(machine.file("w"))
    assert machine.resume() == (1, {"w": b"weights 1", "o": b"optimizer"})
    assert machine.store.downloads == ["w"]


def test_only_the_log_determines_the_newest_commit(machine: CachedMachine) -> None:
    machine.commit(1, w=b"weights 1")
    machine.upload(2, w=b"never committed")
    assert set(machine.cached()) == {"ckpt-000001/w", "ckpt-000002/w"}
    assert machine.resume() == (1, {"w": b"weights 1"})

    elsewhere = a_log(machine.store).start(2)
    files = upload_folder(machine.log.store, a_folder(machine.folder / "other", w=b"weights 3"), elsewhere.folder(3))
    elsewhere.commit(3, files)
    assert machine.resume() == (3, {"w": b"weights 3"})
    assert machine.store.downloads == ["w"]


def test_a_new_run_with_the_same_name_does_not_get_the_files_of_the_old_one(tmp_path: Path) -> None:
    old = CachedMachine(tmp_path)
    old.commit(1, w=b"weights A")
    new = CachedMachine(tmp_path)
    files = upload_folder(new.log.store, a_folder(tmp_path / "new", w=b"weights B"), new.writer.folder(1))
    new.writer.commit(1, files)
    assert new.resume() == (1, {"w": b"weights B"})


# --- links instead of copies ------------------------------------------------------------------------------------------


def test_every_file_of_a_job_with_a_cache_is_read_only(machine: CachedMachine) -> None:
    """A program that cannot write to its files gets the error at its first resume, not only at the first restart in
    place."""
    machine.commit(1, w=b"weights 1")
    machine.file("w").unlink()
    found = machine.log.resume(machine.folder / "out")
    assert found
    assert (found.path / "w").stat().st_mode & 0o777 == READ_ONLY


def test_a_program_that_writes_to_its_file_does_not_harm_the_next_resume(
    machine: CachedMachine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.commit(1, w=b"weights 1", o=b"optimizer")
    found = machine.log.resume(machine.folder / "out")
    assert found
    overwrite(found.path / "w", b"scribbles")
    machine.log.release()
    assert machine.resume() == (1, {"w": b"weights 1", "o": b"optimizer"})
    assert machine.store.downloads == ["w"]
    assert [message for message in caplog.messages if "differs from the committed file" in message] == caplog.messages
    assert len(caplog.messages) == 1


def test_a_program_that_replaces_its_file_does_not_change_the_cache(machine: CachedMachine) -> None:
    machine.commit(1, w=b"weights 1")
    found = machine.log.resume(machine.folder / "out")
    assert found
    new = machine.folder / "new"
    new.write_bytes(b"replaced")
    new.replace(found.path / "w")
    assert machine.resume() == (1, {"w": b"weights 1"})
    assert machine.store.downloads == []


def test_a_second_process_gets_a_copy(machine: CachedMachine) -> None:
    """Otherwise one could change bytes that the other has verified."""
    machine.commit(1, w=b"weights 1")
    other = a_log(machine.store)
    other.cache = NodeCache(machine.folder / "cache", other.uri)
    first, second = (log.resume(machine.folder / name) for log, name in ((machine.log, "1"), (other, "2")))
    assert first
    assert second
    overwrite(first.path / "w", b"scribbles")
    assert (second.path / "w").read_bytes() == b"weights 1"
    assert machine.store.downloads == []


def test_links_of_a_dead_process_are_removed_and_those_of_a_live_one_stay(machine: CachedMachine) -> None:
    commit = machine.commit(1, w=b"weights 1")
    machine.log.fetch(commit, machine.folder / "out")
    (held,) = (machine.folder / "cache").glob(f"*/{PREFIX}*")
    left = held.with_name(f"{PREFIX}dead")
    left.mkdir()
    os.link(machine.file("w"), left / "w")
    NodeCache(machine.folder / "cache", machine.log.uri).keep(commit.path)
    assert (held.exists(), left.exists()) == (True, False)


def test_held_files_count_once_and_until_they_are_released(tmp_path: Path) -> None:
    machine = CachedMachine(tmp_path, blocks(3))  # Room for the folder of the links, and two files.
    commit = machine.commit(1, w=b"1" * BLOCK)
    machine.log.fetch(commit, tmp_path / "out")
    machine.commit(2, w=b"2" * BLOCK)
    assert machine.cached()["ckpt-000002/w"] == b"2" * BLOCK
    machine.commit(3, w=b"3" * BLOCK)
    assert (tmp_path / "out" / "w").read_bytes() == b"1" * BLOCK
    assert sum(path.stat().st_size for path in (tmp_path / "cache").rglob("*") if path.is_file()) <= 2 * BLOCK


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOSPC], ids=errno.errorcode.get)
def test_without_hard_links_the_program_gets_a_copy(
    machine: CachedMachine, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    machine.commit(1, w=b"weights 1")
    monkeypatch.setattr(os, "link", refused)
    found = machine.log.resume(machine.folder / "out")
    assert found
    assert not (found.path / "w").samefile(machine.file("w"))
    assert (found.path / "w").read_bytes() == b"weights 1"
    assert machine.store.downloads == []


def test_verification_reads_the_store(machine: CachedMachine) -> None:
    commit = machine.commit(1, w=b"weights 1")
    machine.log.store.delete([f"{commit.path}/w"])
    with pytest.raises(CheckpointCorrupt, match="missing"):
        machine.log.verify(commit)


def test_each_rank_finds_the_files_that_it_wrote(machine: CachedMachine) -> None:
    path = machine.writer.folder(1)
    files: tuple[FileEntry, ...] = ()
    for rank in (0, 1):
        shard = a_folder(machine.folder / str(rank), shard=b"%d" % rank)
        if rank == 1:
            with machine.cache.copying(shard, path, rank_folder(rank)):
                files += upload_folder(machine.log.store, shard, path, rank_folder(rank))
        else:
            files += upload_folder(machine.log.store, shard, path, rank_folder(rank))
    commit = machine.writer.commit(1, files)
    machine.log.fetch(commit, machine.folder / "out")
    assert machine.store.downloads == ["shard"]
    assert [(machine.folder / "out" / rank_folder(rank) / "shard").read_bytes() for rank in (0, 1)] == [b"0", b"1"]


# --- bounds ---------------------------------------------------------------------------------------------------------


def test_of_two_ranks_that_copy_at_once_neither_exceeds_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = NodeCache(tmp_path / "cache", "memory:///", blocks(3))  # Room for the folders of both ranks, and one file.
    program = a_folder(tmp_path / "program", w=b"w" * BLOCK)
    both = threading.Barrier(2)
    fits = cache._fits

    def after_both(path: str) -> bool:
        """Both ranks have reserved before either checks."""
        both.wait(600)
        answer = fits(path)
        both.wait(600)
        return answer

    monkeypatch.setattr(cache, "_fits", after_both)
    with cache.copying(program, "a", "rank-0000"), cache.copying(program, "a", "rank-0001"):
        pass
    assert sum(path.stat().st_size for path in (tmp_path / "cache").rglob("w")) <= BLOCK


# --- faults of the cache do not reach the program ---------------------------------------------------------------------


def test_a_slow_copy_does_not_delay_the_commit(machine: CachedMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    copies, committed = threading.Event(), threading.Event()
    put_file = machine.store.put_file

    def stuck(*_: object) -> None:
        copies.set()
        committed.wait(600)

    def put_meanwhile(key: str, path: Path) -> FileEntry:
        assert copies.wait(600)
        return put_file(key, path)

    monkeypatch.setattr(module, "COPY_TIMEOUT", 0.0)
    monkeypatch.setattr(module, "_copy", stuck)
    monkeypatch.setattr(machine.store, "put_file", put_meanwhile)
    machine.commit(1, w=b"weights 1")
    committed.set()
    for thread in threading.enumerate():
        if thread.name == "spotladder-cache":
            thread.join(600)
    assert machine.cached() == {}
    assert machine.resume() == (1, {"w": b"weights 1"})


def test_a_full_disk_is_reported_once_and_has_no_other_effect(
    machine: CachedMachine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_copy", full)
    machine.commit(1, w=b"weights 1")
    machine.commit(2, w=b"weights 2")
    assert [message.rpartition(": ")[2] for message in caplog.messages] == ["[Errno 28] No space left on device"]
    assert machine.cached() == {}
    assert machine.resume() == (2, {"w": b"weights 2"})


def test_a_cache_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    machine = CachedMachine(tmp_path)
    (tmp_path / "cache").write_text("a file")
    machine.commit(1, w=b"weights 1")
    assert machine.resume() == (1, {"w": b"weights 1"})


def test_the_error_of_the_upload_ends_the_copy(machine: CachedMachine) -> None:
    with pytest.raises(StoreUnavailable), machine.cache.copying(a_folder(machine.folder / "p", w=b"w"), "a"):
        raise StoreUnavailable("503")
