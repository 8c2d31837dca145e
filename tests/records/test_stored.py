"""Records in a bucket: bounded in number and size, and read back as what others have written."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.removal import remove
from spotladder.checkpoints.store import folder_of
from spotladder.core.model import JobSpec, Tier
from spotladder.errors import EnvironmentFailure, StoreUnavailable
from spotladder.records import stored, stored_reading
from spotladder.records.model import Began, Noted, encode
from spotladder.records.recorded import Recorded
from spotladder.records.stored import append, of_job
from spotladder.records.stored_reading import newest_uid, read
from tests.checkpoints.memory_store import MemoryStore

SPEC = JobSpec((Tier("spot-a"),))


def lines(*numbers: int) -> list[str]:
    return [encode(Noted(float(number), "x")) for number in numbers]


def times(recorded: Recorded) -> list[float]:
    return [record.at for record in recorded.records]


def test_records_are_read_in_the_order_in_which_they_were_written() -> None:
    store = MemoryStore()
    last = append(store, lines(1, 2), None)
    last = append(store, lines(3), last)
    assert append(store, lines(4), None) == last + 1, "another controller continues"
    assert append(store, lines(5), last) == last + 2, "the first one still writes"
    assert read(store) == Recorded(read(store).records)
    assert times(read(store)) == [1, 2, 3, 4, 5]


def test_a_write_whose_response_was_lost_is_not_repeated() -> None:
    class LosesResponse(MemoryStore):
        def put_if_absent(self, key: str, data: bytes) -> bool:
            super().put_if_absent(key, data)
            raise StoreUnavailable("no response")

    store = MemoryStore()
    last = append(store, lines(1), None)
    losing = LosesResponse()
    losing.objects = store.objects
    with pytest.raises(StoreUnavailable):
        append(losing, lines(2), last)
    assert append(store, lines(2), last) == last + 1
    assert times(read(store)) == [1, 2]


def test_a_stream_keeps_its_beginning_and_the_newest_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "MAX_OBJECTS", 5)
    monkeypatch.setattr(stored, "TRIM_INTERVAL", 10)
    store, last = MemoryStore(), None
    for number in range(1, 21):
        last = append(store, lines(number), last)
        assert len(list(store.list(""))) <= 5 + 10
    found = read(store)
    assert times(found) == [1, 17, 18, 19, 20]
    assert found.gaps == ("15 of 20 parts of the record are missing: the oldest are deleted.",)


def test_a_stream_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(gzip.compress(f"{lines(1)[0]}\n".encode()))
    monkeypatch.setattr(stored, "MAX_STORED", 4 * size)
    monkeypatch.setattr(stored, "TRIM_INTERVAL", 1)
    store, last = MemoryStore(), None
    for number in range(1, 9):
        last = append(store, lines(number), last)
    assert times(read(store)) == [1, 6, 7, 8]


@given(junk=st.binary(max_size=200))
def test_an_object_of_another_writer_is_named_or_counted_and_the_others_are_read(junk: bytes) -> None:
    store = MemoryStore()
    append(store, lines(1), None)
    store.put_if_absent("00000002.jsonl.gz", junk)
    store.put_if_absent("00000003.jsonl.gz", gzip.compress(b"x" + junk.replace(b"\n", b"").replace(b"\r", b"")))
    store.put_if_absent("readme", b"")
    append(store, lines(4), None)
    found = read(store)
    assert times(found) == [1, 4]
    assert (found.damaged, len(found.gaps)) == (1, 1)
    assert "00000002.jsonl.gz cannot be read" in found.gaps[0]


def test_a_large_object_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_reading, "MAX_UNPACKED", 10_000)
    store = MemoryStore()
    append(store, lines(1), None)
    store.put_if_absent("00000002.jsonl.gz", gzip.compress(b"x" * 1_000_000))
    monkeypatch.setattr(stored_reading, "MAX_OBJECT", 2_000)
    store.put_if_absent("00000003.jsonl.gz", b"x" * 3_000)
    found = read(store)
    assert times(found) == [1]
    assert len(found.gaps) == 2


def test_a_folder_without_records_is_reported() -> None:
    with pytest.raises(EnvironmentFailure, match="has no records of the job: the controller writes them"):
        read(of_job(MemoryStore(), "u1"))
    with pytest.raises(EnvironmentFailure, match="has no records: name the folder of a job"):
        newest_uid(MemoryStore())


def test_the_newest_job_of_a_folder_is_that_which_began_last() -> None:
    folder = folder_of(MemoryStore(), "digits")
    for uid, at in (("u1", 5.0), ("u2", 9.0), ("u3", 7.0)):
        append(of_job(folder, uid), [encode(Began(at, "digits", "team-a", SPEC))], None)
    assert newest_uid(folder) == "u2"
    append(of_job(folder, "u0"), [encode(Noted(11.0, "9 records are missing"))], None)
    assert newest_uid(folder) == "u0", "the store did not take its first records"


def test_the_removal_of_a_jobs_checkpoints_removes_its_records() -> None:
    log = CommitLog(MemoryStore(), "digits", uid="u1")
    log.start(1, "spot-a")
    append(of_job(log.store, "u1"), lines(1), None)
    log.store.put_if_absent("records/u1/notes.txt", b"the user's")
    remove(log)
    assert [meta.key for meta in log.store.list("")] == ["records/u1/notes.txt"]
