"""Compile caches are stored by one machine and put back on others of its kind, within their limits."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from spotladder.checkpoints import compiled
from spotladder.checkpoints.compiled import CompileCaches, settled, superseded
from spotladder.errors import StoreUnavailable
from tests.checkpoints.builders import wait_for_save
from tests.checkpoints.memory_store import MemoryStore

KIND = "0123456789ab"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may need longer."""
    monkeypatch.setattr(compiled, "PUT_BACK_TIMEOUT", 600.0)


class Counting(MemoryStore):
    """Counts the transfers of files."""

    def __init__(self) -> None:
        super().__init__()
        self.transfers: list[str] = []

    def arrived(self, request: str, key: str) -> None:
        if request in {"put_file", "get_file"}:
            self.transfers.append(request)


def write(folder: Path, name: str, content: bytes = b"code", age: float = 100.0) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    changed_at = path.stat().st_mtime - age
    os.utime(path, (changed_at, changed_at))
    return path


def machine(folder: Path, store: MemoryStore, kind: str = KIND) -> CompileCaches:
    """A machine after it has put the newest archive back."""
    caches = CompileCaches(folder, store, kind)
    caches.put_back()
    caches.wait()
    return caches


def save(caches: CompileCaches, start: int = 0) -> None:
    caches.save(start)
    wait_for_save(caches)


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: (folder / file.name).read_bytes() for file in settled(folder)}


def test_another_machine_gets_the_files(tmp_path: Path) -> None:
    store = MemoryStore()
    first = machine(tmp_path / "1", store)
    write(tmp_path / "1", "torch/ab/kernel.so", b"\x7fELF" * 1000)
    write(tmp_path / "1", f"jax/jit_step-{'0' * 120}-cache")
    write(tmp_path / "1", "elsewhere/notes")
    save(first)
    machine(tmp_path / "2", store)
    assert files(tmp_path / "2") == files(tmp_path / "1") != {}
    assert not (tmp_path / "2/elsewhere").exists()


def test_a_folder_is_stored_only_after_a_change_and_replaces_the_archive_before(tmp_path: Path) -> None:
    store = Counting()
    first = machine(tmp_path / "1", store)
    save(first)
    assert store.transfers == []
    write(tmp_path / "1", "torch/a")
    save(first)
    save(first)
    assert store.transfers == ["put_file"]
    second = machine(tmp_path / "2", store)
    save(second, start=1)
    assert store.transfers == ["put_file", "get_file"]
    write(tmp_path / "2", "triton/b")
    save(second, start=1)
    assert list(store.objects) == [f"compiled/00000001-0001-{KIND}.tar"]
    machine(tmp_path / "3", store)
    assert set(files(tmp_path / "3")) == {"torch/a", "triton/b"}


def test_of_several_processes_on_a_machine_one_puts_the_files_back(tmp_path: Path) -> None:
    store = Counting()
    write(tmp_path / "1", "torch/a")
    save(machine(tmp_path / "1", store))
    ranks = [CompileCaches(tmp_path / "2", store, KIND) for _ in range(3)]
    for rank in ranks:
        rank.put_back()
    for rank in ranks:
        rank.wait()
    assert store.transfers.count("get_file") == 1
    assert set(files(tmp_path / "2")) == {"torch/a"}


def test_the_other_processes_do_not_repeat_a_failed_transfer(tmp_path: Path) -> None:
    class Refusing(Counting):
        def arrived(self, request: str, key: str) -> None:
            super().arrived(request, key)
            if request == "get_file":
                raise StoreUnavailable("the bucket is away")

    store = Refusing()
    write(tmp_path / "1", "torch/a")
    save(machine(tmp_path / "1", store))
    for _ in range(3):
        machine(tmp_path / "2", store)
    assert store.transfers.count("get_file") == 1
    write(tmp_path / "2", "torch/b")
    save(machine(tmp_path / "2", store), start=1)
    assert list(store.objects) == [f"compiled/00000001-0001-{KIND}.tar"]


def test_a_file_that_the_machine_has_stays(tmp_path: Path) -> None:
    store = MemoryStore()
    write(tmp_path / "1", "torch/a", b"old")
    write(tmp_path / "1", "torch/b")
    save(machine(tmp_path / "1", store))
    write(tmp_path / "2", "torch/a", b"new")
    machine(tmp_path / "2", store)
    assert files(tmp_path / "2") == {"torch/a": b"new", "torch/b": b"code"}


def test_files_that_a_compiler_may_still_write_are_not_stored(tmp_path: Path) -> None:
    write(tmp_path, "torch/done")
    write(tmp_path, "torch/in progress", age=0.0)
    write(tmp_path, "torch/locks/a.lock", b"")
    (tmp_path / "torch/link").symlink_to("/etc/passwd")
    assert set(files(tmp_path)) == {"torch/done"}


def test_a_file_that_changes_while_it_is_stored_is_stored_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    caches = machine(tmp_path / "1", store)
    path = write(tmp_path / "1", "torch/a")
    before = settled(tmp_path / "1")
    path.write_bytes(b"edoc")
    monkeypatch.setattr(compiled, "settled", lambda _: before)
    save(caches)
    assert store.objects == {}
    assert "torch/a changes" in caplog.text


def test_the_newest_files_stay_within_the_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(8):
        write(tmp_path, f"torch/{number}", bytes(30_000), age=1000 - number)
    monkeypatch.setattr(compiled, "MAX_FILES", 6)
    assert set(files(tmp_path)) == {f"torch/{number}" for number in range(2, 8)}
    monkeypatch.setattr(compiled, "MAX_BYTES", 200_000)
    found = settled(tmp_path)
    assert {file.name for file in found} == {f"torch/{number}" for number in range(4, 8)}
    compiled.pack(tmp_path, found, tmp_path / "archive")
    assert (tmp_path / "archive").stat().st_size <= 200_000
    write(tmp_path, "jax/larger", bytes(200_000))
    assert {file.name for file in settled(tmp_path)} == {f"torch/{number}" for number in range(4, 8)}


def test_an_archive_is_for_one_kind_of_machine(tmp_path: Path) -> None:
    store = MemoryStore()
    write(tmp_path / "1", "torch/a")
    save(machine(tmp_path / "1", store))
    machine(tmp_path / "2", store, kind="f" * 12)
    assert files(tmp_path / "2") == {}


def test_the_newest_archive_of_a_few_kinds_is_kept() -> None:
    keys = [f"compiled/{start:08d}-0001-{kind * 12}.tar" for start, kind in enumerate("abcadd")]
    assert superseded([*keys, "compiled/notes"]) == [keys[0], keys[1], keys[4]]


@pytest.mark.parametrize("request_", ["list", "get_file", "put_file"])
def test_an_error_of_the_store_is_a_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, request_: str
) -> None:
    class Failing(MemoryStore):
        broken = False

        def arrived(self, request: str, key: str) -> None:
            if self.broken and request == request_:
                raise StoreUnavailable("the bucket is away")

    store = Failing()
    write(tmp_path / "1", "torch/a")
    save(machine(tmp_path / "1", store))
    store.broken = True
    with caplog.at_level(logging.WARNING):
        second = machine(tmp_path / "2", store)
        write(tmp_path / "2", "torch/b")
        save(second, start=1)
    assert "compile caches: the bucket is away" in caplog.text
    store.broken = False
    write(tmp_path / "2", "torch/c")
    save(second, start=1)
    machine(tmp_path / "3", store)
    assert {"torch/b", "torch/c"} <= set(files(tmp_path / "3"))
