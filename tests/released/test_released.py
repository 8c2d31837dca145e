"""What an earlier version has written is read, and what a later version may add does no harm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from spotladder.api.stored import CapacityRecord, JobRecord
from spotladder.checkpoints import heartbeat
from spotladder.checkpoints.entries import Commit, End, Snapshot, Start, decode, encode
from spotladder.core.contract import Notice
from spotladder.core.model import codec
from spotladder.core.reasons import Reason
from spotladder.records.recorded import decode as decode_record
from tests.api.builders import JOB
from tests.checkpoints.memory_store import MemoryStore
from tests.golden import check
from tests.released.formats import CURRENT, FOLDER, VERSIONS, crd_fields, names, written

earlier = pytest.mark.parametrize("released", VERSIONS)
fields = st.dictionaries(
    st.text("abcdefgh", min_size=3).map("newer_".__add__),
    st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2)),
    min_size=1,
    max_size=2,
)
"""Fields that a newer version may add to a record."""


def lines(released: str, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / released / name).read_text(encoding="utf-8").splitlines()]


def records(value: Any, at: str = "") -> Iterator[dict[str, Any]]:
    """All records inside a value of JSON. `samples` gives the one key of a mapping the name of its field."""
    if isinstance(value, list):
        for inner in value:
            yield from records(inner, at)
    elif isinstance(value, dict) and list(value) != [at]:
        yield value
        for name, inner in value.items():
            yield from records(inner, name)


def contained(part: Any, whole: Any) -> bool:
    """Whether every field of `part` is in `whole`."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(name in whole and contained(part[name], whole[name]) for name in part)
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(contained, part, whole))
    return bool(part == whole)


# --- N-1 --------------------------------------------------------------------------------------------------------------


def test_the_current_version_has_a_fixture_of_what_it_writes() -> None:
    assert version("spotladder") == CURRENT, "a released version keeps its folder: set CURRENT, and write a new one"
    for name, text in written().items():
        check(f"released/{CURRENT}/{name}", text)  # UPDATE_GOLDEN=1 is only for a version that is not released.


@earlier
def test_a_released_state_is_read_completely(released: str) -> None:
    (plain,) = lines(released, "state.json")
    state = codec.load_state(json.dumps(plain))
    assert state.newer == ""
    assert contained(plain, json.loads(codec.dump(state)))


@earlier
def test_a_released_log_is_read_completely(released: str) -> None:
    for plain in lines(released, "log.jsonl"):
        entry = decode(json.dumps(plain).encode(), "log/x", plain["seq"])
        assert contained(plain, json.loads(encode(entry)))
        assert not isinstance(entry, Start | Commit | End) or entry.more == {}


@earlier
def test_released_records_are_read_completely(released: str) -> None:
    for plain in lines(released, "records.jsonl"):
        assert type(decode_record(json.dumps(plain))).__name__ == plain["kind"]


@earlier
def test_names_and_fields_of_a_released_version_are_kept(released: str) -> None:
    """A program, a manifest or a dashboard that was written for that version still works."""
    assert contained(json.loads((FOLDER / released / "names.json").read_text(encoding="utf-8")), names())
    before = (FOLDER / released / "crds.txt").read_text(encoding="utf-8").splitlines()
    assert set(before) <= set(crd_fields())


# --- N+1 --------------------------------------------------------------------------------------------------------------


@earlier
@given(st.data())
def test_fields_of_a_newer_state_are_kept_in_every_record(released: str, data: st.DataObject) -> None:
    (plain,) = lines(released, "state.json")
    before = codec.load_state(json.dumps(plain))
    found = [record for record in records(plain) if record.keys() & {"version", "number", "name", "node", "step"}]
    data.draw(st.sampled_from(found)).update(data.draw(fields))
    state = codec.load_state(json.dumps(plain))
    assert replace(state, newer="") == before
    assert contained(plain, json.loads(codec.dump(state)))


@earlier
@given(st.data())
def test_fields_of_a_newer_state_never_prevent_its_reading(released: str, data: st.DataObject) -> None:
    (plain,) = lines(released, "state.json")
    before = codec.load_state(json.dumps(plain))
    data.draw(st.sampled_from(list(records(plain)))).update(data.draw(fields))
    assert replace(codec.load_state(json.dumps(plain)), newer="") == before


@earlier
def test_a_reason_of_a_newer_version_does_not_prevent_the_reading(released: str) -> None:
    (plain,) = lines(released, "state.json")
    plain["history"][0]["reason"] = plain["reason"] = plain["impeded"]["reason"] = "InventedLater"
    state = codec.load_state(json.dumps(plain))
    assert (state.history[0].reason, state.reason, state.impeded) == (Reason.UNKNOWN, Reason.UNKNOWN, None)


@earlier
@given(st.data())
def test_fields_of_newer_log_entries_are_kept_by_a_compaction(released: str, data: st.DataObject) -> None:
    *entries, snapshot = lines(released, "log.jsonl")
    kept = data.draw(st.sampled_from([snapshot["start"], snapshot["commits"][0], snapshot["end"]]))
    kept.update(data.draw(fields))
    entry = decode(json.dumps(snapshot).encode(), "log/x", snapshot["seq"])
    assert isinstance(entry, Snapshot)
    assert contained(snapshot, json.loads(encode(entry)))
    plain = data.draw(st.sampled_from(entries))
    plain.update(data.draw(fields))
    decode(json.dumps(plain).encode(), "log/x", plain["seq"])


@earlier
@given(st.data())
def test_fields_of_newer_records_are_ignored(released: str, data: st.DataObject) -> None:
    plain = data.draw(st.sampled_from(lines(released, "records.jsonl")))
    before = decode_record(json.dumps(plain))
    data.draw(st.sampled_from(list(records(plain)))).update(data.draw(fields))
    found = decode_record(json.dumps(plain))
    assert found == before


@earlier
@given(st.data())
def test_a_program_ignores_fields_of_a_newer_notice_and_a_controller_those_of_a_heartbeat(
    released: str, data: st.DataObject
) -> None:
    (notice,), (beat,) = lines(released, "notice.json"), lines(released, "heartbeat.json")
    assert Notice.decode(json.dumps(notice | data.draw(fields))) == Notice.decode(json.dumps(notice))
    store = MemoryStore()
    store.objects["attempts/0001/heartbeat.json"] = json.dumps(beat | data.draw(fields)).encode()
    assert heartbeat.read(store, 1, beat["start"]) == heartbeat.StoredHeartbeat(**beat)


@given(st.data())
def test_a_field_that_a_newer_definition_adds_stops_no_job(data: st.DataObject) -> None:
    """The API server adds the defaults of a newer definition to every object."""
    plain = YAML(typ="safe").load(JOB)
    before = JobRecord.of(plain).parsed()
    spec = plain["spec"]
    data.draw(st.sampled_from([spec, spec["tiers"][0], spec["checkpoints"], spec["workload"]])).update(
        data.draw(fields)
    )
    assert JobRecord.of(plain).parsed() == before


def test_a_field_that_a_newer_definition_adds_stops_no_tier() -> None:
    thing = {"metadata": {"name": "pool"}, "spec": {"capacityType": "spot", "newer": {"nodes": 3}}}
    assert CapacityRecord.of(thing).problem == ""
