"""Ray Tune on a local Ray cluster: a sweep on two nodes loses one, is interrupted, and resumes in another attempt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.train.builders import log_of, newest_of
from tests.train.machine import RayMachines
from tests.waiting import until

pytestmark = [pytest.mark.ray, pytest.mark.frameworks]


def runs(folder: Path) -> dict[int, list[int]]:
    """The first step of every run of each trial."""
    return {
        int(file.name.removeprefix("ran-")): [int(line) for line in file.read_text().splitlines()]
        for file in folder.glob("ran-*")
    }


def finished(folder: Path) -> int:
    newest = log_of(folder).newest()
    return newest.step if newest else 0


def test_finished_trials_do_not_run_again(machine: RayMachines, tmp_path: Path) -> None:
    notice = tmp_path / "notice"
    notice.touch()
    config = {"steps": 8, "pause": 0.4}
    driver = machine.driver("sweep", tmp_path, config, notice=notice, interval="5s", TUNE_GLOBAL_CHECKPOINT_S=1)
    until(lambda: finished(tmp_path) >= 2)
    machine.lose_a_node()
    notice.write_text('{"kind": "drain", "reason": "EvictionNotice"}')
    assert driver.wait(600) == 75
    done, before = finished(tmp_path), runs(tmp_path)
    assert 2 <= done < 5
    again = machine.driver("sweep", tmp_path, config, attempt=2, interval="5s", TUNE_GLOBAL_CHECKPOINT_S=1)
    assert again.wait(600) == 0
    assert json.loads((tmp_path / "result").read_text()) == [8, 16, 24, 32, 40]
    after = runs(tmp_path)
    assert sum(after[x] == before[x] for x in before) >= done
    newest = newest_of(tmp_path)
    assert (newest.attempt, newest.step, newest.total) == (2, 5, 5)
