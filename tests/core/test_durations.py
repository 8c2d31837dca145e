"""Durations: valid and invalid text, the error messages, and that parsing and formatting agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotladder.core.durations import format_duration, parse_duration

READ = {
    "90s": 90,
    "10m": 600,
    "1h30m": 5400,
    "500ms": 0.5,
    "1.5h": 5400,
    "0s": 0,
    "1h1m1s1ms": 3661.001,
    "2m2m": 240,
    "1s" * 32: 32,
}


@pytest.mark.parametrize("text", READ)
def test_valid_durations_are_parsed(text: str) -> None:
    assert parse_duration(text) == READ[text]


EXAMPLES = "is not a duration: write one like 90s, 10m, 1h30m or 500ms"
REFUSED = ("-5s", "5", "1d", "10 min", "90 s", "90S", "1:30", "1,5h", "", "s", "∞", "1s" * 33, "-soon", "x90s", "٣s")


@pytest.mark.parametrize("text", REFUSED)
def test_an_invalid_duration_is_rejected_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match=r"^must|^is not") as caught:
        parse_duration(text)
    negative = text == "-5s"
    assert str(caught.value) == ("must not be negative" if negative else EXAMPLES)


@given(st.integers(min_value=0, max_value=10**12))
def test_a_formatted_duration_is_parsed_to_the_same_value(milliseconds: int) -> None:
    text = format_duration(milliseconds / 1000)
    assert parse_duration(text) == pytest.approx(milliseconds / 1000)
    assert format_duration(parse_duration(text)) == text
    assert milliseconds == 0 or format_duration(-milliseconds / 1000) == f"-{text}"


@given(st.text(max_size=80))
def test_any_text_is_parsed_or_rejected_with_a_one_line_message(text: str) -> None:
    try:
        said = str(parse_duration(text))
    except ValueError as error:
        said = str(error)
    assert said.isprintable()
