"""When pools provide and reclaim nodes, with a stepped clock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spotladder.api.trace import read_trace
from spotladder.api.world import WorldPool
from spotladder.local.pools import LentNode, PoolClock, PoolPlan, Window, plan_of, windows_of

BEGAN = 1_000_000.0


def pool(**plan: object) -> PoolClock:
    return PoolClock(PoolPlan("a", **plan), BEGAN, BEGAN)  # type: ignore[arg-type]


def test_a_pool_lends_its_nodes_and_lends_returned_ones_again() -> None:
    clock = pool(nodes=2)
    assert [clock.give(BEGAN), clock.give(BEGAN), clock.give(BEGAN)] == [1, 2, None]
    clock.take_back()
    assert clock.give(BEGAN) == 3


def test_each_interruption_time_reclaims_the_oldest_node_once() -> None:
    clock = pool(nodes=2, taken_at=(20.0, 45.0))
    old, young = LentNode("old", 1, BEGAN + 1), LentNode("young", 2, BEGAN + 2)
    assert clock.reclaims(BEGAN + 19.9, [young, old]) == []
    assert clock.reclaims(BEGAN + 20, [young, old]) == ["old"]
    assert clock.reclaims(BEGAN + 21, [young]) == []
    assert clock.reclaims(BEGAN + 50, [young]) == ["young"]


def test_each_interruption_step_reclaims_the_oldest_node_once_even_if_the_step_is_repeated() -> None:
    clock = pool(nodes=2, taken_at_steps=(300, 700))
    held = [LentNode("old", 1, BEGAN + 1), LentNode("young", 2, BEGAN + 2)]
    assert clock.reclaims(BEGAN + 9, held, step=0) == []
    assert clock.reclaims(BEGAN + 10, held, step=299) == []
    assert clock.reclaims(BEGAN + 11, held, step=301) == ["old"]
    assert clock.reclaims(BEGAN + 12, held, step=250) == []
    assert clock.reclaims(BEGAN + 13, held, step=310) == []
    assert clock.reclaims(BEGAN + 14, held, step=900) == ["old"]


def test_steps_completed_on_another_tier_reclaim_no_node() -> None:
    clock = pool(taken_at_steps=(300, 700))
    held = [LentNode("one", 1, BEGAN)]
    assert clock.reclaims(BEGAN + 1, held, step=500) == []
    assert clock.reclaims(BEGAN + 2, held, step=699) == []
    assert clock.reclaims(BEGAN + 3, held, step=700) == ["one"]


def test_the_mean_lifetime_is_the_inverse_of_the_hazard() -> None:
    plan = PoolPlan("a", hazard_per_hour=60, seed=7)
    lifetimes = [plan.lifetime(ordinal) for ordinal in range(1, 4001)]
    assert sum(lifetimes) / 4000 == pytest.approx(60, rel=0.05)
    assert lifetimes == [plan.lifetime(ordinal) for ordinal in range(1, 4001)], "the seed determines them"


def trace(folder: Path, *samples: int) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps({"metadata": {"gap_seconds": 600}, "data": samples}))
    return path


@pytest.mark.parametrize(
    ("samples", "windows"),
    [
        pytest.param((0, 0), (), id="never taken"),
        pytest.param((1, 1), (Window(0),), id="always taken"),
        pytest.param((0, 1, 1, 0), (Window(1, 3),), id="taken once"),
        pytest.param(
            (1, 0, 1),
            (
                Window(0, 1),
                Window(2),
            ),
            id="stays as it was at the end",
        ),
    ],
)
def test_a_trace_is_converted_to_windows(tmp_path: Path, samples: tuple[int, ...], windows: tuple[Window, ...]) -> None:
    assert windows_of(read_trace(trace(tmp_path, *samples)), speedup=600) == windows


def test_a_traced_pool_reclaims_all_nodes_and_lends_none_during_an_outage(tmp_path: Path) -> None:
    clock = pool(nodes=2, reclaimed=windows_of(read_trace(trace(tmp_path, 0, 1, 0)), speedup=60))
    assert clock.give(BEGAN + 5) == 1
    held = [LentNode("one", 1, BEGAN + 5), LentNode("two", 2, BEGAN + 6)]
    assert clock.reclaims(BEGAN + 10, held) == ["one", "two"]
    assert clock.give(BEGAN + 19) is None
    assert clock.give(BEGAN + 20) == 2


def test_a_pool_of_a_world_file_is_converted_to_a_plan(tmp_path: Path) -> None:
    trace(tmp_path, 0, 1)
    plan = plan_of(
        "a",
        WorldPool.model_validate(
            {
                "nodes": 3,
                "cpusPerNode": 2,
                "provisionDelay": "2s",
                "notice": "5s",
                "interruptions": {"trace": "trace.json", "speedup": 600},
                "unavailable": [{"from": "60s", "to": "120s"}, {"from": "5m"}],
            }
        ),
        tmp_path,
    )
    assert (plan.nodes, plan.cpus, plan.provision_delay, plan.notice) == (3, 2, 2.0, 5.0)
    assert plan.dry == (Window(60, 120), Window(300))
    assert plan.reclaimed == (Window(1),)
