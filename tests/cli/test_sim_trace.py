"""`spotladder sim trace` as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.api.builders import written
from tests.cli.terminal import call
from tests.cli.test_sim_run import ticks

Capture = pytest.CaptureFixture[str]

SPELLS = ticks((1, 6), (0, 12), (1, 18), (0, 6), (1, 30))
"""72 ticks of ten minutes: capacity for 1 h, 3 h and 5 h, and none for 2 h and 1 h."""


def test_the_contents_of_a_trace(capsys: Capture, tmp_path: Path) -> None:
    answer = call(capsys, "sim", "trace", written(tmp_path, "zone.csv", SPELLS))
    assert (answer.code, answer.err) == (0, "")
    assert " ".join(answer.out.splitlines()[-1].split()) == ("zone samples, CSV 12h 00m – – 75.0 % 4h 30m 1h 30m 67 %")


def test_the_data_of_a_zone_with_prices(capsys: Capture, tmp_path: Path) -> None:
    text = "time,nodes,price\n" + "".join(f"{600 * tick},{tick % 3},{1 + tick % 3}\n" for tick in range(9))
    answer = call(
        capsys, "sim", "trace", f"east={written(tmp_path, 'nodes.csv', text)}", "--workers", "2", "-o", "json"
    )
    (zone,) = json.loads(answer.out)["zones"]
    assert (zone["zone"], zone["formats"]) == ("east", ["samples, CSV"])
    assert (zone["seconds"], zone["files"]) == (5400, 1)
    assert zone["nodes"] == {"fewest": 0, "most": 2}
    assert zone["priceUsd"] == {"lowest": 1, "mean": 2, "highest": 3}
    assert zone["availableShare"] == pytest.approx(1 / 3)
    assert zone["lostAfterSeconds"] == 900, "three spells, of which two end"
    assert zone["overAnHourShare"] == pytest.approx(1 / 3), "the last one may last longer"


def test_the_files_of_a_folder_are_one_zone(capsys: Capture, tmp_path: Path) -> None:
    for name in ("1", "2"):
        written(tmp_path, f"{name}.csv", SPELLS)
    (zone,) = json.loads(call(capsys, "sim", "trace", f"west={tmp_path}", "-o", "json").out)["zones"]
    assert (zone["zone"], zone["files"], zone["seconds"]) == ("west", 2, 86_400)


@pytest.mark.parametrize(("prefix", "zone"), [("", "zone"), ("west=", "west")])
def test_the_path_of_a_trace_may_contain_an_equals_sign(
    capsys: Capture, tmp_path: Path, prefix: str, zone: str
) -> None:
    (tmp_path / "date=2026-01-01").mkdir()
    file = written(tmp_path / "date=2026-01-01", "zone.csv", SPELLS)
    (found,) = json.loads(call(capsys, "sim", "trace", f"{prefix}{file}", "-o", "json").out)["zones"]
    assert (found["zone"], found["files"]) == (zone, 1)


def test_a_log_of_probes_has_several_zones(capsys: Capture, tmp_path: Path) -> None:
    lines = (f"{600 * at + 7 * (at % 3)},{zone},{int(at % 9 > 2)}\n" for at in range(200) for zone in "ab")
    file = written(tmp_path, "probes.csv", f"timestamp,zone,ok\n{''.join(lines)}")
    zones = json.loads(call(capsys, "sim", "trace", file, "-o", "json").out)["zones"]
    assert [(zone["zone"], zone["formats"]) for zone in zones] == [("a", ["samples, CSV"]), ("b", ["samples, CSV"])]
    assert [
        zone["zone"] for zone in json.loads(call(capsys, "sim", "trace", f"b={file}", "-o", "json").out)["zones"]
    ] == ["b"]
    answer = call(capsys, "sim", "trace", f"c={file}")
    assert answer.code == 2
    assert answer.err.endswith("probes.csv: has no zone 'c' (expected one of a, b)\n")


def test_a_price_history_has_no_capacity(capsys: Capture, tmp_path: Path) -> None:
    entry = {"AvailabilityZone": "us-east-1a", "SpotPrice": "0.5"}
    times = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
    text = json.dumps({"SpotPriceHistory": [{**entry, "Timestamp": time} for time in times]})
    answer = call(capsys, "sim", "trace", written(tmp_path, "prices.json", text))
    assert "note: us-east-1a: a price history has no data about capacity" in answer.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("nowhere.json",), "nowhere.json: cannot be read"),
        (("=a.json",), "expected [ZONE=]FILE, got '=a.json': name a trace"),
        (("zone.csv", "zone.csv"), "zone 'zone' is given twice: name one of them, as in b=zone.csv"),
        (("zone.csv", "--workers", "0"), "Invalid value for '--workers'"),
        (("notes.csv",), "notes.csv: line 1: has an unknown format"),
    ],
)
def test_bad_input(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "zone.csv", SPELLS)
    written(tmp_path, "notes.csv", "hello\n")
    answer = call(capsys, "sim", "trace", *options)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1
