"""Records are decoded as they were encoded, whatever they have."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spotladder.core.model import JobState, Observation, Progress
from spotladder.records.model import Beat, Decided, Noted, Record, encode
from spotladder.records.recorded import KINDS, Recorded, decode
from tests.searching import examples

st.register_type_strategy(float, st.floats(allow_nan=False))


@pytest.mark.parametrize("kind", KINDS)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=examples(20))
@given(data=st.data())
def test_every_record_is_decoded_unchanged(kind: str, data: st.DataObject) -> None:
    record = data.draw(st.from_type(KINDS[kind]))
    line = encode(record)
    assert line.isascii()
    assert "\n" not in line
    assert decode(line) == record


def test_a_nan_loss_is_encoded_as_strict_json() -> None:
    line = encode(Beat(1.0, 1, 5, metrics={"loss": math.nan}))
    assert '"nan"' in line
    back = decode(line)
    assert isinstance(back, Beat)
    assert math.isnan(back.metrics["loss"])


def test_a_text_is_cleaned_wherever_a_record_has_it() -> None:
    records: list[Record] = [
        Noted(1.0, "key x"),
        Decided(1.0, Observation(1, unavailable={"a": "key x"}), JobState(message="key x")),
    ]
    for record in records:
        line = encode(record, lambda text: text.replace("key x", "[redacted]"))
        assert "key x" not in line
        assert decode(line) is not None


def test_the_state_of_a_stream_is_that_after_its_last_decision() -> None:
    before, after = JobState(clock=1.0), JobState(clock=2.0, progress=Progress(5))
    seen = Observation(1)
    assert Recorded().state == JobState()
    assert Recorded((Decided(1.0, seen, before), Noted(2.0, "x"))).state == before
    assert Recorded((Decided(1.0, seen, before, after), Noted(2.0, "x"))).state == after
