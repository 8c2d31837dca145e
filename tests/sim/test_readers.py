"""The trace formats: valid input, and one clear line for each error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spotladder.errors import InvalidSpec
from spotladder.sim.readers import egress_prices
from spotladder.sim.readers.any_format import read_trace, read_traces
from spotladder.sim.readers.karpenter_log import NO_CAPACITY
from spotladder.sim.readers.polarity import Polarity
from spotladder.sim.trace import UNLIMITED, Trace
from tests.api.builders import written


def window(data: list[Any], **more: Any) -> str:
    metadata = {"gap_seconds": 600, **more.pop("metadata", {})}
    return json.dumps({"metadata": metadata, "data": data, **more})


ZONE = {"zone": "us-east-1a", "price_info": {"price": 0.9, "on_demand_price": 3.06}}


def steps(trace: Trace) -> list[tuple[float, int]]:
    return list(zip(trace.times.tolist(), trace.nodes.tolist(), strict=True))


def test_values_of_a_window_are_preemptions_and_its_file_name_is_the_zone(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, "zone-1.json", window([0, 1, 0])))
    assert steps(trace) == [(0, UNLIMITED), (600, 0), (1200, UNLIMITED)]
    assert (trace.zone, trace.end, trace.gap, trace.prices) == ("zone-1", 1800, 600, None)
    assert trace.share() == pytest.approx(2 / 3)
    assert trace.ticks(300).tolist() == [True, True, False, False, True, True]


def test_a_zone_with_prices_is_read(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, "a.json", window([0, 1], metadata=ZONE, prices=[0.5, 0.75])))
    assert (trace.zone, trace.on_demand_price) == ("us-east-1a", 3.06)
    assert trace.prices is not None
    assert trace.prices.tolist() == [0.5, 0.75]
    trace = read_trace(written(tmp_path, "b.json", window([0, 1], metadata=ZONE)))
    assert trace.prices is not None
    assert trace.prices.tolist() == [0.9, 0.9]


def test_node_events_of_two_recordings_are_concatenated(tmp_path: Path) -> None:
    text = "0,add,n1\r\n0,add,n2\r\n60000,remove,n1\r\n120000,add,n3\r\n0,add,n1\r\n30000,remove,n1\r\n"
    trace = read_trace(written(tmp_path, "p3.csv", text))
    assert steps(trace) == [(0, 2), (60, 1), (120, 1), (150, 0)]
    assert trace.end == 150
    assert trace.available(2).tolist() == [True, False, False, False]


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
    """Registered again after a restart of the controller; removed without being registered: there from the start."""
    text = events(
        event(9, "RemovingNode", "old"),
        event(0, "RegisteredNode", "a"),
        event(2, "RegisteredNode", "b"),
        event(3, "RegisteredNode", "a"),
        event(4, "Nominated", "a"),
        event(5, "RemovingNode", "a"),
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


def log(minute: int, message: str, **more: Any) -> str:
    return json.dumps({"level": "INFO", "time": f"2026-01-01T00:{minute:02}:00.5Z", "message": message} | more) + "\n"


def test_capacity_is_read_from_the_log_of_karpenter(tmp_path: Path) -> None:
    spot = {"zone": "us-east-1a", "capacity-type": "spot"}
    lines = [
        log(0, "Starting workers", controller="nodeclaim.lifecycle"),
        log(1, "launched nodeclaim", NodeClaim={"name": "a"}, **spot),
        "a line of another container\n",
        log(2, "launched nodeclaim", nodeclaim="b", **spot),
        log(3, "launched nodeclaim", NodeClaim={"name": "fixed"}, **{"capacity-type": "on-demand"}),
        log(4, "deleted nodeclaim", NodeClaim={"name": "fixed"}),
        log(5, "initiating delete from interruption message", NodeClaim={"name": "a"}, messageKind="spot_interrupted"),
        log(7, "deleted nodeclaim", NodeClaim={"name": "a"}),
        log(8, "deleted nodeclaim", NodeClaim={"name": "b"}),
        log(9, "failed launching nodeclaim", level="ERROR", NodeClaim={"name": "c"}, error=f"creating, {NO_CAPACITY}"),
    ]
    text = "".join(lines)
    trace = read_trace(written(tmp_path, "karpenter.log", text))
    assert steps(trace) == [(0, 1), (60, 2), (240, 1), (360, 1), (420, 1), (480, 0)]
    assert trace.origin == 1767225660.5


def test_unordered_node_counts_are_read_only_with_sort(tmp_path: Path) -> None:
    file = written(tmp_path, "a.txt", "2021-12-11, 11:11:30, 55\n2021-12-11, 11:13:30, 50\n2021-12-11, 11:12:30, 54\n")
    assert steps(read_trace(file, sort=True)) == [(0, 55), (60, 54), (120, 50)]
    with pytest.raises(InvalidSpec, match=r"a\.txt: line 3: is not in order of time .* sort it or specify --sort"):
        read_trace(file)


def test_availability_is_read_from_csv(tmp_path: Path) -> None:
    text = "time,available,price\n2026-01-01T00:00:00Z,1,0.4\n2026-01-01T00:10:00Z,0,0.5\n"
    trace = read_trace(written(tmp_path, "a.csv", text))
    assert (steps(trace), trace.gap, trace.end) == ([(0, UNLIMITED), (600, 0)], 600, 1200)
    assert trace.origin == 1767225600
    assert trace.prices is not None
    assert trace.prices.tolist() == [0.4, 0.5]
    assert steps(read_trace(written(tmp_path, "b.csv", "time,preempted\n0,1\n60,0\n"))) == [(0, 0), (60, UNLIMITED)]
    assert steps(read_trace(written(tmp_path, "c.csv", "time,nodes\n0,3\n60,0\n"))) == [(0, 3), (60, 0)]


@pytest.mark.parametrize(
    ("name", "text", "polarity", "first"),
    [
        ("a.json", window([0, 1]), None, UNLIMITED),
        ("a.json", window([0, 1]), Polarity.PREEMPTED, UNLIMITED),
        ("a.json", window([0, 1]), Polarity.AVAILABLE, 0),
        ("a.csv", "time,available\n0,1\n60,0\n", None, UNLIMITED),
        ("a.csv", "time,available\n0,1\n60,0\n", Polarity.PREEMPTED, 0),
        ("a.csv", "time,preempted\n0,1\n60,0\n", Polarity.AVAILABLE, UNLIMITED),
    ],
)
def test_the_polarity_option_overrides_the_default_of_the_format(
    tmp_path: Path, name: str, text: str, polarity: Polarity | None, first: int
) -> None:
    assert read_trace(written(tmp_path, name, text), polarity).nodes[0] == first


def test_a_trace_without_any_capacity_is_rejected_with_a_hint_to_polarity(tmp_path: Path) -> None:
    dry = written(tmp_path, "dry.json", window([1, 1, 1]))
    with pytest.raises(InvalidSpec, match=r"dry\.json: there is never capacity: .* --polarity available"):
        read_traces([dry])
    assert read_traces([dry], Polarity.PREEMPTED)[0].share() == 0.0
    assert read_traces([dry], Polarity.AVAILABLE)[0].share() == 1.0
    written(tmp_path, "other.json", window([0, 1, 1]))
    assert [trace.zone for trace in read_traces([tmp_path])] == ["dry", "other"]


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


def test_egress_prices_are_read(tmp_path: Path) -> None:
    file = written(tmp_path, "egress.csv", "from_region,to_region,price_usd_per_gb\na,b,0.02\nb,a,0.05\n")
    assert egress_prices.read(file) == {("a", "b"): 0.02, ("b", "a"): 0.05}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("t.json", "", "t.json: is empty: expected {"),
        ("t.json", "[]", "metadata.gap_seconds is missing"),
        ("t.json", window([]), "data must be a list of at least one sample"),
        ("t.json", window([0, 2]), 'data[1] must be 0 (available) or 1 (taken away), not "2"'),
        ("t.json", '{"metadata": {"gap_seconds": 600}, "data": [0, NaN]}', "data[1] must be 0 (available) or 1"),
        (
            "t.json",
            window([0], metadata={"gap_seconds": 0}),
            "metadata.gap_seconds must be a number of seconds above 0",
        ),
        ("t.json", window([0], metadata={"zone": "a"}), "prices: zone without a price"),
        ("t.json", window([0], metadata={"price_info": {"price": 1}}), "metadata.zone: expected the name of a zone"),
        (
            "t.json",
            window([0], metadata=ZONE, prices=[-1]),
            'prices[0]: expected USD per hour from 0 to 1e+06, got "-1"',
        ),
        ("t.json", window([0], metadata=ZONE, prices=[float("nan")]), "prices[0]: expected USD per hour"),
        ("t.json", window([0], metadata=ZONE, prices=[1, 2]), "prices: expected one price for each of the 1 samples"),
        ("t.json", prices(), "has fewer than two prices in SpotPriceHistory"),
        (
            "t.json",
            prices(("2026-01-01T00:00:00Z", "-1")),
            "SpotPriceHistory[0].SpotPrice: expected USD per hour from 0",
        ),
        (
            "t.json",
            prices(("2026-01-01T00:00:00Z", "nan")),
            "SpotPriceHistory[0].SpotPrice: expected USD per hour from 0",
        ),
        ("t.json", prices(("noon", "1")), "SpotPriceHistory[0].Timestamp: expected a time as in 2026-01-01T00:00:00Z"),
        ("t.json", events(), "has no time between events of nodes (expected RegisteredNode and RemovingNode)"),
        ("t.json", events(event(0, "RegisteredNode", "")), "items[0].involvedObject.name: expected the name of a node"),
        (
            "t.json",
            events(event(0, "RegisteredNode", "a", lastTimestamp="noon")),
            'items[0].lastTimestamp: expected a time as in 2026-01-01T00:00:00Z, got "noon"',
        ),
        ("t.json", events(condition(0, "a", "Launched")), "has no time between changes of spot NodeClaims"),
        (
            "t.json",
            events(condition(0, "", "Launched")),
            "items[0].involvedObject.name: expected the name of a NodeClaim",
        ),
        ("t.log", log(0, "Starting"), "has no time between changes of spot NodeClaims: keep it for longer"),
        ("t.log", log(0, "Starting") + '{"level"\n', "line 2: is not valid JSON"),
        (
            "t.log",
            log(0, "launched nodeclaim", NodeClaim={"name": "a"}, time="noon"),
            'line 1, time: expected a time as in 2026-01-01T00:00:00Z, got "noon"',
        ),
        ("t.json", window([0], metadata={"gap_seconds": 1e300}), "seconds above 0, at most a year, not"),
        ("t.json", window([0], metadata=ZONE, prices=[1e300]), "prices[0]: expected USD per hour from 0 to 1e+06"),
        ("t.csv", "time,nodes\n0,1e30\n600,1\n", "line 2, nodes: expected 1e+09 or less, got 1e30"),
        ("t.csv", f"time,available\n0,1\n{'9' * 400},1\n", "line 3, time: expected a number"),
        ("t.csv", "time,available,price\n0,1,1\n60,1,1e300\n", "line 3, price: expected 1e+06 or less, got 1e300"),
        ("t.csv", "0,add,a\n1e300,remove,a\n", "line 2, milliseconds: expected 1e+13 or less, got 1e300"),
        ("t.txt", "2021-12-11, 11:11:30, 1e300\n", "line 1, count: expected 1e+09 or less, got 1e300"),
        ("t.csv", "", "t.csv: is empty: use a trace"),
        ("t.csv", "a,b\n1,2\n", "t.csv: line 1: has an unknown format"),
        ("t.csv", "time,up\n0,1\n", "line 1: expected the header time,available"),
        ("t.csv", "time,available\n0,1\n", "has fewer than two samples"),
        ("t.csv", "time,available\n0,1\n60,nan\n", 'line 3, available: expected a number, got "nan"'),
        ("t.csv", "time,available\n0,1\n60,2\n", "line 3, available: expected 0 or 1, got 2"),
        ("t.csv", "time,available\n0,1\n60\n", 'line 3: expected time,available, got "60"'),
        ("t.csv", "time,available\n0,1\nnoon,1\n", "line 3, time: expected seconds or a time"),
        ("t.csv", "time,available\n60,1\n0,1\n", "line 3, time: is not in order of time"),
        (
            "t.csv",
            "time,available\n0,1\n60,1\n180,1\n",
            "line 4, time: samples are missing before it (expected one every 60 s, got 120 s): fill the gap",
        ),
        ("t.csv", "time,available\n0,1\n60,1\n90,1\n", "line 4, time: mixed tick sizes (expected 60 s, got 30 s)"),
        ("t.csv", "time,available,price\n0,1,1\n60,1,-2\n", "line 3, price: expected 0 or more, got -2"),
        ("t.csv", "0,add,a\n60000,add,a\n", 'line 2: node "a" is added twice'),
        ("t.csv", "0,add,a\n60000,remove,b\n", 'line 2: node "b" is removed and was not added'),
        ("t.csv", "0,add,a\n60000,lose,a\n", 'line 2, event: expected add or remove, got "lose"'),
        ("t.csv", "5,add,a\n9,add,b\n6,remove,a\n", "line 3: is not in order of time"),
        ("t.csv", "0,add,a\n", "has no time between events"),
        ("t.txt", "2021-12-11, 11:11:30, 5\n2021-12-11, 25:11:30, 5\n", "line 2: expected a date and a time"),
        ("t.txt", "2021-12-11, 11:11:30, -5\n", "line 1, count: expected 0 or more, got -5"),
        ("t.txt", "2021-12-11, 11:11:30, 5\n", "has fewer than two times"),
    ],
)
def test_an_invalid_trace_is_rejected_in_one_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        read_trace(written(tmp_path, name, text))
    message = str(caught.value)
    assert message.startswith(str(tmp_path / name))
    assert said in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no prices"),
        ("a,b,0.1\n", "line 1: expected from_region,to_region,price_usd_per_gb, got a,b,0.1"),
        ("from_region,to_region,price_usd_per_gb\na,b,-1\n", "line 2, price_usd_per_gb: expected 0 or more, got -1"),
        ("from_region,to_region,price_usd_per_gb\na,b,1\na,b,1\n", "line 3: the price from a to b is given twice"),
    ],
)
def test_an_invalid_egress_table_is_rejected(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        egress_prices.read(written(tmp_path, "egress.csv", text))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "opposite", "usual"),
    [
        ("a.csv", "time,available\n0,0\n600,0\n1200,0\n", Polarity.PREEMPTED, Polarity.AVAILABLE),
        ("a.csv", "time,preempted\n0,1\n600,1\n1200,1\n", Polarity.AVAILABLE, Polarity.PREEMPTED),
        ("a.json", '{"metadata": {"gap_seconds": 600}, "data": [1, 1, 1]}', Polarity.AVAILABLE, Polarity.PREEMPTED),
    ],
)
def test_the_advice_for_a_trace_without_capacity_fits_its_format(
    tmp_path: Path, name: str, text: str, opposite: Polarity, usual: Polarity
) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(InvalidSpec) as error:
        read_traces([file])
    assert f"Give --polarity {opposite}, or --polarity {usual} if there really was none" in str(error.value)
    assert read_traces([file], opposite)[0].share() == 1.0
    assert read_traces([file], usual)[0].share() == 0.0
