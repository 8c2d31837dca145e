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


REFUSED = {
    "-5s": "must not be negative",
    "5": "is not a duration: write 5s",
    "1d": "is not a duration: write 24h",
    "2 weeks": "is not a duration: write 336h",
    "10 min": "is not a duration: write 10m",
    "1 hour, 30 minutes": "is not a duration: write 1h30m",
    "90 s": "is not a duration: write 1m30s",
    "90S": "is not a duration: write 1m30s",
    "1:30": "is not a duration: write 1m30s",
    "1:30:00": "is not a duration: write 1h30m",
    "1,5h": "is not a duration: write 1h30m",
    "": "is not a duration: write one like 90s, 10m, 1h30m or 500ms",
    "s": "is not a duration: write one like 90s, 10m, 1h30m or 500ms",
    "5x": "is not a duration: write one like 90s, 10m, 1h30m or 500ms",
    "∞": "is not a duration: write one like 90s, 10m, 1h30m or 500ms",
    "1s" * 33: "is not a duration: write one like 90s, 10m, 1h30m or 500ms",
    "-soon": "is not a duration: write one like 90s, 10m, 1h30m or 500ms",
    "x90s": "is not a duration: write one like 90s, 10m, 1h30m or 500ms",
    "٣s": "is not a duration: write one like 90s, 10m, 1h30m or 500ms",
}


@pytest.mark.parametrize("text", REFUSED)
def test_an_invalid_duration_is_rejected_with_a_suggestion(text: str) -> None:
    with pytest.raises(ValueError, match=r"^must|^is not") as caught:
        parse_duration(text)
    assert str(caught.value) == REFUSED[text]


WORDS = {
    "336h": "w week weeks",
    "48h": "d day days",
    "2h": "hr hrs hour hours",
    "2m": "min mins minute minutes",
    "2s": "sec secs second seconds",
    "2ms": "msec millisecond milliseconds",
}


@pytest.mark.parametrize(("word", "meant"), [(word, meant) for meant, words in WORDS.items() for word in words.split()])
def test_a_unit_in_words_is_rejected_with_the_correct_spelling(word: str, meant: str) -> None:
    with pytest.raises(ValueError, match=rf"^is not a duration: write {meant}$"):
        parse_duration(f"2 {word}")


def test_no_correction_is_suggested_for_very_long_numbers() -> None:
    for text, said in (("9" * 9 + " s", "write 277777h46m39s"), ("9" * 10 + " s", "write one like")):
        with pytest.raises(ValueError, match=said):
            parse_duration(text)


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


@given(st.text(alphabet="0123456789hmsd.:, ", max_size=40))
def test_a_suggested_duration_is_valid(text: str) -> None:
    try:
        parse_duration(text)
    except ValueError as error:
        suggestion = str(error).rpartition("write ")[2]
        if "one like" not in suggestion and "negative" not in suggestion:
            parse_duration(suggestion)
