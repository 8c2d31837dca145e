"""`--fresh` deletes the job's own checkpoints, even damaged ones, and no others."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from spotladder.checkpoints.entries import NewerLog
from spotladder.checkpoints.entry_log import ForeignLog
from spotladder.checkpoints.removal import remove
from spotladder.errors import LogCorrupt, StoreUnavailable
from tests.checkpoints.builders import a_log, committed
from tests.checkpoints.memory_store import MemoryStore

START, SECOND = "digits/log/00000000.json", "digits/log/00000001.json"


def keys(store: MemoryStore) -> list[str]:
    return [meta.key for meta in store.list("")]


BESIDE = (
    "attempts/0001/heartbeat.json",
    "compiled/00000007-0001-0123456789ab.tar",
    "outputs/0001/driver.log.gz",
    "outputs/u-1/0001/driver.log.gz",
    "probes/20270115-ab/raced",
)
"""What a job stores beside its log and its commits; the tests of each have these keys."""


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    committed(a_log(store).start(1, "spot-a"), 20, 40)
    for key in BESIDE:
        put(store, f"digits/{key}", b"x")
    return store


def put(store: MemoryStore, key: str, data: bytes) -> None:
    store.delete([key])
    store.put_if_absent(key, data)


def changed(store: MemoryStore, key: str, **fields: object) -> None:
    put(store, key, json.dumps({**json.loads(store.get(key)), **fields}).encode())


DAMAGE: dict[str, Callable[[MemoryStore], None]] = {
    "none": lambda store: None,
    "a torn entry": lambda store: put(store, SECOND, b'{"v": 1, "se'),
    "an empty entry": lambda store: put(store, SECOND, b""),
    "a missing entry": lambda store: store.delete([SECOND]),
    "an invalid entry": lambda store: put(store, SECOND, b"[]"),
    "files without a log": lambda store: store.delete([key for key in keys(store) if "/log/" in key]),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_the_jobs_own_checkpoints_are_deleted(store: MemoryStore, damage: str) -> None:
    DAMAGE[damage](store)
    remove(a_log(store))
    assert keys(store) == []
    assert a_log(store).start(1, "spot-a").history.commits == (), "the job cannot start anew"


def test_other_objects_are_kept(store: MemoryStore) -> None:
    others = [
        "digits/attempts/readme",
        "digits/log/readme",
        "digits/notes.txt",
        "digits/probes/mine.txt",
        "digits2/log/00000000.json",
        "x",
    ]
    for key in others:
        put(store, key, b"precious")
    remove(a_log(store))
    assert keys(store) == others


ANOTHER = {"job": "digits", "namespace": "team-b", "uid": ""}

REFUSED = {
    "another job's": (lambda store: changed(store, START, owner=ANOTHER), ForeignLog),
    "another job's, and torn": (
        lambda store: [changed(store, START, owner=ANOTHER), put(store, SECOND, b"")],  # type: ignore[func-returns-value]
        ForeignLog,
    ),
    "written by a newer spotladder": (lambda store: changed(store, SECOND, v=2), NewerLog),
    "torn, owner unknown": (lambda store: put(store, START, b"{"), LogCorrupt),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_log_that_may_belong_to_another_job_is_kept(store: MemoryStore, name: str) -> None:
    change, error = REFUSED[name]
    change(store)  # type: ignore[no-untyped-call]
    before = {key: store.get(key) for key in keys(store)}
    with pytest.raises(error):
        remove(a_log(store))
    assert {key: store.get(key) for key in keys(store)} == before


def test_a_log_without_a_readable_owner_is_deleted_only_with_ours(store: MemoryStore) -> None:
    put(store, START, b"{")
    with pytest.raises(LogCorrupt, match=r"00000000\.json: torn .*; no entry names .* delete memory:\S+ yourself"):
        remove(a_log(store))
    remove(a_log(store), ours=True)
    assert keys(store) == []


def test_ours_does_not_override_a_readable_owner(store: MemoryStore) -> None:
    changed(store, START, owner=ANOTHER)
    with pytest.raises(ForeignLog):
        remove(a_log(store), ours=True)


class LimitedStore(MemoryStore):
    """A store that becomes unavailable after `left` deletions."""

    left = 0

    def arrived(self, request: str, key: str) -> None:
        if request == "delete":
            if self.left == 0:
                raise StoreUnavailable("the bucket does not answer")
            self.left -= 1


@pytest.mark.parametrize("cut", range(6))
def test_after_an_interrupted_removal_the_job_can_resume_or_be_removed(cut: int) -> None:
    store = LimitedStore()
    store.left = 100
    committed(a_log(store).start(1, "spot-a"), 20, 40)
    assert len(keys(store)) == 5
    store.left = cut
    try:
        remove(a_log(store))
    except StoreUnavailable:
        a_log(store).read()  # The remaining log is readable.
        newest = a_log(store).newest()
        assert newest is None or store.head(f"digits/{newest.path}/w"), "the files of the newest commit are missing"
    store.left = 100
    remove(a_log(store))
    assert keys(store) == []
