"""A replay of a job on a cluster from the losses that its state keeps: as exact as with the Events of these losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.model import FailureUnit, JobState
from spotladder.display.records import Committed, Lost, Noted, Record
from spotladder.display.retrace import retraced
from spotladder.planner.replay.history import RecordedRun, history
from spotladder.sim.scenario import simulate
from spotladder.sim.world.market import START
from spotladder.sim.world.run import SimulationOutcome, SimulationRun
from tests.planner.test_replay import recorded, tiers_of
from tests.sim.builders import HOUR, market, runner, zone


def rebuilt(job: SimulationRun, state: JobState, records: list[Record], *, events: bool) -> RecordedRun:
    """The run as `replay` rebuilds it, with or without the Events of all losses."""
    noted: list[Lost | Noted] = [record for record in records if isinstance(record, Lost)] if events else []
    commits = [record for record in records if isinstance(record, Committed)]
    found = retraced("digits", "a", job.spec, state, commits=commits, noted=noted, now=START + 100 * HOUR)
    return history(found.records, state)


def repeats(again: SimulationOutcome, was: SimulationOutcome) -> None:
    assert (again.succeeded, tiers_of(again), again.evictions) == (was.succeeded, tiers_of(was), was.evictions)
    assert again.finished == pytest.approx(was.finished, rel=0.05)
    assert again.cost == pytest.approx(was.cost, rel=0.05)


STEPS: dict[str, tuple[tuple[float, int], ...]] = {
    "a node is lost and replaced": ((0, 2), (1000, 1), (1200, 2)),
    "a node is lost and replaced late": ((0, 2), (1000, 1), (1700, 2)),
    "a node is lost twice": ((0, 2), (1000, 1), (1200, 2), (2500, 1), (2600, 2)),
    "a node is lost, and then for good": ((0, 2), (1000, 1), (1200, 2), (2500, 1)),
    "all nodes are lost together": ((0, 2), (1000, 0), (1200, 2)),
    "the only node is lost during the start": ((0, 1), (200, 0), (400, 2)),
}

STARTS: dict[str, tuple[tuple[float, int], ...]] = {
    "a node is lost and replaced": ((0, 2), (60, 1), (300, 2)),
    "a node is lost for good": ((0, 2), (60, 1)),
    "a node is lost, and again later": ((0, 2), (60, 1), (300, 2), (2000, 1)),
    "all nodes are lost": ((0, 2), (60, 0), (300, 2)),
}


def repeated(
    steps: Sequence[tuple[float, int]], max_failures: int, monkeypatch: pytest.MonkeyPatch, **more: Any
) -> JobState:
    """The state of a run on such a tier, whose replay without Events repeats it."""
    here = market(
        zone("spot", *steps, provision_delay=40.0, **more), zone("on-demand", price=3.0, provision_delay=40.0)
    )
    job = runner(here, workers=2, max_failures=max_failures)
    records, state, was = recorded(job, monkeypatch)
    found, with_events = (rebuilt(job, state, records, events=events) for events in (False, True))
    again = simulate(found.low, "ordered", 0)
    assert (found.assumptions, again) == (with_events.assumptions, simulate(with_events.low, "ordered", 0))
    assert not [line for line in found.assumptions if "loss" in line or "failure" in line]
    repeats(again, was)
    return state


@pytest.mark.parametrize("notice", [0.0, 60.0])
@pytest.mark.parametrize("max_failures", [0, 3])
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_a_replay_without_events_repeats_the_run(
    steps: tuple[tuple[float, int], ...], max_failures: int, notice: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program writes no heartbeats."""
    assert repeated(steps, max_failures, monkeypatch, notice=notice).losses


@pytest.mark.parametrize("max_failures", [0, 3])
@pytest.mark.parametrize("steps", STARTS.values(), ids=STARTS)
def test_a_replay_repeats_a_loss_before_all_workers_were_ready(
    steps: tuple[tuple[float, int], ...], max_failures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = repeated(steps, max_failures, monkeypatch, boot=60.0).losses[0]
    assert (first.at, first.attempt) == (START + 60, 1)


def test_workers_that_are_lost_together_are_known_to_be_one_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    here = market(zone("spot", (0, 3), (1000, 1), (1200, 3)), zone("on-demand", price=3.0))
    job = runner(here, workers=3, max_failures=1, spec={"failure_unit": FailureUnit.INTERRUPTION})
    records, state, was = recorded(job, monkeypatch)
    assert [(one.pods, one.failures) for one in state.losses] == [(2, 1)]
    repeats(simulate(rebuilt(job, state, records, events=False).low, "ordered", 0), was)


def test_the_events_tell_what_an_older_version_did_not_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    here = market(zone("spot", (0, 2), (1000, 1), (1200, 2), (2500, 1), (2600, 2)), zone("on-demand", price=3.0))
    job = runner(here, workers=2, max_failures=3)
    records, state, was = recorded(job, monkeypatch)
    older = replace(state, losses=state.losses[1:])
    found = rebuilt(job, older, records, events=True)
    repeats(simulate(found.low, "ordered", 0), was)
    lacks = "1 loss that the record lacks was when the steps of the heartbeats, the capacity or the attempt ended"
    assert lacks not in found.assumptions
    assert lacks in rebuilt(job, older, records, events=False).assumptions
