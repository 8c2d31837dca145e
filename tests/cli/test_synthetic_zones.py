"""Synthetic zones of `spotladder simulate`: what they have in common, and what is assumed of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spotladder.sim.synthetic import SyntheticMarket, generate
from tests.api.builders import JOB, written
from tests.cli.terminal import call

Capture = pytest.CaptureFixture[str]

OPTIONS = ("--hours", "9", "--deadline", "24h", "--seeds", "4", "--policy", "uniform-progress", "-o", "json")
INDEPENDENT = "the synthetic zones lose their capacity independently of each other (--correlation)"


def zones(folder: Path) -> list[str]:
    """Two zones like recorded ones, which differ."""
    given = []
    for seed, name in enumerate("ab"):
        (made,) = generate(SyntheticMarket(), 400, [name], seed)
        data = [int(not flag) for flag in made.ticks(600)]
        file = written(folder, f"{name}.json", json.dumps({"metadata": {"gap_seconds": 600}, "data": data}))
        given += ["--trace", f"{name}=synthetic:{file}"]
    return given


def test_the_correlation_of_synthetic_zones(capsys: Capture, tmp_path: Path) -> None:
    given = zones(tmp_path)
    found: list[dict[str, Any]] = [
        json.loads(call(capsys, "simulate", *given, *OPTIONS, *more).out)
        for more in ((), ("--correlation", "0"), ("--correlation", "0.9"), ("--diurnal", "1"))
    ]
    default, apart, together, daily = found
    assert INDEPENDENT in default["assumptions"]
    assert INDEPENDENT not in apart["assumptions"]
    assert default["policies"] == apart["policies"] != together["policies"]
    assert daily["policies"] != default["policies"]


def test_one_synthetic_zone_assumes_nothing_of_others(capsys: Capture) -> None:
    found = json.loads(call(capsys, "simulate", "--trace", "synthetic", *OPTIONS).out)
    assert INDEPENDENT not in found["assumptions"]


def test_a_job_file_has_correlated_zones_too(capsys: Capture, tmp_path: Path) -> None:
    job = written(tmp_path, "job.yaml", JOB)
    options = ("--job", job, "--trace", "g5-spot-use1a=synthetic", *OPTIONS)
    answer = call(capsys, "simulate", *options, "--correlation", "0.5")
    assert (answer.code, answer.err) == (2, "error: --correlation: goes with two or more synthetic zones\n")
    assert call(capsys, "simulate", *options, "--diurnal", "0.5").code == 0


@pytest.mark.parametrize("option", ["--correlation", "--diurnal"])
def test_recorded_zones_have_no_such_settings(option: str, capsys: Capture, tmp_path: Path) -> None:
    file = written(tmp_path, "a.json", json.dumps({"metadata": {"gap_seconds": 600}, "data": [0] * 100}))
    answer = call(capsys, "simulate", "--trace", file, *OPTIONS, option, "0.5")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == f"error: {option}: goes with --trace synthetic or synthetic:FILE\n"


def test_ticks_of_different_lengths_do_not_correlate(capsys: Capture, tmp_path: Path) -> None:
    file = written(tmp_path, "a.json", json.dumps({"metadata": {"gap_seconds": 300}, "data": [0, 0, 0, 1] * 100}))
    given = ("--trace", "synthetic", "--trace", f"a=synthetic:{file}", *OPTIONS)
    assert call(capsys, "simulate", *given).code == 0
    answer = call(capsys, "simulate", *given, "--correlation", "0.5")
    assert answer.err.startswith("error: --correlation: needs synthetic zones whose ticks have one length")
