"""When a sweep of Ray Tune commits its state, without a cluster: the callback gets trials that the test has made."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spotladder.train import raytune
from spotladder.train.pending import Checkpoint

INTERVAL = 5.0


class Sweep:
    """A sweep of two trials with a stepped clock. Ray has written a new state before each step."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.now, self.writes = folder, 0.0, 0
        self.committed: list[Checkpoint] = []
        self.trials = [self._trial(), self._trial()]
        self.listener = SimpleNamespace(poll=lambda: None, request=None)
        commits = SimpleNamespace(
            check=lambda: None, submit=self.committed.append, wait=lambda: None, busy=False, away=False
        )
        member: Any = SimpleNamespace(
            environment=SimpleNamespace(interval=SimpleNamespace(seconds=INTERVAL)),
            commits=commits,
            listener=self.listener,
            heartbeat=SimpleNamespace(beat=lambda *_, **__: None),
            writer=None,
        )
        monkeypatch.setattr(raytune, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(raytune, "_sweep", None)  # It is restored after the test.
        raytune.watch(member, "sweep")
        self.callback = raytune.StateCommits()

    def _trial(self) -> SimpleNamespace:
        storage = SimpleNamespace(experiment_driver_staging_path=str(self.folder))
        return SimpleNamespace(status="RUNNING", last_result=None, storage=storage)

    def reports(self, trial: int, iteration: int) -> None:
        self.trials[trial].last_result = {"training_iteration": iteration}

    def commits_after(self, seconds: float) -> int:
        """The number of commits of a step of Ray Tune after this time."""
        self.now += seconds
        self.writes += 1
        state = self.folder / "experiment_state-1.json"
        state.write_text("{}")
        os.utime(state, (self.writes, self.writes))
        before = len(self.committed)
        self.callback.on_step_end(self.writes, self.trials)
        return len(self.committed) - before


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sweep:
    return Sweep(tmp_path, monkeypatch)


def test_a_sweep_without_new_results_commits_nothing_more(sweep: Sweep) -> None:
    sweep.reports(0, 1)
    assert sweep.commits_after(INTERVAL) == 1
    for trial in sweep.trials:
        trial.status = "PAUSED"
    assert [sweep.commits_after(INTERVAL) for _ in range(5)] == [0] * 5
    sweep.reports(1, 1)
    assert sweep.commits_after(0.1) == 1, "the interval is over"


def test_a_trial_that_ends_is_committed_before_the_end_of_the_interval(sweep: Sweep) -> None:
    sweep.reports(0, 1)
    sweep.commits_after(INTERVAL)
    sweep.trials[0].status = "TERMINATED"
    assert sweep.commits_after(raytune.COMMIT_INTERVAL) == 1
    assert sweep.committed[-1].step == 1


def test_a_request_commits_a_sweep_without_new_results(sweep: Sweep) -> None:
    sweep.reports(0, 1)
    sweep.commits_after(INTERVAL)
    sweep.listener.request = "a standby attempt takes over"
    assert sweep.commits_after(0.1) == 1
    assert sweep.commits_after(INTERVAL) == 0
