"""The prices of `spotladder simulate`: those of the traces, of the options and of the world file, or assumed ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.api.builders import JOB, written
from tests.cli.terminal import Answer, call
from tests.cli.test_simulate import window

Capture = pytest.CaptureFixture[str]

ZONE = json.dumps(
    {
        "metadata": {"gap_seconds": 600, "zone": "a", "price_info": {"price": 0.2, "on_demand_price": 0.9}},
        "data": [0] * 200,
    }
)
PRICED = "time,available,price\n" + "".join(f"{600 * tick},1,0.25\n" for tick in range(200))
ASSUMED = (
    "assumed: the price is $1 per node-hour, because no zone has one (--spot-price)\n"
    "assumed: the on-demand price is $3 per node-hour, because no zone has one (--on-demand-price)\n"
)


def simulated(capsys: Capture, folder: Path, *more: str, zones: dict[str, str], prefix: str = "") -> Answer:
    given = [
        word for name, text in zones.items() for word in ("--trace", f"{name}={prefix}{written(folder, name, text)}")
    ]
    return call(capsys, "simulate", *given, "--hours", "5", "--deadline", "10h", *more)


def test_prices_that_are_assumed_are_named(capsys: Capture, tmp_path: Path) -> None:
    zones, page = {"a.json": window((0, 200))}, tmp_path / "page.html"
    answer = simulated(capsys, tmp_path, "--report", str(page), zones=zones)
    assert ASSUMED in answer.out
    assert page.read_text().count("assumed: the ") == 2
    assert len(json.loads(simulated(capsys, tmp_path, "-o", "json", zones=zones).out)["assumptions"]) == 2
    given = simulated(capsys, tmp_path, "--spot-price", "0", "--on-demand-price", "2", zones=zones)
    assert "assumed" not in given.out
    assert "on demand without interruptions: $10.00" in given.out


def test_a_trace_with_prices_has_no_on_demand_price(capsys: Capture, tmp_path: Path) -> None:
    answer = simulated(capsys, tmp_path, zones={"a.csv": PRICED})
    assert ASSUMED.splitlines()[0] not in answer.out
    assert ASSUMED.splitlines()[1] in answer.out


@pytest.mark.parametrize(
    ("other", "given", "said"),
    [
        (window((0, 200)), (), "--spot-price: zone b.json has no price, but zone a.json has one: specify --spot-price"),
        (
            window((0, 200)),
            ("--spot-price", "0.3"),
            "--on-demand-price: zone b.json has no on-demand price, but zone a.json has one: specify --on-demand-price",
        ),
    ],
)
def test_zones_with_and_without_prices_are_not_compared(
    other: str, given: tuple[str, ...], said: str, capsys: Capture, tmp_path: Path
) -> None:
    zones = {"a.json": ZONE, "b.json": other}
    answer = simulated(capsys, tmp_path, *given, zones=zones)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == f"error: {said} for the zones without\n"
    answer = simulated(capsys, tmp_path, "--spot-price", "0.3", "--on-demand-price", "0.8", zones=zones)
    assert (answer.code, answer.err) == (0, "")
    assert "on demand without interruptions: $4.50" in answer.out


def test_a_zone_like_a_recorded_one_has_its_mean_price(capsys: Capture, tmp_path: Path) -> None:
    answer = simulated(capsys, tmp_path, "-o", "json", zones={"a.json": ZONE}, prefix="synthetic:")
    found = json.loads(answer.out)
    (run,) = found["policies"][0]["runs"]
    hours = run["nodeHours"]
    assert found["assumptions"] == []
    assert run["costUsd"] == pytest.approx(0.2 * hours["a.json"] + 0.9 * hours["on-demand"], abs=1e-3)


def test_the_on_demand_price_of_a_job_is_that_of_its_trace(capsys: Capture, tmp_path: Path) -> None:
    options = ("--job", str(written(tmp_path, "job.yaml", JOB)), "--hours", "5", "--deadline", "10h")
    trace = written(tmp_path, "a.json", ZONE)
    answer = call(capsys, "simulate", *options, "--trace", f"g5-spot-use1a={trace}")
    assert "on demand without interruptions: $9.00" in answer.out, "two nodes"
    assert "assumed" not in answer.out
    answer = call(capsys, "simulate", *options, "--trace", "g5-spot-use1a=synthetic")
    assert ASSUMED in answer.out
