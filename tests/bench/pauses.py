"""What an event costs a job on real nodes: the time without a step, repeated steps, and nodes that are paid twice."""

from __future__ import annotations

from dataclasses import dataclass

from spotladder.core.model.codec import load_state
from tests.bench.rows import Row
from tests.e2e.steps import ReportedStep
from tests.e2e.world import E2eCluster

DOWNTIME, REDONE, OVERLAP, COUNTED = "downtime, s", "steps redone", "overlap, USD", "counted after, s"
"""Columns of the tables."""

PRICES = (
    "A node costs 0.12 USD per hour on spot and 0.40 USD on demand. A step takes 0.2 s, a commit is made every 5 steps."
)
"""The conditions of all benchmarks on real nodes."""


@dataclass(frozen=True)
class Pause:
    """Seconds between the last step before an event and the first step after it, the number of steps that the job
    repeated, and the cost of second nodes in USD."""

    seconds: float
    repeated: int
    overlap: float

    def row(self, what: str, goal: str, met: bool | None, beside: Pause | None = None, compared_with: str = "-") -> Row:
        """Its row, beside another pause."""
        also = {REDONE: self.repeated, OVERLAP: self.overlap}
        if beside is not None:
            also |= {f"{REDONE} in the reference": beside.repeated}
        return Row(what, self.seconds, "s", compared_with, beside.seconds if beside else None, goal, met, also)


def pause(here: E2eCluster, before: str) -> Pause:
    """Wait for the first new step of a process that starts after the process `before`."""

    def first_new() -> ReportedStep | None:
        last = _last(here, before)
        return next((step for step in here.done() if step.at > last.at and step.step > last.step), None)

    first = here.until("a new step", first_new)
    here.until("the job runs", lambda: here.status()["phase"] == "Running")
    last = _last(here, before)
    again = [step for step in here.done() if last.at < step.at < first.at]
    return Pause(first.at - last.at, len(again), overlap_usd(here))


def _last(here: E2eCluster, process: str) -> ReportedStep:
    return [step for step in here.done() if step.process == process][-1]


def overlap_usd(here: E2eCluster) -> float:
    """What the job has paid so far for nodes beside those with which it trains: standby attempts, hedges, and
    replacements of workers that are still there."""
    return load_state(here.status()["state"]).surplus.total
