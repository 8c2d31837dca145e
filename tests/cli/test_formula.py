"""`spotladder plan --formula` without a job, as a user sees it."""

from __future__ import annotations

import json

import pytest

from tests.cli.terminal import call

Capture = pytest.CaptureFixture[str]
NUMBERS = ("--spot-fraction", "0.6", "--max-failures", "5", "--overhead", "0.2")
REFERENCE = ("plan", "--formula", "--hours", "5", *NUMBERS)


def test_the_table_has_the_published_figures(capsys: Capture) -> None:
    answer = call(capsys, *REFERENCE)
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "5 h on demand only; 6 h with 60 % on spot and 5 failures"
    assert lines[3].split() == ["blended", "*", "2.76", "h", "2.24", "h", "44.8", "%", "29"]
    assert "          0.6    117.4 %  2.17×" in lines
    assert "this job takes 20.0 % longer" in lines


def test_a_loss_is_shown_as_one(capsys: Capture) -> None:
    answer = call(capsys, *REFERENCE, "--max-failures", "30")
    assert "−1.2 %" in answer.out


def test_large_numbers_have_all_their_digits(capsys: Capture) -> None:
    arguments = ("--hours", "1000000", "--spot-fraction", "0.6", "--max-failures", "999999", "--overhead", "0.5")
    out = call(capsys, "plan", "--formula", *arguments).out
    assert "1000000 h on demand only; 1499999.5 h with" in out
    assert out.splitlines()[3].endswith("2347826")


def test_infinite_values_are_null(capsys: Capture) -> None:
    found = json.loads(call(capsys, *REFERENCE, "--overhead", "0", "-o", "json").out)
    assert found["breakEvenFailures"] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--spot-fraction", "60"), "error: --spot-fraction: must be between 0 and 1, not 60; for 60 % write 0.6\n"),
        (("--max-failures=-1",), "error: --max-failures: must be between 0 and 1000000, not -1\n"),
    ],
)
def test_contradicting_arguments(capsys: Capture, arguments: tuple[str, ...], said: str) -> None:
    answer = call(capsys, *REFERENCE, *arguments)
    assert (answer.code, answer.out, answer.err) == (2, "", said)


@pytest.mark.parametrize("arguments", [("--formula",), NUMBERS, ("--formula", *NUMBERS[2:])])
def test_without_a_job_all_numbers_are_needed(capsys: Capture, arguments: tuple[str, ...]) -> None:
    answer = call(capsys, "plan", "--hours", "5", *arguments)
    assert answer.code == 2
    assert "without one, --formula needs --overhead, --spot-fraction and --max-failures" in answer.err


def test_the_numbers_are_not_those_of_a_job(capsys: Capture) -> None:
    answer = call(capsys, "plan", "job.yaml", "--formula", "--hours", "5", "--max-failures", "5")
    assert answer.code == 2
    assert "--max-failures is for --formula without a job file" in answer.err


def test_an_option_of_a_job_is_not_ignored(capsys: Capture) -> None:
    answer = call(capsys, *REFERENCE, "--evictions-per-node-hour", "0.1")
    assert (answer.code, answer.out) == (2, "")
    assert "--evictions-per-node-hour is for a job file: name one, or remove --evictions" in answer.err
