"""Encoding of entries, and invalid entries."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotladder.checkpoints import entries as entries_module
from spotladder.checkpoints.entries import (
    Commit,
    Drop,
    End,
    Entry,
    FileEntry,
    Owner,
    Skipped,
    Snapshot,
    Start,
    decode,
    encode,
)
from spotladder.checkpoints.metrics import metrics_of
from spotladder.errors import LogCorrupt, TooLarge

names = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(
    lambda name: ".." not in name and not name.startswith("/")
)
counts = st.integers(0, 1 << 50)
times = st.floats(0, 4e9)
owners = st.builds(Owner, names, names, st.just("") | names)
starts = st.builds(Start, counts, names, times, owners, counts, names, counts, st.booleans(), st.booleans(), counts)
files = st.builds(FileEntry, names, counts, names)
metrics = st.dictionaries(names, st.none() | st.booleans() | counts | names | times)
skipped = st.tuples(st.builds(Skipped, counts, names))
commits = st.builds(
    Commit,
    counts,
    names,
    times,
    names,
    counts,
    names,
    counts,
    counts,
    names,
    st.tuples(files, files),
    metrics,
    skipped,
    times,
)
ends = st.builds(End, counts, names, times, names, counts, names, names)
snapshots = st.builds(
    Snapshot,
    counts,
    names,
    times,
    owners,
    st.none() | starts,
    st.tuples(commits),
    st.tuples(names),
    st.none() | ends,
)
entries: st.SearchStrategy[Entry] = (
    starts | commits | ends | st.builds(Drop, counts, names, times, st.tuples(names)) | snapshots
)


@given(entries)
def test_encoded_entries_decode_to_themselves(entry: Entry) -> None:
    assert decode(encode(entry), "log/x", entry.seq) == entry


@given(entries, st.data())
def test_an_entry_truncated_at_any_byte_is_torn(entry: Entry, data: st.DataObject) -> None:
    complete = encode(entry).rstrip()
    torn = complete[: data.draw(st.integers(0, len(complete) - 1))]
    with pytest.raises(LogCorrupt, match="log/x: torn log entry"):
        decode(torn, "log/x", entry.seq)


GOOD = Commit(3, "n", 1.0, "w", 1, "spot-a", 10, 20, "attempts/0001/ckpt-000010", (FileEntry("w", 1, "00000000"),))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"v": 2}, "written by a newer spotladder .log format 2, this one reads up to 1.: upgrade spotladder"),
        ({"v": "1"}, "not an entry of a commit log"),
        ({"kind": "wish"}, "damaged log entry .unknown kind 'wish'"),
        ({"step": None}, "damaged log entry .expected a non-negative integer, got None"),
        ({"step": -1}, "expected a non-negative integer, got -1"),
        ({"step": True}, "expected a non-negative integer, got True"),
        ({"at": "yesterday"}, "damaged log entry"),
        ({"tier": 3}, "expected a string, got 3"),
        ({"seq": 4}, "contains entry 4: objects of a log must not be copied or renamed"),
        ({"path": "/etc"}, "expected a relative path inside the checkpoint folder, got '/etc'"),
        ({"path": "attempts/../../x"}, "expected a relative path inside the checkpoint folder"),
        (
            {"files": [{"name": "../../.ssh/key", "size": 1, "crc": ""}]},
            "expected a relative path inside the checkpoint folder",
        ),
        ({"files": [{"name": "w", "size": 1}]}, "field 'crc' is missing"),
        ({"files": 3}, "damaged log entry"),
        ({"seconds": -1}, "expected a non-negative number of seconds, got -1"),
        ({"seconds": "2"}, "expected a non-negative number of seconds, got '2'"),
        ({"seconds": 10**400}, "expected a non-negative number of seconds, got 1000"),
        ({"seconds": 1e306}, "expected a non-negative number of seconds, got 1e.306"),
        ({"at": 1_800_000_000_000}, "expected a time in seconds, got 1800000000000"),  # in milliseconds
    ],
)
def test_invalid_entries_are_rejected(change: dict[str, object], says: str) -> None:
    data = json.dumps({**json.loads(encode(GOOD)), **change}).encode()
    with pytest.raises(LogCorrupt, match=f"^s3://b/digits/log/00000003.json: .*{says}.*"):
        decode(data, "s3://b/digits/log/00000003.json", 3)


@pytest.mark.parametrize("other", [[], {}, "", 0, False])
@pytest.mark.parametrize("name", ["start", "end"])
def test_a_snapshot_with_another_value_in_place_of_an_entry_is_rejected(name: str, other: object) -> None:
    raw = json.loads(encode(Snapshot(3, "n", 1.0, Owner("digits"), None, (), (), None)))
    with pytest.raises(LogCorrupt, match="damaged log entry"):
        decode(json.dumps({**raw, name: other}).encode(), "log/x", 3)


@pytest.mark.parametrize("limit", ["LARGEST_ENTRY", "MAX_VALUES"])
def test_an_entry_that_no_reader_accepts_is_not_written(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(entries_module, limit, 1000)
    large = replace(GOOD, files=tuple(FileEntry(f"{number}", 1, "00000000") for number in range(250)))
    with pytest.raises(TooLarge, match=r"log entry 3: .* 1,000 are read .*: commit fewer, larger files"):
        encode(large)


@pytest.mark.parametrize("data", [b"[]", b"3", b"{}", b'{"v": 1}', b'{"kind": "start"}'])
def test_json_that_is_not_an_entry_is_rejected(data: bytes) -> None:
    with pytest.raises(LogCorrupt, match="not an entry of a commit log"):
        decode(data, "log/x", 0)


def test_unknown_fields_are_kept() -> None:
    data = json.dumps({**json.loads(encode(GOOD)), "colour": "blue"}).encode()
    entry = decode(data, "log/x", 3)
    assert entry == replace(GOOD, more={"colour": "blue"})
    assert json.loads(encode(entry)) == json.loads(data)


class Scalar:
    """A fake of the scalars of NumPy, TensorFlow and PyTorch."""

    def __float__(self) -> float:
        return 0.5


def test_metrics_of_any_library_are_converted() -> None:
    found = metrics_of(
        {"a": 1, "b": 0.5, "c": True, "d": None, "e": "x", "f": float("nan"), "g": Scalar(), "h": Path("p")}
    )
    assert found == {"a": 1, "b": 0.5, "c": True, "d": None, "e": "x", "f": None, "g": 0.5, "h": "p"}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Owner("a"), Owner("a"), True),
        (Owner("a"), Owner("b"), False),
        (Owner("a", "x"), Owner("a"), True),
        (Owner("a", "x"), Owner("a", "y"), False),
        (Owner("a", "x", "1"), Owner("a", "x", "2"), False),
        (Owner(), Owner("a", "x", "2"), True),
    ],
)
def test_a_log_has_one_owner(one: Owner, other: Owner, same: bool) -> None:
    assert one.is_same(other) is same
    assert other.is_same(one) is same
