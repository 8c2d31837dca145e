"""The stacks of a rank that makes no step: when they are written, and when not."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from spotladder.train.hangs import SHORTEST, STEPS_MISSED, StackWatch


class WatchedRank:
    """A rank with a stepped clock."""

    def __init__(self, *, per_step: float, steps: int = 20, **more: Any) -> None:
        self.now = 0.0
        self.written = 0
        self.reports: list[str] = []
        self.watch = StackWatch(3, lambda: self.now, self._write, report=self.reports.append, **more)
        self.watch._closed.set()  # no thread: the test calls `look`
        self.watch.step()
        for _ in range(steps):
            self.step(per_step)

    def _write(self) -> None:
        self.written += 1

    def step(self, after: float) -> None:
        self.now += after
        self.watch.step()

    def quiet(self, seconds: float) -> int:
        """How often the stacks were written while no step was made for this time."""
        before, end = self.written, self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 5.0)
            self.watch.look()
        return self.written - before


@pytest.mark.parametrize(
    ("per_step", "quiet", "written"),
    [
        pytest.param(0.01, SHORTEST - 1, 0, id="short steps, less than a minute"),
        pytest.param(0.01, SHORTEST + 5, 1, id="short steps, a minute"),
        pytest.param(30.0, STEPS_MISSED * 30 - 1, 0, id="long steps, less than ten of them"),
        pytest.param(30.0, STEPS_MISSED * 30 + 5, 1, id="long steps, ten of them"),
        pytest.param(0.01, 3600, 1, id="once, however long"),
    ],
)
def test_stacks_are_written_after_a_minute_or_ten_steps_without_a_step(
    per_step: float, quiet: float, written: int
) -> None:
    assert WatchedRank(per_step=per_step).quiet(quiet) == written


def test_stacks_are_written_again_when_the_program_hangs_again() -> None:
    rank = WatchedRank(per_step=1.0)
    assert rank.quiet(100) == 1
    rank.step(1.0)
    assert rank.quiet(100) == 1


@pytest.mark.parametrize(
    ("per_step", "more", "limit"),
    [
        pytest.param(0.01, {"shortest": 300.0}, 300, id="hangTimeout"),
        pytest.param(0.01, {"shortest": 5.0}, 5, id="a shorter hangTimeout"),
        pytest.param(1.0, {"shortest": 5.0}, 10, id="never less than ten steps"),
        pytest.param(0.01, {"hangs": 2}, 4 * SHORTEST, id="doubled at each hang"),
        pytest.param(30.0, {"hangs": 1}, 600, id="ten steps doubled"),
    ],
)
def test_the_time_without_a_step_is_set_by_the_job_and_doubled_by_its_hangs(
    per_step: float, more: dict[str, Any], limit: float
) -> None:
    assert WatchedRank(per_step=per_step, **more).quiet(limit - 0.1) == 0
    assert WatchedRank(per_step=per_step, **more).quiet(limit + 5) == 1


def test_the_time_of_a_commit_is_not_time_without_a_step() -> None:
    rank = WatchedRank(per_step=1.0)
    with rank.watch.pause():
        with rank.watch.pause():
            assert rank.quiet(3600) == 0
        assert rank.quiet(3600) == 0
    assert rank.quiet(SHORTEST - 1) == 0
    assert rank.quiet(6) == 1


def test_a_hang_is_reported_after_the_other_ranks_had_time_to_write_their_stacks() -> None:
    rank = WatchedRank(per_step=1.0)
    rank.quiet(SHORTEST + 5)
    assert (rank.written, rank.reports) == (1, [])
    rank.quiet(3600)
    assert rank.reports == ["no step for 70 s (a step takes 1 s); the stacks of its ranks are in their output"]


def test_the_stacks_of_all_threads_are_in_the_output_of_the_process() -> None:
    program = (
        "import threading, time\n"
        "from spotladder.train.hangs import write_stacks\n"
        "def waits_for_a_peer(): time.sleep(60)\n"
        "threading.Thread(target=waits_for_a_peer, daemon=True).start()\n"
        "write_stacks()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=True)
    assert "waits_for_a_peer" in done.stderr
    assert done.stderr.count("Thread 0x") == 2 or "Current thread" in done.stderr
