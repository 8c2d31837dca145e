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
    general, available, unavailable = answer.out.split("\n\n")
    assert general.splitlines()[1].split("  ")[:2] == ["zone", "availability, CSV"]
    assert "12h 00m" in general
    assert available.splitlines()[0] == "Time with capacity for 1 node"
    assert " ".join(available.splitlines()[2].split()) == (
        "zone 75.0 % 3 4h 30m 3h 00m 5h 00m 100 % 67 % 33 % 33 % 33 %"
    )
    assert " ".join(unavailable.splitlines()[2].split()).startswith("zone 25.0 % 2 1h 30m 1h 00m")


def test_the_data_of_a_zone_with_prices(capsys: Capture, tmp_path: Path) -> None:
    text = "time,nodes,price\n" + "".join(f"{600 * tick},{tick % 3},{1 + tick % 3}\n" for tick in range(9))
    answer = call(
        capsys, "sim", "trace", f"east={written(tmp_path, 'nodes.csv', text)}", "--workers", "2", "-o", "json"
    )
    (zone,) = json.loads(answer.out)["zones"]
    assert (zone["zone"], zone["formats"]) == ("east", ["availability, CSV"])
    assert (zone["tickSeconds"], zone["durationSeconds"], zone["samples"], zone["files"]) == (600, 5400, 9, 1)
    assert zone["nodes"] == {"fewest": 0, "most": 2}
    assert zone["priceUsd"] == {"lowest": 1, "mean": 2, "highest": 3}
    assert zone["availableShare"] == pytest.approx(1 / 3)
    assert (zone["available"]["spells"], zone["available"]["ended"]) == (3, 2)
    assert zone["available"]["survival"][0] == {"ageSeconds": 600, "share": 0.333333}, "the last one may last longer"


def test_the_files_of_a_folder_are_one_zone(capsys: Capture, tmp_path: Path) -> None:
    for name in ("1", "2"):
        written(tmp_path, f"{name}.csv", SPELLS)
    (zone,) = json.loads(call(capsys, "sim", "trace", f"west={tmp_path}", "-o", "json").out)["zones"]
    assert (zone["zone"], zone["files"], zone["samples"], zone["available"]["spells"]) == ("west", 2, 144, 6)


def event(minute: int, reason: str, node: str) -> dict[str, object]:
    at = f"2026-01-01T00:{minute:02}:00Z"
    return {"reason": reason, "involvedObject": {"kind": "Node", "name": node}, "lastTimestamp": at}


EVENTS = json.dumps(
    {
        "kind": "List",
        "items": [
            event(0, "RegisteredNode", "a"),
            event(10, "RegisteredNode", "b"),
            event(20, "RemovingNode", "a"),
            event(40, "RemovingNode", "b"),
        ],
    }
)


def test_a_log_of_probes_has_several_zones(capsys: Capture, tmp_path: Path) -> None:
    lines = (f"{600 * at + 7 * (at % 3)},{zone},{int(at % 9 > 2)}\n" for at in range(200) for zone in "ab")
    file = written(tmp_path, "probes.csv", f"timestamp,zone,ok\n{''.join(lines)}")
    zones = json.loads(call(capsys, "sim", "trace", file, "-o", "json").out)["zones"]
    assert [(zone["zone"], zone["formats"]) for zone in zones] == [("a", ["probes, CSV"]), ("b", ["probes, CSV"])]
    assert zones[0]["longestBetweenSamplesSeconds"] == 607
    assert [
        zone["zone"] for zone in json.loads(call(capsys, "sim", "trace", f"b={file}", "-o", "json").out)["zones"]
    ] == ["b"]
    answer = call(capsys, "sim", "trace", f"c={file}")
    assert answer.code == 2
    assert answer.err.endswith("probes.csv: has no zone 'c' (expected one of a, b)\n")


def test_probes_are_no_price_history(capsys: Capture, tmp_path: Path) -> None:
    file = written(tmp_path, "probes.csv", "timestamp,ok\n0,1\n600,0\n1200,1\n")
    answer = call(capsys, "sim", "trace", file)
    assert "note: probes: the longest time between two samples is 10m" in answer.out
    assert "price history" not in answer.out


def test_the_longest_time_between_two_events_is_named(capsys: Capture, tmp_path: Path) -> None:
    answer = call(capsys, "sim", "trace", written(tmp_path, "nodes.json", EVENTS))
    assert answer.out.endswith("\nnote: nodes: the longest time between two samples is 20m 00s\n")


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty: use a trace"),
        ("time,available\n0,1\n600,1\n1800,1\n", "line 4, time: samples are missing before it"),
        ("time,available\n600,1\n0,1\n", "line 3, time: is not in order of time"),
        ("time,available\n0,1\n600,1\n900,1\n", "line 4, time: mixed tick sizes"),
        ("time,available,price\n0,1,1\n600,1,-1\n", "line 3, price: expected 0 or more, got -1"),
        ("time,available,price\n0,1,1\n600,1,\n", 'line 3, price: expected a number, got ""'),
        ("time,available\n0,nan\n600,1\n", 'line 2, available: expected a number, got "nan"'),
    ],
)
def test_an_invalid_trace_is_refused_in_one_line(capsys: Capture, tmp_path: Path, text: str, said: str) -> None:
    file = written(tmp_path, "zone.csv", text)
    answer = call(capsys, "sim", "trace", file)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"error: {file}: {said}")
    assert len(answer.err.splitlines()) == 1
