"""The stored state: nothing is lost, newer and invalid ones are rejected."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotladder.core.model import (
    Attempt,
    AttemptRecord,
    Ending,
    JobState,
    KnownPods,
    Progress,
    Stage,
    TierRecord,
    Timers,
    codec,
)
from spotladder.core.reasons import Reason
from spotladder.errors import InvalidSpec

times = st.floats(0, 4e9, allow_nan=False)
names = st.text(min_size=1, max_size=8)
attempts = st.builds(
    Attempt,
    st.integers(1, 99),
    names,
    times,
    st.booleans(),
    st.none() | times,
    st.none() | times,
    failures=st.integers(0, 9),
    known=st.builds(KnownPods, st.lists(names, max_size=3).map(tuple)),
    ending=st.builds(Ending, st.none() | st.sampled_from(Reason), drain_by=st.none() | times),
)
records = st.builds(
    AttemptRecord,
    st.integers(1, 99),
    names,
    times,
    st.none() | times,
    times,
    st.sampled_from(Reason),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 9),
)
states = st.builds(
    JobState,
    stage=st.sampled_from(Stage),
    attempt=st.none() | attempts,
    tiers=st.lists(
        st.builds(TierRecord, names, node_seconds=times, exhausted_by=st.none() | st.sampled_from(Reason)), max_size=3
    ).map(tuple),
    history=st.lists(records, max_size=3).map(tuple),
    reason=st.sampled_from(Reason),
    message=st.text(max_size=20),
    timers=st.builds(Timers, st.none() | times),
    progress=st.builds(Progress, st.integers(0, 99), st.integers(0, 99), st.none() | times),
    clock=times,
)


@given(states)
def test_a_dumped_state_is_loaded_unchanged(state: JobState) -> None:
    assert codec.load_state(codec.dump(state)) == state


def test_default_values_are_omitted() -> None:
    plain: dict[str, Any] = json.loads(codec.dump(JobState()))
    assert plain == {"version": 1}
    assert codec.dump(JobState()) == '{"version":1}', "without spaces: the state is stored in an object's status"


@given(states)
def test_a_packed_state_is_loaded_unchanged(state: JobState) -> None:
    assert codec.load_state(codec.pack(state)) == state


def test_a_packed_state_is_less_than_half_the_size_of_its_json() -> None:
    """`kubectl describe` prints the state: twenty attempts took four kilobytes of JSON."""
    history = tuple(
        AttemptRecord(n, "spot-us-east-1a", 1.8e9 + 917.123 * n, 1.8e9 + 917.9 * n, 1.8e9 + 918.4 * (n + 1),
                      Reason.EVICTION_NOTICE, 1, 100 * n, 100 * n + 87)
        for n in range(1, 21)
    )  # fmt: skip
    state = JobState(history=history, message="attempt 20 on spot-us-east-1a")
    assert len(codec.pack(state)) < len(codec.dump(state)) / 2


JSON = r"the saved state is not JSON \(.+\); it is truncated or another file"
PACKED = "the saved state cannot be unpacked; it is truncated or modified"
TOO_LARGE = r"the saved state cannot be unpacked: it has more than 4,194,304 bytes \(no setting .*\); it is modified"
NO_VERSION = "the saved state has no version; it is another file"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", JSON),
        ('{"version":1,"stage":', JSON),
        ("[" * 100_000, JSON),
        ("[]", NO_VERSION),
        ('{"stage":"Idle"}', NO_VERSION),
        ('{"version":"1"}', NO_VERSION),
        ('{"version":2}', "the saved state is of version 2, this program reads up to 1; use the newer one"),
        ('{"version":1,"stage":"Flying"}', "the saved state cannot be read: 'Flying' is not a valid Stage"),
        ('{"version":1,"hangs":"x"}', "the saved state cannot be read: expected int, found 'x'"),
        ('{"version":1,"tiers":[{}]}', "the saved state cannot be read: .*name.*"),
        ("zlib:", PACKED),
        ("zlib:????", r"the saved state cannot be unpacked \(.+\); it is truncated or modified"),
        (codec.pack(JobState())[:-8], PACKED),
        ("zlib:" + base64.b64encode(b"no zlib at all").decode(), "the saved state cannot be unpacked .*"),
        ("zlib:" + base64.b64encode(zlib.compress(b" " * (codec.LARGEST + 1))).decode(), TOO_LARGE),
    ],
)
def test_the_error_names_the_defect_of_the_state_and_its_cause(text: str, message: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        codec.load_state(text)
    assert re.fullmatch(message, str(caught.value)), caught.value


def test_fields_of_a_newer_version_are_written_again_where_their_record_still_exists() -> None:
    live = {"number": 1, "tier": "spot", "created_at": 1.0, "later": "x"}
    plain = {"version": 1, "timers": {"later": 2.0}, "attempt": live, "later": [3]}
    state = codec.load_state(json.dumps(plain))
    assert json.loads(codec.dump(state)) == plain
    assert state.attempt is not None
    after = replace(state, attempt=replace(state.attempt, number=2))
    assert json.loads(codec.dump(after)) == {**plain, "attempt": {"number": 2, "tier": "spot", "created_at": 1.0}}
