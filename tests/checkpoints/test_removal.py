"""`--fresh`: a job's own checkpoints go, whatever state they are in; nobody else's do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

import pytest

from spotladder.checkpoints.entries import NewerLog
from spotladder.checkpoints.entry_log import ForeignLog
from spotladder.checkpoints.memory import MemoryStore
from spotladder.checkpoints.removal import remove
from spotladder.errors import LogCorrupt, StoreUnavailable
from tests.checkpoints.builders import a_log, committed

START, SECOND = "digits/log/00000000.json", "digits/log/00000001.json"


def keys(store: MemoryStore) -> list[str]:
    return [meta.key for meta in store.list("")]


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    committed(a_log(store).start(1, "spot-a"), 20, 40)
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
    "an entry that is missing": lambda store: store.delete([SECOND]),
    "an entry that is no entry": lambda store: put(store, SECOND, b"[]"),
    "files without a log": lambda store: store.delete([key for key in keys(store) if "/log/" in key]),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_the_jobs_own_goes(store: MemoryStore, damage: str) -> None:
    DAMAGE[damage](store)
    remove(a_log(store))
    assert keys(store) == []
    assert a_log(store).start(1, "spot-a").history.commits == (), "and the job can begin anew"


def test_nothing_else_goes(store: MemoryStore) -> None:
    others = ["digits/notes.txt", "digits/attempts/readme", "digits/log/readme", "digits2/log/00000000.json", "x"]
    for key in others:
        put(store, key, b"precious")
    remove(a_log(store))
    assert keys(store) == sorted(others)


ANOTHER = {"job": "digits", "namespace": "team-b", "uid": ""}

REFUSED = {
    "another job's": (lambda store: changed(store, START, owner=ANOTHER), ForeignLog),
    "another job's, and torn": (
        lambda store: (changed(store, START, owner=ANOTHER), put(store, SECOND, b"")),
        ForeignLog,
    ),
    "a newer spotladder's": (lambda store: changed(store, SECOND, v=2), NewerLog),
    "torn, and nobody knows whose": (lambda store: put(store, START, b"{"), LogCorrupt),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_be_anothers_stays(store: MemoryStore, name: str) -> None:
    change, error = REFUSED[name]
    change(store)  # type: ignore[no-untyped-call]
    before = {key: store.get(key) for key in keys(store)}
    with pytest.raises(error):
        remove(a_log(store))
    assert {key: store.get(key) for key in keys(store)} == before


def test_a_log_that_does_not_say_whose_it_is_goes_for_one_who_knows(store: MemoryStore) -> None:
    put(store, START, b"{")
    with pytest.raises(LogCorrupt, match=r"00000000\.json: torn .*; no entry names .* delete memory:\S+ yourself"):
        remove(a_log(store))
    remove(a_log(store), ours=True)
    assert keys(store) == []


def test_who_believes_to_know_is_not_believed_against_the_log(store: MemoryStore) -> None:
    changed(store, START, owner=ANOTHER)
    with pytest.raises(ForeignLog):
        remove(a_log(store), ours=True)


class Stopping(MemoryStore):
    """Goes away after so many deletions."""

    left = 0

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            if self.left == 0:
                raise StoreUnavailable("the bucket is away")
            self.left -= 1
            super().delete([key])


@pytest.mark.parametrize("cut", range(6))
def test_a_removal_that_is_cut_short_can_be_gone_on_from_or_finished(cut: int) -> None:
    store = Stopping()
    store.left = 100
    committed(a_log(store).start(1, "spot-a"), 20, 40)
    assert len(keys(store)) == 5
    store.left = cut
    try:
        remove(a_log(store))
    except StoreUnavailable:
        a_log(store).read()  # older, and whole
        newest = a_log(store).newest()
        assert newest is None or store.head(f"digits/{newest.path}/w"), "what it offers to resume from is there"
    store.left = 100
    remove(a_log(store))
    assert keys(store) == []
