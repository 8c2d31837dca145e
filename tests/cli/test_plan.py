"""`spotladder plan` as a user sees it, on the pools of a world file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.api.builders import JOB, WORLD, changed, written
from tests.cli.terminal import Answer, call

Capture = pytest.CaptureFixture[str]


def planned(capsys: Capture, folder: Path, *more: str, job: str = JOB, world: str = WORLD) -> Answer:
    files = written(folder, "job.yaml", job), written(folder, "world.yaml", world)
    return call(capsys, "plan", "-f", files[0], "--world", files[1], "--hours", "5", *more)


def test_a_table_with_tiers_choices_and_risks(capsys: Capture, tmp_path: Path) -> None:
    answer = planned(capsys, tmp_path, "--evictions-per-node-hour", "0.5", "--overhead", "0.2")
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "2 workers, 5 h on demand only"
    assert "as written" in answer.out
    assert "blended" in answer.out
    assert "risk: " in answer.out
    rows = [line.split() for line in lines if line.startswith(("spot-a", "on-demand"))]
    assert [row[:3] for row in rows] == [
        ["spot-a", "g5-spot-use1a", "spot"],
        ["on-demand", "g5-od-use1", "on-demand"],
    ]


def test_json_and_yaml_say_the_same(capsys: Capture, tmp_path: Path) -> None:
    options = ("--evictions-per-node-hour", "0.5", "--overhead", "0.2", "-o")
    found = json.loads(planned(capsys, tmp_path, *options, "json").out)
    assert YAML(typ="safe").load(planned(capsys, tmp_path, *options, "yaml").out) == found
    assert [tier["name"] for tier in found["tiers"]] == ["spot-a", "on-demand"]
    assert found["overheadHours"] == 0.2
    own = found["choices"][0]
    assert own["maxFailures"] is None
    assert own["spotFraction"] == pytest.approx(4 / 5)  # 3 failures tolerated, one an hour: the fourth after 4 h
    assert own["expectedFailures"] == pytest.approx(4)
    assert own["totalHours"] == pytest.approx(5.8)
    blended = own["accountings"]["blended"]
    assert blended["costUsd"] == pytest.approx(blended["costOnDemandHours"] * 2 * 1.41, abs=1e-3)


def test_unknown_rates_are_not_estimated(capsys: Capture, tmp_path: Path) -> None:
    trace = changed(WORLD, ("interruptions: {at: [20s, 45s]}", "interruptions: {at: [20s]}"))
    answer = planned(capsys, tmp_path, world=trace)
    assert answer.code == 0
    assert "cannot be estimated" in answer.out
    assert "set --evictions-per-node-hour" in answer.out
    found = json.loads(planned(capsys, tmp_path, "-o", "json", world=trace).out)
    assert (found["choices"], found["cheapest"]) == ([], None)


def test_bad_input(capsys: Capture, tmp_path: Path) -> None:
    job, world = written(tmp_path, "job.yaml", JOB), written(tmp_path, "world.yaml", WORLD)
    for arguments, said in (
        (("-f", tmp_path / "none.yaml", "--hours", "5", "--world", world), "none.yaml"),
        (("-f", job, "--world", world), "--hours"),
        (("-f", job, "--world", world, "--hours", "0"), "--hours"),
        (("-f", job, "--world", world, "--hours", "5", "--overhead", "-1"), "--overhead"),
        (("-f", world, "--world", world, "--hours", "5"), "TieredJob"),
        (("-f", job, "--world", job, "--hours", "5"), "world"),
        (("--hours", "5", "--world", world), "expected exactly one job file"),
        ((job, "-f", job, "--hours", "5", "--world", world), "exactly one"),
    ):
        answer = call(capsys, "plan", *arguments)
        assert (answer.code, answer.out) == (2, ""), arguments
        assert said in answer.err
        assert len(answer.err.splitlines()) == 1
    other = written(tmp_path, "job2.yaml", changed(JOB, ("capacityTier: g5-spot", "capacityTier: g6-spot")))
    answer = call(capsys, "plan", "-f", other, "--world", world, "--hours", "5")
    assert answer.code == 2
    assert "spec.tiers[0].capacityTier" in answer.err


@pytest.mark.parametrize("option", ["--hours", "--overhead", "--evictions-per-node-hour"])
@pytest.mark.parametrize("value", ["inf", "nan", "1000001"])
def test_numbers_out_of_range(option: str, value: str, capsys: Capture, tmp_path: Path) -> None:
    answer = planned(capsys, tmp_path, option, value)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"error: Invalid value for '{option}': ")


def test_too_many_expected_failures(capsys: Capture, tmp_path: Path) -> None:
    job = changed(JOB, ("maxFailures: 3", "maxFailures: -1"))
    answer = planned(capsys, tmp_path, "--evictions-per-node-hour", "1e6", job=job)
    assert (answer.code, answer.out) == (2, "")
    assert (
        answer.err
        == "error: the expected number of failures must be at most 1e+06, got 1e+07: check that the eviction rate is "
        "per hour\n"
    )


def test_help_has_an_example(capsys: Capture) -> None:
    assert "spotladder plan job.yaml --hours 5" in call(capsys, "plan", "--help").out


def test_submit_accepts_a_single_file(capsys: Capture, tmp_path: Path) -> None:
    job, world = written(tmp_path, "job.yaml", JOB), written(tmp_path, "world.yaml", WORLD)
    alone = call(capsys, "plan", job, "--world", world, "--hours", "5")
    assert alone.code == 0
    assert alone.out == call(capsys, "plan", "-f", job, "--world", world, "--hours", "5").out
