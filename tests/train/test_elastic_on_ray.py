"""An elastic job of Ray Train on a local Ray cluster that loses and gains nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spotladder.checkpoints.progress import progress
from tests.train.builders import log_of, newest_step
from tests.train.machine import RayMachines
from tests.waiting import until

pytestmark = [pytest.mark.ray, pytest.mark.frameworks]

ELASTIC = {"sizes": "1,2", "grow_after": "0s"}
WATCHER = {"RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": 1, "RAY_TRAIN_PREEMPTION_POLL_INTERVAL_S": 0.5}


def starts(folder: Path, rank: int = 0) -> list[tuple[int, int]]:
    """The size of each worker group in which this rank ran, and the step from which it resumed."""
    path = folder / f"starts-{rank}"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(int(size), int(step)) for size, step in (line.split() for line in lines)]


def steps_with(folder: Path, size: int) -> list[int]:
    """The steps that rank 0 has done with this number of workers."""
    path = folder / "shares-0"
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [int(step) for step, workers, _ in lines if int(workers) == size]


def beat(folder: Path) -> dict[str, Any]:
    path = folder / "heartbeat"
    return json.loads(path.read_text()) if path.exists() else {}


def test_a_raytrain_job_continues_with_fewer_workers_and_grows_again_without_repeating_a_step(
    machine: RayMachines, tmp_path: Path
) -> None:
    config = {"total": 100_000, "pause": 0.02}
    driver = machine.driver("elastic_loop", tmp_path, config, heartbeat=tmp_path / "heartbeat", **ELASTIC)
    until(lambda: newest_step(tmp_path) >= 20)
    assert (starts(tmp_path), beat(tmp_path)["workers"]) == ([(2, 0)], 2)
    assert progress(log_of(tmp_path)).workers == 2
    machine.lose_a_node(replaced=False)
    try:
        until(lambda: len(starts(tmp_path)) == 2)
        smaller, resumed = starts(tmp_path)[1]
        assert smaller == 1
        assert resumed >= 20
        until(lambda: newest_step(tmp_path) > resumed + 10)
        assert beat(tmp_path)["workers"] == progress(log_of(tmp_path)).workers == 1
    finally:
        machine.add_a_node()
    until(lambda: len(starts(tmp_path)) == 3)
    larger, handed_over = starts(tmp_path)[2]
    assert larger == 2
    assert steps_with(tmp_path, 1) == list(range(resumed + 1, handed_over + 1)), "the last step is committed"
    until(lambda: newest_step(tmp_path) >= handed_over + 10)
    assert handed_over + 1 in steps_with(tmp_path, 2), "no step is repeated"
    assert driver.poll() is None


def test_a_draining_node_of_raytrain_is_handed_over_and_the_others_continue(
    machine: RayMachines, tmp_path: Path
) -> None:
    config = {"total": 100_000, "pause": 0.02}
    driver = machine.driver("elastic_loop", tmp_path, config, interval="1h", **ELASTIC, **WATCHER)
    until((tmp_path / "starts-1").exists)
    until(lambda: len(steps_with(tmp_path, 2)) > 5)
    machine.reclaim_a_node(notice=60)
    try:
        until(lambda: len(starts(tmp_path)) == 2)
        assert starts(tmp_path)[1] == (1, newest_step(tmp_path)), "it has committed before the node is gone"
        assert starts(tmp_path)[1][1] == max(steps_with(tmp_path, 2)), "no step is repeated"
        until(lambda: len(steps_with(tmp_path, 1)) > 5)
        assert driver.poll() is None
    finally:
        machine.lose_a_node()
