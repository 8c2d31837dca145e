"""Garbage collection: which commits are deleted, and crashes at any point of it."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotladder.checkpoints import entries, entry_log, garbage
from spotladder.checkpoints.entries import Commit, End, Owner, Start
from spotladder.checkpoints.history import History
from spotladder.checkpoints.log import CommitLog
from spotladder.errors import InvalidSpec, TooLarge
from tests.checkpoints.builders import a_log, committed, uploaded
from tests.checkpoints.memory_store import MemoryStore


def steps(log: CommitLog) -> list[int]:
    return [commit.step for commit in log.commits()]


def folders(store: MemoryStore) -> set[str]:
    return {"/".join(key.split("/")[2:4]) for key in store.objects if "/attempts/" in key}


def test_the_newest_commits_are_kept(log: CommitLog, store: MemoryStore) -> None:
    writer = log.start(1)
    committed(writer, 1, 2, 3, 4, 5)
    collected = writer.collect(2)
    assert [commit.step for commit in collected.dropped] == [1, 2, 3]
    assert (collected.objects, collected.size) == (3, 21)
    assert steps(log) == [4, 5]
    assert folders(store) == {"0001/ckpt-000004", "0001/ckpt-000005"}
    assert writer.collect(2).dropped == ()
    committed(writer, 6)
    assert steps(log) == [4, 5, 6]


def test_the_newest_commit_of_each_attempt_is_kept_until_the_job_ends(log: CommitLog) -> None:
    committed(log.start(1), 1, 2)
    committed(log.start(2), 3, 4)
    writer = log.start(3)
    committed(writer, 5, 6, 7)
    writer.collect(1)
    assert steps(log) == [2, 4, 7]
    assert [commit.step for commit in writer.collect(2, final=True).dropped] == [2]
    assert steps(log) == [4, 7]
    log.end_as_controller("Succeeded")
    log.collect(1)
    assert steps(log) == [7]


def test_a_commit_without_its_files_does_not_displace_a_complete_one(log: CommitLog, store: MemoryStore) -> None:
    writer = log.start(1)
    committed(writer, 1, 2, 3)
    del store.objects[f"digits/{writer.folder(3)}/w"]
    writer.collect(1)
    assert steps(log) == [2, 3]


def test_a_log_of_large_entries_stays_readable(log: CommitLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry has the list of all files of its commit."""
    for module in (entry_log, garbage):
        monkeypatch.setattr(module, "LARGEST_TAIL", 40_000, raising=False)
    writer = log.start(1)
    for step in range(1, 30):
        writer.commit(step, uploaded(writer, step, "w" * 2000))
        writer.collect(2)
        assert steps(log) == [*range(max(1, step - 1), step + 1)]


def test_a_log_of_more_attempts_than_a_snapshot_can_list_stays_readable(
    log: CommitLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "LARGEST_ENTRY", 10_000)
    for module in (entry_log, garbage):
        monkeypatch.setattr(module, "LARGEST_TAIL", 40_000)
    for step in range(1, 30):
        writer = log.start(step)
        writer.commit(step, uploaded(writer, step, "w" * 2000))
        with suppress(TooLarge):
            writer.collect(2)
        assert steps(log)[-2:] == [*range(max(1, step - 1), step + 1)]


def test_keep_0_is_rejected(log: CommitLog) -> None:
    with pytest.raises(InvalidSpec, match="keep 0: at least the newest commit must be kept"):
        log.collect(0)


def test_a_long_log_is_compacted_to_a_snapshot(
    log: CommitLog, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(garbage, "COMPACT_AFTER", 4)
    committed(log.start(1, "spot-a"), 1, 2)
    writer = log.start(2, "spot-b")
    committed(writer, 3, 4)
    before = log.read()
    writer.collect(1)
    after = log.read()
    assert [entry.kind for entry in log.tail()] == ["snapshot"]
    assert [key for key in store.objects if "/log/" in key] == ["digits/log/00000007.json"]
    assert (after.owner, after.start, after.end, after.newest) == (
        before.owner,
        before.start,
        before.end,
        before.newest,
    )
    assert steps(log) == [2, 4]
    again = log.start(2)
    assert again.folder(5) == "attempts/0002.1/ckpt-000005"
    committed(again, 5)
    assert [entry.kind for entry in log.tail(after=3)] == ["snapshot", "start", "commit"]


class StoreCrash(BaseException):
    pass


class CrashingStore(MemoryStore):
    """Raises `StoreCrash` before a given number of changes."""

    def __init__(self) -> None:
        super().__init__()
        self.changes_left = 10**9

    def arrived(self, request: str, key: str) -> None:
        if request in ("put", "delete"):
            self.changes_left -= 1
            if self.changes_left < 0:
                raise StoreCrash


@pytest.mark.parametrize("compact_after", [0, 100])
def test_a_crash_at_any_change_loses_no_commit_and_leaves_no_garbage(
    compact_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(garbage, "COMPACT_AFTER", compact_after)
    for changes in range(100):
        store = CrashingStore()
        log = a_log(store)
        writer = log.start(1)
        committed(writer, 1, 2, 3)
        store.changes_left = changes
        try:
            writer.collect(1)
        except StoreCrash:
            store.changes_left = 10**9
            assert steps(log)[-1] == 3
            for commit in log.commits():
                log.verify(commit)
            again = log.start(1)
            again.collect(1)
            assert steps(log) == [3]
            assert folders(store) == {"0001/ckpt-000003"}
        else:
            assert changes >= 3
            return
    raise AssertionError("the collection never ended")


@given(st.lists(st.integers(1, 4), min_size=1, max_size=12), st.integers(1, 4), st.booleans())
def test_garbage_never_becomes_valid_again(attempts: list[int], keep: int, ended: bool) -> None:
    """Therefore files may be deleted at any time after the decision."""
    history = History()
    found: list[set[int]] = []
    for seq, attempt in enumerate(sorted(attempts)):
        start = Start(seq, f"s{seq}", 0.0, Owner("digits"), attempt)
        commit = Commit(seq, f"c{seq}", 0.0, f"s{seq}", attempt, "", seq, 0, f"p{seq}", ())
        history = history.then([start, commit])
        found.append({old.step for old in history.garbage(keep)})
    if ended:
        found.append({old.step for old in history.then([End(99, "e", 0.0, "", 9, "Failed")]).garbage(keep)})
    for earlier, later in pairwise(found):
        assert earlier <= later
    assert all(len(history.commits) - len(one) >= min(keep, len(history.commits)) for one in found[-1:])
