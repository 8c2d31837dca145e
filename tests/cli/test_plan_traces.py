"""`spotladder plan --trace`: tiers whose capacity is that of recorded traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.api.builders import written
from tests.cli.test_plan import RATE, UNKNOWN_RATE, Capture, planned


def a_trace(folder: Path, name: str, flags: list[int]) -> Path:
    """Ticks of ten minutes; a 1 means preempted."""
    return written(folder, name, "time,preempted\n" + "".join(f"{600 * at},{one}\n" for at, one in enumerate(flags)))


def test_a_tier_with_a_trace_is_simulated_with_its_capacity(capsys: Capture, tmp_path: Path) -> None:
    trace = a_trace(tmp_path, "z.csv", ([0] * 11 + [1]) * 12)
    found = planned(capsys, tmp_path, "--trace", f"spot-a={trace}", world=UNKNOWN_RATE)
    assert (found.code, found.err) == (0, "")
    assert f"observed: spot-a: 24 h of {trace}, 92 % of them with nodes for all workers, which were lost 12 times" in (
        found.out
    )
    assert "assumed: each run begins at a random moment of the traces of spot-a\n" in found.out
    data = json.loads(planned(capsys, tmp_path, "--trace", f"spot-a={trace}", "-o", "json").out)
    assert data["tiers"][0]["evictionsPerNodeHour"] == pytest.approx(0.27, abs=0.01)
    assert data["simulation"]["losses"] > 0
    assert "spot-a: 24 h" in data["simulation"]["observations"][0]
    again = planned(capsys, tmp_path, *RATE, "--trace", f"spot-a={trace}", "-o", "json").out
    assert json.loads(again)["tiers"][0]["evictionsPerNodeHour"] == data["tiers"][0]["evictionsPerNodeHour"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("spot-z={file}", "--trace: the job has no tier 'spot-z' (expected one of spot-a, on-demand): write TIER=FILE"),
        ("{file}", "--trace: the job has no tier 'z' (expected one of spot-a, on-demand): write TIER=FILE"),
        ("on-demand={file}", "--trace: on-demand is on-demand, and its nodes are never lost: name a spot tier"),
        ("spot-z=synthetic", "--trace: the job has no tier 'spot-z'"),
        ("\udcff=synthetic", "--trace: the job has no tier '\\udcff'"),
        ("synthetic", "--trace: expected TIER=FILE or TIER=synthetic, got 'synthetic'"),
        ("spot-a=", "--trace: expected TIER=FILE"),
        ("spot-a=none.csv", "none.csv"),
    ],
)
def test_a_trace_that_cannot_be_used(given: str, said: str, capsys: Capture, tmp_path: Path) -> None:
    trace = a_trace(tmp_path, "z.csv", [0, 0, 1, 0])
    answer = planned(capsys, tmp_path, *RATE, "--trace", given.format(file=trace))
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1


def test_a_synthetic_trace_is_the_same_in_each_plan(capsys: Capture, tmp_path: Path) -> None:
    first, again = (
        planned(capsys, tmp_path, "--trace", "spot-a=synthetic", "-o", "json", world=UNKNOWN_RATE) for _ in range(2)
    )
    assert (first.code, first.err, first.out) == (0, "", again.out)
    assert json.loads(first.out)["tiers"][0]["evictionsPerNodeHour"] > 0
    assert "of synthetic, " in json.loads(first.out)["simulation"]["observations"][0]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["0,0", "86400,0"], "48 h of trace do not show all that can happen in 50 h"),
        (["0,1", "3600,0"], "in 1 of 2 runs capacity is lost for good at a random moment"),
        (["0,1", "15000000,0"], "in 1 of 169 runs capacity is lost for good at a random moment"),
    ],
    ids=["one spell", "ends in an outage", "a long record"],
)
def test_a_trace_that_says_little_is_planned_with_the_reason_for_a_wide_range(
    lines: list[str], said: str, capsys: Capture, tmp_path: Path
) -> None:
    trace = written(tmp_path, "z.csv", "\n".join(["time,available", *lines]))
    answer = planned(capsys, tmp_path, "--trace", f"spot-a={trace}")
    assert (answer.code, answer.err) == (0, "")
    assert said in answer.out


def test_prices_of_zero_are_prices(capsys: Capture, tmp_path: Path) -> None:
    lines = [f"{3600 * at},{at % 4 != 3:d},0" for at in range(48)]
    trace = written(tmp_path, "z.csv", "\n".join(["time,available,price", *lines]))
    answer = planned(capsys, tmp_path, "--trace", f"spot-a={trace}", "-o", "json")
    assert (answer.code, answer.err) == (0, "")
    assert {tier["name"]: tier["costUsd"]["mean"] for tier in json.loads(answer.out)["simulation"]["tiers"]}[
        "spot-a"
    ] == 0
