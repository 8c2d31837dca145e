"""`spotladder trace` as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.api.builders import JOB, WORLD, written
from tests.cli.terminal import call
from tests.cli.test_simulate import window

Capture = pytest.CaptureFixture[str]

SPELLS = window((0, 6), (1, 12), (0, 18), (1, 6), (0, 30))
"""72 ticks of ten minutes: capacity for 1 h, 3 h and 5 h, and none for 2 h and 1 h."""


def test_the_contents_of_a_trace(capsys: Capture, tmp_path: Path) -> None:
    answer = call(capsys, "trace", written(tmp_path, "zone.json", SPELLS))
    assert (answer.code, answer.err) == (0, "")
    general, available, unavailable = answer.out.split("\n\n")
    assert general.splitlines()[1].split("  ")[:3] == ["zone", "windows, JSON", "preempted"]
    assert "12h 00m" in general
    assert available.splitlines()[0] == "Time with capacity for 1 node"
    assert " ".join(available.splitlines()[2].split()) == (
        "zone 75.0 % 3 4h 30m 3h 00m 5h 00m 100 % 67 % 33 % 33 % 33 %"
    )
    assert " ".join(unavailable.splitlines()[2].split()).startswith("zone 25.0 % 2 1h 30m 1h 00m")


def test_the_data_of_a_zone_with_prices(capsys: Capture, tmp_path: Path) -> None:
    text = "time,nodes,price\n" + "".join(f"{600 * tick},{tick % 3},{1 + tick % 3}\n" for tick in range(9))
    answer = call(capsys, "trace", f"east={written(tmp_path, 'nodes.csv', text)}", "--workers", "2", "-o", "json")
    (zone,) = json.loads(answer.out)["zones"]
    assert (zone["zone"], zone["formats"], zone["oneMeans"]) == ("east", ["availability, CSV"], [])
    assert (zone["tickSeconds"], zone["durationSeconds"], zone["samples"], zone["files"]) == (600, 5400, 9, 1)
    assert zone["nodes"] == {"fewest": 0, "most": 2}
    assert zone["priceUsd"] == {"lowest": 1, "mean": 2, "highest": 3}
    assert zone["availableShare"] == pytest.approx(1 / 3)
    assert (zone["available"]["spells"], zone["available"]["ended"]) == (3, 2)
    assert zone["available"]["survival"][0] == {"ageSeconds": 600, "share": 0.333333}, "the last one may last longer"


def test_the_windows_of_a_folder_are_one_zone(capsys: Capture, tmp_path: Path) -> None:
    for name in ("1", "2"):
        written(tmp_path, f"{name}.json", SPELLS)
    (zone,) = json.loads(call(capsys, "trace", f"west={tmp_path}", "-o", "json").out)["zones"]
    assert (zone["zone"], zone["files"], zone["samples"], zone["available"]["spells"]) == ("west", 2, 144, 6)


def test_a_trace_beside_one_fitted_to_it(capsys: Capture, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "survival.svg"
    options = ("--fit", "--survival", picture)
    answer = call(capsys, "trace", written(tmp_path, "zone.json", SPELLS), *options)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.count("zone, fitted") == 3
    assert answer.out.splitlines()[-1] == f"Survival curves: {picture}"
    assert "Spells without capacity" in picture.read_text()


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        (SPELLS, "2 ends of spells {} capacity (standard error of their mean: 71 % or more)"),
        (window((0, 30)), "0 ends of spells {} capacity (their mean is unknown)"),
    ],
)
def test_a_fit_says_how_uncertain_it_is(text: str, ends: str, capsys: Capture, tmp_path: Path) -> None:
    answer = call(capsys, "trace", written(tmp_path, "zone.json", text), "--fit")
    known = f"{ends.format('with')} and {ends.format('without')}"
    share = "75.0 %" if text == SPELLS else "100.0 %"
    note = " ".join(answer.out.splitlines()[-1].split())
    assert note.startswith(f"note: zone: fitted to {known}; capacity for {share} of the time in the record, ")
    assert note.endswith(" % in the fitted process")


EVENTS = "0,add,a\n600000,add,b\n1200000,remove,a\n2400000,remove,b\n"


@pytest.mark.parametrize(
    ("name", "text", "converted"),
    [
        ("events.csv", EVENTS, "time,nodes\n0,1\n600,2\n1200,1\n1800,1\n"),
        ("window.json", window((0, 1), (1, 2)), "time,available\n0,1\n600,0\n1200,0\n"),
        ("prices.csv", "time,preempted,price\n60,1,0.25\n120,0,0.5\n", "time,available,price\n60,0,0.25\n120,1,0.5\n"),
    ],
)
def test_a_trace_is_converted_to_csv(capsys: Capture, tmp_path: Path, name: str, text: str, converted: str) -> None:
    file = tmp_path / "converted.csv"
    answer = call(capsys, "trace", written(tmp_path, name, text), "--convert", file)
    assert (answer.code, answer.err) == (0, "")
    assert file.read_text() == converted
    assert call(capsys, "trace", file).code == 0


def test_a_log_of_probes_has_several_zones(capsys: Capture, tmp_path: Path) -> None:
    lines = (f"{600 * at + 7 * (at % 3)},{zone},{int(at % 9 > 2)}\n" for at in range(200) for zone in "ab")
    file = written(tmp_path, "probes.csv", f"timestamp,zone,ok\n{''.join(lines)}")
    zones = json.loads(call(capsys, "trace", file, "-o", "json").out)["zones"]
    assert [(zone["zone"], zone["formats"], zone["oneMeans"]) for zone in zones] == [
        ("a", ["probes, CSV"], ["available"]),
        ("b", ["probes, CSV"], ["available"]),
    ]
    assert zones[0]["longestBetweenSamplesSeconds"] == 607
    assert [zone["zone"] for zone in json.loads(call(capsys, "trace", f"b={file}", "-o", "json").out)["zones"]] == ["b"]
    options = ("--hours", "5", "--deadline", "10h", "-o", "json")
    answer = call(capsys, "simulate", "--trace", file, *options)
    assert set(json.loads(answer.out)["policies"][0]["runs"][0]["nodeHours"]) == {"a", "b", "on-demand"}
    answer = call(capsys, "simulate", "--trace", f"c={file}", *options)
    assert answer.code == 2
    assert answer.err.endswith("probes.csv: has no zone 'c' (expected one of a, b)\n")


def test_probes_are_no_price_history(capsys: Capture, tmp_path: Path) -> None:
    file = written(tmp_path, "probes.csv", "timestamp,ok\n0,1\n600,0\n1200,1\n")
    answer = call(capsys, "trace", file)
    assert "note: probes: the longest time between two samples is 10m" in answer.out
    assert "price history" not in answer.out


def test_the_longest_time_between_two_events_is_named(capsys: Capture, tmp_path: Path) -> None:
    answer = call(capsys, "trace", written(tmp_path, "nodes.csv", EVENTS))
    assert answer.out.endswith("\nnote: nodes: the longest time between two samples is 20m 00s\n")


def test_a_price_history_has_no_capacity(capsys: Capture, tmp_path: Path) -> None:
    entry = {"AvailabilityZone": "us-east-1a", "SpotPrice": "0.5"}
    times = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
    text = json.dumps({"SpotPriceHistory": [{**entry, "Timestamp": time} for time in times]})
    answer = call(capsys, "trace", written(tmp_path, "prices.json", text))
    assert "note: us-east-1a: a price history has no data about capacity" in answer.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("nowhere.json",), "nowhere.json: cannot be read"),
        (("=a.json",), "expected [ZONE=]FILE, got '=a.json': name a trace"),
        (("zone.json", "zone.json"), "zone 'zone' is given twice: name one of them, as in b=zone.json"),
        (("zone.json", "b=zone.json", "--convert", "c.csv"), "--convert: expected one trace, got 2: name one file"),
        (("zone.json", "--polarity", "up"), "--polarity: expected available or preempted, got 'up'"),
        (("zone.json", "--survival", "s.txt"), "--survival: must be a file name that ends with .png or .svg"),
        (("zone.json", "--workers", "0"), "Invalid value for '--workers'"),
        (("notes.csv",), "notes.csv: line 1: has an unknown format"),
    ],
)
def test_bad_input(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "zone.json", SPELLS)
    written(tmp_path, "notes.csv", "hello\n")
    answer = call(capsys, "trace", *options)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1


@pytest.mark.parametrize("command", ["trace", "simulate --hours 1 --trace", "plan --trace"])
def test_windows_of_a_folder_have_ticks_of_one_length(capsys: Capture, tmp_path: Path, command: str) -> None:
    folder = tmp_path / "zone"
    folder.mkdir()
    for name in "abcd":
        written(folder, f"{name}.json", SPELLS)
    written(folder, "events.csv", "0,add,n1\n3600000,remove,n1\n")
    assert call(capsys, "trace", folder, "--fit").code == 0
    written(folder, "e.json", json.dumps({"metadata": {"gap_seconds": 300}, "data": [0, 0, 1, 0]}))
    files = written(tmp_path, "job.yaml", JOB), written(tmp_path, "world.yaml", WORLD)
    more = ("-f", files[0], "--world", files[1], "--hours", "1") if command.startswith("plan") else ()
    answer = call(capsys, *command.split(), f"spot-a={folder}", *more)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        f"error: expected ticks of one length, got 300 s in {folder}/e.json; 600 s in {folder}/a.json, "
        f"{folder}/b.json, {folder}/c.json and 1 more: resample them, or put the files of each length into a "
        "folder of their own\n"
    )


@pytest.mark.parametrize("command", ["trace", "simulate"])
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
def test_an_invalid_trace_is_refused_in_one_line(
    capsys: Capture, tmp_path: Path, command: str, text: str, said: str
) -> None:
    file = written(tmp_path, "zone.csv", text)
    options: tuple[str | Path, ...] = (file,) if command == "trace" else ("--hours", "2", "--trace", file)
    answer = call(capsys, command, *options)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"error: {file}: {said}")
    assert len(answer.err.splitlines()) == 1


STEADY, INVERTED = (
    window(*[run for _ in range(9) for run in ((available, 60), (1 - available, 1))]) for available in (0, 1)
)
"""Capacity for 98 % of the time, with an outage of ten minutes every ten hours, and the opposite."""

SCARCE = window((1, 300), (0, 4), (1, 250))
"""Capacity once, for 0.7 % of the time, as in one of the public traces."""


def test_an_inverted_trace_is_refused_with_the_option_that_mends_it(capsys: Capture, tmp_path: Path) -> None:
    file = written(tmp_path, "zone.json", STEADY)
    assert call(capsys, "trace", file).code == 0
    inverted = written(tmp_path, "inverted.json", INVERTED)
    for command in (("trace", inverted), ("simulate", "--hours", "2", "--trace", inverted)):
        answer = call(capsys, *command)
        assert (answer.code, answer.out) == (2, "")
        assert "inverted.json: there is capacity for 1.6 % of the time only, in 9 spells of 3.81 days" in answer.err
        assert "Give --polarity available, or --polarity preempted if it was so" in answer.err
    for polarity in ("available", "preempted"):
        answer = call(capsys, "trace", inverted, "--polarity", polarity)
        assert (answer.code, answer.err) == (0, "")


def test_capacity_that_is_rare_causes_a_warning(capsys: Capture, tmp_path: Path) -> None:
    file = written(tmp_path, "zone.json", SCARCE)
    for command in (("trace", file), ("simulate", "--hours", "2", "--trace", file)):
        answer = call(capsys, *command)
        assert answer.code == 0
        assert answer.err == (
            f"warning: {file}: there is capacity for 0.7 % of the time only, in 1 spell of 3.85 days: does a 1 mean "
            "the opposite? Give --polarity available, or --polarity preempted if it was so\n"
        )
        assert call(capsys, *command, "--polarity", "preempted").err == ""
