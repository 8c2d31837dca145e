"""The decisions of a run, one by one: each change of the job's stage, and each counted failure with its cause.

The controller logs every decision that it has stored. The simulator returns them with the outcome.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from spotladder.core.model import Instant, Loss, Move, Seconds, Stage
from spotladder.core.reasons import Cause, Reason
from spotladder.sim.world.run import SimulationOutcome
from tests.e2e.kube import Kube
from tests.e2e.site import SYSTEM

FAILURE = "a failure"


@dataclass(frozen=True)
class DayDecision:
    """One decision, in seconds after the job's start. `why` is the reason of a change of stage or the cause of a
    failure. `step` is the committed step from which a new attempt goes on; None for other decisions."""

    at: Seconds
    what: str
    why: str
    attempt: int
    tier: str
    step: float | None = None

    @property
    def kind(self) -> tuple[str, str, int, str]:
        """All but the time and the step."""
        return self.what, self.why, self.attempt, self.tier

    def __str__(self) -> str:
        resumed = "" if self.step is None else f" from step {self.step:.0f}"
        return f"{self.at:6.1f} s  {self.what} ({self.why}), attempt {self.attempt} on {self.tier}{resumed}"


def of_move(at: Seconds, move: Move, step: float) -> DayDecision:
    """A change of the stage."""
    resumed = step if move.target is Stage.STARTING else None
    return DayDecision(at, f"{move.source} → {move.target}", str(move.reason), move.attempt, move.tier, resumed)


def of_loss(at: Seconds, loss: Loss) -> DayDecision:
    """A counted failure."""
    return DayDecision(at, FAILURE, loss.cause, loss.attempt, loss.tier)


def decided(outcome: SimulationOutcome, steps: int, work: Seconds) -> list[DayDecision]:
    """The decisions of the simulator for a program that does this number of steps in the time `work`."""
    losses = [of_loss(one.at, one.loss) for one in outcome.losses]
    moves = [of_move(one.at, one.move, one.committed * steps / work) for one in outcome.path]
    return sorted([*losses, *moves], key=lambda one: one.at)  # A decision counts failures first; the sort is stable.


def logged(namespace: str, began: Instant, resumed: Mapping[int, int], kubeconfig: Path) -> list[DayDecision]:
    """The decisions in the logs of the installed controllers about the job of this namespace, oldest first. `resumed`
    has the step from which each attempt went on."""
    system = Kube(kubeconfig, SYSTEM)
    pods = system.list("pods", "app.kubernetes.io/name=spotladder")
    lines = [line for pod in pods for line in system.run("logs", pod["metadata"]["name"]).splitlines()]
    found = [one for one in map(_entry, lines) if one.get("namespace") == namespace]
    return sorted(_decisions(found, began, resumed), key=lambda one: one.at)


def _entry(line: str) -> Mapping[str, Any]:
    """A line of the log; {} if it is not JSON."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _decisions(
    entries: Iterable[Mapping[str, Any]], began: Instant, resumed: Mapping[int, int]
) -> Iterator[DayDecision]:
    for entry in entries:
        if entry["event"] not in ("moved", "lost"):
            continue
        at = datetime.fromisoformat(entry["timestamp"]).timestamp() - began
        attempt, tier = entry["attempt"], entry["tier"]
        if entry["event"] == "lost":
            yield of_loss(at, Loss(entry["pod"], Cause(entry["cause"]), attempt, tier))
        else:
            source, target = Stage(entry["source"]), Stage(entry["target"])
            move = Move(source, target, Reason(entry["reason"]), attempt, tier)
            yield of_move(at, move, resumed.get(attempt, 0))


def agree(seen: Sequence[DayDecision], expected: Sequence[DayDecision], tolerance: Seconds, step: Seconds) -> None:
    """Both runs change the stage in the same order, for the same reasons, and count the same failures. `tolerance` is
    for each time, and `step` the duration of a step.

    The order of the failures of one attempt is not compared: the controller observes the nodes of a notice one after
    the other, and has begun to drain the attempt then.
    """
    ours, theirs = ([one for one in run if one.what != FAILURE] for run in (seen, expected))
    assert [one.kind for one in ours] == [one.kind for one in theirs]
    failures = [sorted((one for one in run if one.what == FAILURE), key=_attempt) for run in (seen, expected)]
    assert [one.kind for one in failures[0]] == [one.kind for one in failures[1]]
    for one, other in (*zip(ours, theirs, strict=True), *zip(*failures, strict=True)):
        assert abs(one.at - other.at) <= tolerance, f"{one}; predicted: {other}"
        if one.step is not None and other.step is not None:
            assert abs(one.step - other.step) * step <= tolerance, f"{one}; predicted: {other}"


def _attempt(one: DayDecision) -> tuple[int, str]:
    return one.attempt, one.why
