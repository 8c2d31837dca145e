"""The pause that an event costs, as the benchmarks on real nodes count it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.bench import pauses
from tests.bench.pauses import Pause, pause
from tests.e2e.steps import ReportedStep
from tests.e2e.world import E2eCluster


class Cluster:
    """A job that has reported these steps (process and number), one a second."""

    def __init__(self, *done: tuple[str, int]) -> None:
        self._done = [ReportedStep(at, "job", 1, process, step) for at, (process, step) in enumerate(done)]

    def done(self) -> list[ReportedStep]:
        return self._done

    def status(self) -> dict[str, Any]:
        return {"phase": "Running"}

    def until(self, what: str, met: Any, limit: float = 0.0) -> Any:
        found = met()
        assert found, what
        return found


@pytest.fixture(autouse=True)
def _free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pauses, "overlap_usd", lambda _here: 0.0)


def of(before: str, *done: tuple[str, int]) -> Pause:
    return pause(cast("E2eCluster", Cluster(*done)), before)


def test_steps_after_the_last_one_of_the_process_before_are_redone() -> None:
    assert of("a", ("a", 1), ("a", 2), ("a", 3), ("b", 2), ("b", 3), ("b", 4)) == Pause(3, 2, 0.0)
    assert of("a", ("a", 1), ("a", 2), ("b", 3)) == Pause(1, 0, 0.0)


def test_steps_of_an_earlier_process_are_not_redone_when_the_job_grows() -> None:
    """A regression test: all steps of the process before the loss counted again when another worker joined."""
    assert of("b", ("a", 1), ("a", 2), ("b", 3), ("c", 4)) == Pause(1, 0, 0.0)
