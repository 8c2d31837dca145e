"""The tests that every store must pass. The test class of a store derives from `StoreContract`.

It has a fixture `address`, the address of an empty folder or bucket prefix, and sets the environment variables for it.
"""

from __future__ import annotations

import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spotladder.checkpoints import garbage
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.progress import progress
from spotladder.checkpoints.store import ObjectMissing, Store
from spotladder.checkpoints.store_check import check_store
from spotladder.errors import CheckpointCorrupt, Fenced
from tests.checkpoints.builders import commit_folder

MIB = 1 << 20
ODD_NAMES = ("a b", "x#y", "m[0].npz", "~t", "p%20q", "ü", "q?r", "a+b&c=d", ".hidden", "COM:1", "(1)'s")


class StoreContract:
    @pytest.fixture
    def store(self, address: str) -> Store:
        return open_store(address)

    def test_the_second_create_of_an_object_fails(self, store: Store) -> None:
        assert store.put_if_absent("log/0", b"first")
        assert not store.put_if_absent("log/0", b"second")
        assert store.get("log/0") == b"first"

    def test_folders_are_those_directly_below(self, store: Store) -> None:
        for key in ("a/log/0", "a/records/x/1", "a/records/y/1", "b/0", "c"):
            store.put_if_absent(key, b"1")
        assert store.folders() == ["a", "b"]
        assert store.folders("a/records/") == ["x", "y"]
        assert store.folders("none/") == []

    def test_one_of_many_concurrent_creates_succeeds(self, store: Store) -> None:
        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(lambda n: store.put_if_absent("log/0", str(n).encode()), range(8)))
        assert won.count(True) == 1
        assert store.get("log/0") == str(won.index(True)).encode()

    def test_a_missing_object(self, store: Store) -> None:
        with pytest.raises(ObjectMissing, match="nothing/here"):
            store.get("nothing/here")
        with pytest.raises(ObjectMissing):
            store.get_file("nothing/here", None)
        assert store.head("nothing/here") is None
        store.put_if_absent("is/here", b"1")
        assert store.get_many(["nothing/here", "is/here"]) == [None, b"1"]
        store.delete(["nothing/here", "is/here", "nor/here"])
        assert store.head("is/here") is None

    def test_listings_are_sorted_and_limited_to_prefix_and_start(self, store: Store) -> None:
        keys = [f"log/{number:08d}.json" for number in range(25)]
        for key in (*reversed(keys), "log2/other", "attempts/0001/a"):
            store.put_if_absent(key, b"xy")
        assert [meta.key for meta in store.list("log/")] == keys
        assert [meta.key for meta in store.list("log/", keys[20])] == keys[21:]
        assert {meta.size for meta in store.list("log/")} == {2}
        assert len(list(store.list(""))) == 27
        assert not list(store.list("nothing/"))

    @pytest.mark.parametrize("size", [0, 1, 8 * MIB, 17 * MIB + 3])
    def test_files_are_downloaded_unchanged(self, store: Store, tmp_path: Path, size: int) -> None:
        data = os.urandom(size)
        (tmp_path / "w").write_bytes(data)
        sent = store.put_file("attempts/0001/w", tmp_path / "w")
        assert (sent.name, sent.size, sent.crc) == ("w", size, f"{zlib.crc32(data):08x}")
        assert store.get_file("attempts/0001/w", tmp_path / "back") == sent
        assert (tmp_path / "back").read_bytes() == data
        assert store.get_file("attempts/0001/w", None) == sent

    def test_a_second_upload_replaces_the_file(self, store: Store, tmp_path: Path) -> None:
        for content in (b"longer than that", b"short"):
            (tmp_path / "w").write_bytes(content)
            store.put_file("w", tmp_path / "w")
        assert store.get("w") == b"short"

    def test_the_upload_of_a_missing_file_raises(self, store: Store, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            store.put_file("w", tmp_path / "w")

    def test_special_characters_in_names_are_kept(self, store: Store, tmp_path: Path) -> None:
        folder = tmp_path / "in"
        for name in ODD_NAMES:
            (folder / "sub").mkdir(parents=True, exist_ok=True)
            (folder / "sub" / name).write_text(name)
        log = CommitLog(store, "digits")
        commit_folder(log.start(1), 1, folder)
        found = log.resume(tmp_path / "out")
        assert found
        assert {path.name: path.read_text() for path in (found.path / "sub").iterdir()} == {n: n for n in ODD_NAMES}

    def test_the_check_deletes_its_object(self, store: Store) -> None:
        check_store(store)
        assert not list(store.list(""))

    def test_a_job_with_two_writers_a_fence_and_a_collection(
        self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(garbage, "COMPACT_AFTER", 0)
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "w").write_bytes(b"weights")
        log = CommitLog(store, "digits", namespace="team-a")
        old = log.start(1, "spot-a")
        for step in (10, 20, 30):
            commit_folder(old, step, tmp_path / "in", total=100)
        assert [commit.step for commit in old.collect(2).dropped] == [10]
        new = log.start(1, "spot-a")
        with pytest.raises(Fenced):
            commit_folder(old, 40, tmp_path / "in")
        commit_folder(new, 40, tmp_path / "in", total=100)
        store.delete([f"digits/{new.folder(40)}/w"])
        found = log.resume(tmp_path / "out")
        assert found
        assert found.step == 30
        assert [commit.step for commit, _ in found.skipped] == [40]
        with pytest.raises(CheckpointCorrupt, match="is missing"):
            log.verify(found.skipped[0][0])
        assert progress(log).step == 40
        log.end_as_controller("Succeeded")
        assert [commit.step for commit in log.collect(1).dropped] == [20]
        assert [commit.step for commit in log.commits()] == [30, 40]
        assert [meta.key for meta in store.list("digits/log/")] == ["digits/log/00000010.json"]
