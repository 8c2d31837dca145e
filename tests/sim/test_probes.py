"""Logs of probes: valid ones, and one clear line for each error."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.errors import InvalidSpec
from spotladder.sim.readers.any_format import read_zones
from spotladder.sim.trace import UNLIMITED, Trace
from tests.api.builders import written
from tests.sim.builders import read_trace

TWO = (
    "timestamp,zone,ok\n"
    "2026-01-01T00:00:00Z,b,1\n2026-01-01T00:00:03Z,a,True\n"
    "2026-01-01T00:10:07Z,b,0\n2026-01-01T00:10:09Z,a,false\n"
    "2026-01-01T00:20:31Z,b,1\n2026-01-01T00:20:31Z,a,1\n"
)


def steps(trace: Trace) -> list[tuple[float, int]]:
    return list(zip(trace.times.tolist(), trace.nodes.tolist(), strict=True))


def test_the_answers_of_each_zone_hold_until_its_next_probe(tmp_path: Path) -> None:
    zones = read_zones(written(tmp_path, "probes.csv", TWO))
    (second,), (first,) = zones
    assert [second.trace.zone, first.trace.zone] == ["b", "a"]
    assert steps(second.trace) == [(0, UNLIMITED), (607, 0), (1231, UNLIMITED)]
    assert (second.trace.end, second.trace.gap, second.trace.origin) == (1231, None, 1767225600)
    assert steps(first.trace) == [(0, UNLIMITED), (606, 0), (1228, UNLIMITED)]
    assert second.format == "probes, CSV"


def test_columns_in_any_order_and_each_meaning_of_a_1(tmp_path: Path) -> None:
    text = "preempted,timestamp\n0,100\n1,707\n0,1331\n"
    trace = read_trace(written(tmp_path, "west.csv", text))
    assert (trace.zone, trace.origin, steps(trace)) == ("west", 100, [(0, UNLIMITED), (607, 0), (1231, UNLIMITED)])
    assert steps(read_trace(written(tmp_path, "b.csv", "time,ok\n0,1\n90,1\n"))) == [(0, UNLIMITED), (90, UNLIMITED)]


def test_probes_that_are_missing_for_a_short_time_are_bridged(tmp_path: Path) -> None:
    lines = [f"{at},{int(at < 7000)}\n" for at in (*range(0, 6000, 600), 5400 + 6 * 600, 5400 + 7 * 600)]
    trace = read_trace(written(tmp_path, "a.csv", f"timestamp,ok\n{''.join(lines)}"))
    assert trace.at(trace.times[-3:-2] + 3599).tolist() == [UNLIMITED]


def test_one_trace_is_expected_where_several_have_no_names(tmp_path: Path) -> None:
    written(tmp_path, "probes.csv", TWO)
    with pytest.raises(InvalidSpec, match=r"probes.csv: has the zones b, a \(expected one\): keep the lines of one"):
        read_zones(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("timestamp,zone\n0,a\n", "line 1: expected the columns a time or timestamp"),
        ("timestamp,ok,available\n0,1,1\n", "line 1: expected the columns a time or timestamp"),
        ("timestamp,ok,latency\n0,1,3\n", "line 1: expected the columns a time or timestamp"),
        ("timestamp,ok\n", "has no probes: add lines"),
        ("timestamp,ok\n0,1\n", "has fewer than two probes of zone 'a': add more"),
        ("timestamp,ok\n0,1,2\n", "line 2: expected timestamp,ok, got '0,1,2': correct the line"),
        ("timestamp,ok\nnoon,1\n", "line 2, timestamp: expected seconds or a time as 2026-01-31T12:00:00Z, got 'noon'"),
        ("timestamp,ok\n0,yes\n", "line 2, ok: expected 0, 1, true or false, got 'yes'"),
        ("timestamp,zone,ok\n0,,1\n", "line 2, zone: expected the name of a zone"),
        ("timestamp,ok\n0,1\n60,1\n60,0\n", "line 4: is not after the probe before it of zone 'a': sort the file"),
        (
            "timestamp,ok\n0,1\n60,1\n120,0\n481,1\n",
            "line 5: no probe of zone 'a' in the 361 s before it (expected one every 60 s, and no pause over 360 s)",
        ),
    ],
)
def test_invalid_probes(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        read_trace(written(tmp_path, "a.csv", text))
    assert said in str(caught.value).replace('"', "'")


def test_ticks_that_look_like_probes_say_how_to_read_them(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match="if the lines are probes, name the first column timestamp"):
        read_trace(written(tmp_path, "a.csv", "time,available\n0,1\n607,1\n1231,0\n"))
    assert len(read_trace(written(tmp_path, "a.csv", "timestamp,available\n0,1\n607,1\n1231,0\n")).times) == 3
