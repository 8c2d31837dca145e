"""The trace formats: valid input, and one clear line for each error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spotladder.errors import InvalidSpec
from spotladder.sim.readers.any_format import read_zones
from spotladder.sim.trace import UNLIMITED, Trace
from tests.api.builders import written
from tests.sim.builders import read_trace


def steps(trace: Trace) -> list[tuple[float, int]]:
    return list(zip(trace.times.tolist(), trace.nodes.tolist(), strict=True))


def event(minute: int, reason: str, node: str, **more: Any) -> dict[str, Any]:
    at = f"2026-01-01T00:{minute:02}:00Z"
    return {
        "kind": "Event",
        "reason": reason,
        "involvedObject": {"kind": "Node", "name": node},
        "lastTimestamp": at,
    } | more


def events(*items: dict[str, Any], kind: str = "List") -> str:
    return json.dumps({"apiVersion": "v1", "kind": kind, "items": list(items)})


def test_the_number_of_nodes_is_read_from_events_of_kubernetes(tmp_path: Path) -> None:
    """Registered again after a restart of the controller; removed without being registered: there from the start.
    Other events may be about an object without a name."""
    text = events(
        event(9, "RemovingNode", "old"),
        event(0, "RegisteredNode", "a"),
        event(2, "RegisteredNode", "b"),
        event(3, "RegisteredNode", "a"),
        event(4, "Nominated", "a"),
        event(4, "Backup", "", involvedObject={"kind": "Cluster"}),
        event(5, "RemovingNode", "a"),
        event(5, "RemovingNode", ""),
    )
    trace = read_trace(written(tmp_path, "events.json", text))
    assert steps(trace) == [(0, 2), (120, 3), (180, 3), (300, 2), (540, 1)]
    assert (trace.origin, trace.end) == (1767225600, 540)


def test_events_of_the_newer_api_are_read(tmp_path: Path) -> None:
    newer = {"involvedObject": None, "lastTimestamp": None, "regarding": {"name": "a"}}
    text = events(
        event(0, "RegisteredNode", "") | newer | {"eventTime": "2026-01-01T00:00:00.000000Z"},
        event(0, "RemovingNode", "") | newer | {"eventTime": None, "deprecatedLastTimestamp": "2026-01-01T01:00:00Z"},
        kind="EventList",
    )
    assert steps(read_trace(written(tmp_path, "events.json", text))) == [(0, 1), (3600, 0)]


def claim(minute: int, name: str, reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return event(minute, reason, name, involvedObject={"kind": "NodeClaim", "name": name}, message=message) | more


def condition(minute: int, name: str, kind: str, status: str = "True") -> dict[str, Any]:
    """The event of a condition of a NodeClaim."""
    message = f"Status condition transitioned, Type: {kind}, Status: Unknown -> {status}, Reason: {kind}"
    return claim(minute, name, kind, message)


def test_capacity_is_read_from_events_of_karpenter(tmp_path: Path) -> None:
    """`b` is reclaimed and `c` cannot be launched. `a` is removed because it is empty: it counts until `d` takes its
    place, which is interrupted. Events of nodes are not counted again."""
    text = events(
        claim(0, "old", "DisruptionBlocked", "Nodeclaim does not have an associated node"),
        condition(1, "a", "Launched"),
        event(2, "RegisteredNode", "node-a"),
        condition(2, "a", "Registered"),
        condition(3, "b", "Launched"),
        condition(4, "c", "Launched", "False"),
        claim(4, "c", "InsufficientCapacityError", "NodeClaim c event: insufficient capacity"),
        claim(10, "b", "SpotInterrupted", "Spot interruption warning was triggered"),
        claim(10, "b", "TerminatingOnInterruption", "Interruption triggered termination for the NodeClaim"),
        condition(12, "b", "InstanceTerminating"),
        event(13, "RemovingNode", "node-b"),
        claim(20, "a", "DisruptionTerminating", "Disrupting NodeClaim: Empty"),
        condition(21, "a", "InstanceTerminating"),
        condition(30, "d", "Launched"),
        claim(40, "d", "InstanceStopping", "Instance is stopping"),
        claim(50, "e", "InsufficientCapacityError", "NodeClaim e event: insufficient capacity"),
    )
    trace = read_trace(written(tmp_path, "events.json", text))
    at = {time / 60: count for time, count in steps(trace)}
    changed = {0: 1, 1: 1, 2: 2, 3: 2, 9: 1, 11: 1, 19: 1, 20: 1, 29: 1, 39: 0, 49: 0}
    assert at == changed


@pytest.mark.parametrize("refused", [True, False])
def test_released_nodes_are_capacity_until_a_launch_fails(tmp_path: Path, refused: bool) -> None:
    last = claim(9, "c", "InsufficientCapacityError") if refused else condition(9, "c", "Launched")
    text = events(
        condition(0, "a", "Launched"),
        condition(0, "b", "Launched"),
        claim(5, "a", "DisruptionTerminating"),
        claim(6, "b", "DisruptionTerminating"),
        last,
        claim(59, "other", "SpotInterrupted"),
    )
    found = steps(read_trace(written(tmp_path, "events.json", text)))
    assert found[-2] == (540, 1 if refused else 3)
    assert found[0] == (0, 3), "the NodeClaim that is interrupted at last was there from the start"


def test_availability_is_read_from_csv(tmp_path: Path) -> None:
    text = "time,available,price\n2026-01-01T00:00:00Z,1,0.4\n2026-01-01T00:10:00Z,0,0.5\n"
    trace = read_trace(written(tmp_path, "a.csv", text))
    assert (steps(trace), trace.end) == ([(0, UNLIMITED), (600, 0)], 1200)
    assert trace.origin == 1767225600
    assert trace.prices is not None
    assert trace.prices.tolist() == [0.4, 0.5]
    assert steps(read_trace(written(tmp_path, "b.csv", "time,preempted\n0,1\n60,0\n"))) == [(0, 0), (60, UNLIMITED)]
    assert steps(read_trace(written(tmp_path, "c.csv", "time,nodes\n0,3\n60,0\n"))) == [(0, 3), (60, 0)]


ZONES = (
    "timestamp,zone,ok\n"
    "2026-01-01T00:00:00Z,b,1\n2026-01-01T00:00:03Z,a,True\n"
    "2026-01-01T00:10:07Z,b,0\n2026-01-01T00:10:09Z,a,false\n"
    "2026-01-01T00:20:31Z,b,1\n2026-01-01T00:20:31Z,a,1\n"
)


def test_a_sample_holds_until_the_next_one_of_its_zone(tmp_path: Path) -> None:
    (second,), (first,) = read_zones(written(tmp_path, "probes.csv", ZONES))
    assert [second.trace.zone, first.trace.zone] == ["b", "a"]
    assert steps(second.trace) == [(0, UNLIMITED), (607, 0), (1231, UNLIMITED)]
    assert (second.trace.end, second.trace.origin) == (1855, 1767225600)
    assert steps(first.trace) == [(0, UNLIMITED), (606, 0), (1228, UNLIMITED)]
    with pytest.raises(InvalidSpec, match=r"probes.csv: has the zones b, a \(expected one\): keep the lines of one"):
        read_zones(tmp_path)


def test_columns_may_be_in_any_order(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, "west.csv", "preempted,timestamp\n0,100\n1,707\n0,1331\n"))
    assert (trace.zone, trace.origin, steps(trace)) == ("west", 100, [(0, UNLIMITED), (607, 0), (1231, UNLIMITED)])


def prices(*entries: tuple[str, str], **more: Any) -> str:
    """The output of aws for these times and prices."""
    usual = {"AvailabilityZone": "us-east-1a", "InstanceType": "g5.xlarge", "ProductDescription": "Linux/UNIX", **more}
    listed = [{**usual, "Timestamp": time, "SpotPrice": price} for time, price in entries]
    return json.dumps({"SpotPriceHistory": listed})


def test_the_spot_price_history_of_aws_is_read(tmp_path: Path) -> None:
    """The newest price comes first, as aws prints it."""
    newest, oldest = ("2026-01-01T02:00:00+00:00", "0.5"), ("2026-01-01T00:30:00+00:00", "0.4000")
    found = read_trace(written(tmp_path, "t.json", prices(newest, oldest)))
    assert (found.zone, found.end, found.prices) == ("us-east-1a", 5400.0, pytest.approx([0.4, 0.5]))
    assert steps(found) == [(0.0, UNLIMITED), (5400.0, UNLIMITED)]


def test_a_price_history_of_two_zones_is_rejected(tmp_path: Path) -> None:
    first, second = (json.loads(prices(NOON, AvailabilityZone=zone)) for zone in ("us-east-1a", "us-east-1b"))
    text = json.dumps({"SpotPriceHistory": [*first["SpotPriceHistory"], *second["SpotPriceHistory"]]})
    with pytest.raises(InvalidSpec, match="expected one AvailabilityZone, got us-east-1a, us-east-1b: specify --avail"):
        read_trace(written(tmp_path, "t.json", text.replace("12:00", "13:00", 1)))


NOON = ("2026-01-01T12:00:00+00:00", "0.4")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("t.json", "", "t.json: is not valid JSON"),
        ("t.csv", f"time,ok\n0,1\n60,{140_000 * '1'}\n", "line 3: field larger than field limit (131072)"),
        ("t.json", "[]", "t.json: has an unknown format (expected a list of Kubernetes events, or a spot price"),
        ("t.json", '{"data": [0, 1]}', "t.json: has an unknown format"),
        ("t.json", prices(), "has fewer than two prices in SpotPriceHistory"),
        (
            "t.json",
            prices((NOON[0], "-1")),
            "SpotPriceHistory[0].SpotPrice: Input should be greater than or equal to 0",
        ),
        ("t.json", prices((NOON[0], "nan")), "SpotPriceHistory[0].SpotPrice: Input should be a finite number"),
        ("t.json", prices(("noon", "1")), "SpotPriceHistory[0].Timestamp: Input should be a valid datetime"),
        ("t.json", events(), "has no time between changes of nodes or NodeClaims"),
        (
            "t.json",
            events(event(0, "RegisteredNode", "a", lastTimestamp="noon")),
            "items[0].lastTimestamp: Input should be a valid datetime",
        ),
        ("t.json", events(condition(0, "a", "Launched")), "has no time between changes of nodes or NodeClaims"),
        ("t.csv", "", "t.csv: is empty: use a trace"),
        ("t.csv", "a,b\n1,2\n", "t.csv: line 1: has an unknown format"),
        ("t.csv", "time,up\n0,1\n", "line 1: expected the columns a time or timestamp"),
        ("t.csv", "timestamp,zone\n0,a\n", "line 1: expected the columns a time or timestamp"),
        ("t.csv", "timestamp,ok,available\n0,1,1\n", "line 1: expected the columns a time or timestamp"),
        ("t.csv", "timestamp,ok\n", "has no samples: add lines"),
        ("t.csv", "time,available\n0,1\n", 'has fewer than two samples of zone "t": add more'),
        ("t.csv", "time,nodes\n0,1e30\n600,1\n", "line 2, nodes: Input should be a valid integer"),
        ("t.csv", "time,available\n0,1\n60,2\n", "line 3, available: Input should be a valid boolean"),
        ("t.csv", "time,available\n0,1\n60\n", 'line 3: expected time,available, got "60"'),
        ("t.csv", f"time,available\n0,1\n{'9' * 400},1\n", "line 3, time: Input should be a valid datetime"),
        ("t.csv", "time,available\n0,1\nnoon,1\n", "line 3, time: Input should be a valid datetime"),
        (
            "t.csv",
            "time,available,price\n0,1,1\n60,1,1e300\n",
            "line 3, price: Input should be less than or equal to 1",
        ),
        (
            "t.csv",
            "time,available,price\n0,1,1\n60,1,-2\n",
            "line 3, price: Input should be greater than or equal to 0",
        ),
        ("t.csv", "time,available,price\n0,1,1\n600,1,\n", "line 3, price: Input should be a valid number"),
        ("t.csv", "timestamp,zone,ok\n0,,1\n", "line 2, zone: String should have at least 1"),
        ("t.csv", "time,ok\n0,1\n60,1\n60,0\n", 'line 4: is not after the sample before it of zone "t": sort the file'),
        (
            "t.csv",
            "timestamp,ok\n0,1\n60,1\n120,0\n481,1\n",
            'line 5: no sample of zone "t" in the 361 s before it (expected one every 60 s, and no pause over 360 s)',
        ),
    ],
)
def test_an_invalid_trace_is_rejected_in_one_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        read_trace(written(tmp_path, name, text))
    message = str(caught.value)
    assert message.startswith(str(tmp_path / name))
    assert said in message
    assert "\n" not in message
