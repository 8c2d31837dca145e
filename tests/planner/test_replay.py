"""Replays of recorded runs: of simulated ones, whose truth is known, and of the recorded demo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spotladder.core import lifecycle
from spotladder.core.codec import load_state
from spotladder.core.model import CapacityType, Decision, JobSpec, JobState, Loss, Move, Price, Spell, Stage, Tier
from spotladder.core.reasons import Cause, Reason
from spotladder.display.records import Began, Committed, Lost, Moved, PoolChanged, Record, Resized
from spotladder.display.timeline import read
from spotladder.errors import InvalidSpec
from spotladder.planner.replay.capacity import TierCapacity, recorded_capacity
from spotladder.planner.replay.history import RecordedRun, history
from spotladder.policies import registry
from spotladder.sim.scenario import Scenario, simulate
from spotladder.sim.world import run as simulation
from spotladder.sim.world.market import START
from spotladder.sim.world.run import SimulationOutcome, SimulationRun
from tests.sim.builders import HOUR, market, runner, zone

DEMO = Path(__file__).parent / "demo"


def recorded(job: SimulationRun, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Record], JobState, SimulationOutcome]:
    """The records of a simulated run, as a runner writes them."""
    records: list[Record] = [Began(START, "digits", "default", job.spec)]
    sizes: dict[int, int] = {}

    def spy(spec: JobSpec, state: JobState, seen: Any, now: float, policy: Any) -> Decision:
        decision = lifecycle.decide(spec, state, seen, now, policy)
        progress, attempt = decision.state.progress, decision.state.attempt
        if progress.step > state.progress.step:
            records.append(Committed(now, progress.attempt, decision.state.tier, progress.step, progress.total))
        size = seen.attempt(attempt.number).size if attempt is not None and seen.attempt(attempt.number) else None
        if spec.min_workers is not None and attempt is not None and size and sizes.get(attempt.number) != size:
            records.append(Resized(now, attempt.number, size, spec.workers))
            sizes[attempt.number] = size
        records.extend(Lost(now, loss, 0) for loss in decision.losses)
        records.extend(Moved(now, move) for move in decision.moves)
        return decision

    monkeypatch.setattr(simulation, "decide", spy)
    (outcome,) = simulation.run(job.backend.market, [job], 100 * HOUR)
    monkeypatch.undo()
    return records, replace(job.state, ended_at=job.state.ended_at), outcome


def tiers_of(found: SimulationOutcome) -> list[str]:
    return [step.move.tier for step in found.path if step.move.target is Stage.STARTING]


STEPS: dict[str, tuple[tuple[float, int], ...]] = {
    "nothing happens": ((0, 2),),
    "a node is lost and replaced": ((0, 2), (1000, 1), (1200, 2)),
    "a node is lost twice": ((0, 2), (1000, 1), (1200, 2), (2500, 1)),
    "no capacity": ((0, 0),),
    "all nodes are lost": ((0, 2), (1500, 0)),
}


@pytest.mark.parametrize("notice", [0.0, 60.0])
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("max_failures", [0, 3])
def test_a_replay_with_the_recorded_settings_repeats_the_run(
    max_failures: int, steps: tuple[tuple[float, int], ...], notice: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = market(
        zone("spot", *steps, notice=notice, provision_delay=40.0), zone("on-demand", price=3.0, provision_delay=40.0)
    )
    records, state, was = recorded(runner(here, workers=2, max_failures=max_failures), monkeypatch)
    found = history(records, state)
    again = simulate(found.low, "ordered", 0)
    assert (again.succeeded, tiers_of(again), again.evictions) == (was.succeeded, tiers_of(was), was.evictions)
    assert again.finished == pytest.approx(was.finished, rel=0.05)
    assert again.cost == pytest.approx(was.cost, rel=0.05)
    assert found.result.cost == pytest.approx(was.cost, rel=0.01)


def test_the_work_contains_no_starts_of_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller's own figure may contain the time from the last commit of an attempt to the first one of the
    next."""
    here = market(zone("spot", (0, 2), (1000, 1), (1200, 2)), zone("on-demand", price=3.0))
    records, state, _was = recorded(runner(here, workers=2, max_failures=3), monkeypatch)
    found = history(records, replace(state, timed_seconds=3 * state.timed_seconds))
    assert found.low.program.work == pytest.approx(HOUR, rel=0.02)


def test_a_replayed_job_learns_its_work_as_the_recorded_one_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its work known from the start, the job would not have begun on spot: the deadline is too near."""
    here = market(
        zone("spot", (0, 2), (1500, 0), notice=60.0, provision_delay=40.0),
        zone("on-demand", price=3.0, provision_delay=40.0),
    )
    job = runner(here, workers=2, policy=registry.by_name("uniform-progress"), spec={"max_duration": HOUR + 300.0})
    records, state, was = recorded(job, monkeypatch)
    found = history(records, state).low
    again, known = (
        simulate(replace(found, measured=measured), "uniform-progress", 0) for measured in (found.measured, False)
    )
    assert tiers_of(again) == tiers_of(was) == ["spot", "on-demand"]
    assert tiers_of(known) == ["on-demand"]


ELASTIC_STEPS: dict[str, tuple[tuple[float, int], ...]] = {
    "all nodes": ((0, 4),),
    "fewer nodes": ((0, 2),),
    "more nodes later": ((0, 2), (1500, 4)),
    "a node is lost and comes back": ((0, 4), (1500, 3), (2500, 4)),
    "fewer than the minimum": ((0, 4), (1500, 1)),
}


@pytest.mark.parametrize("steps", ELASTIC_STEPS.values(), ids=ELASTIC_STEPS)
def test_a_replay_of_an_elastic_job_trains_with_the_recorded_sizes(
    steps: tuple[tuple[float, int], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = market(zone("spot", *steps, provision_delay=40.0), zone("on-demand", price=3.0, provision_delay=40.0))
    job = runner(here, workers=4, max_failures=3, sizes=(2, 3, 4), hands_over=True, spec={"min_workers": 2})
    records, state, was = recorded(job, monkeypatch)
    found = history(records, state)
    again = simulate(found.low, "ordered", 0)
    assert found.low.program.sizes == (2, 3, 4)
    assert found.low.program.work == pytest.approx(HOUR, rel=0.02)
    assert (again.succeeded, tiers_of(again), again.evictions) == (was.succeeded, tiers_of(was), was.evictions)
    assert again.finished == pytest.approx(was.finished, rel=0.05)
    assert again.cost == pytest.approx(was.cost, rel=0.05)


def tolerating(found: RecordedRun, name: str, failures: int) -> RecordedRun:
    """The same history with another maxFailures of one tier."""

    def changed(scenario: Scenario) -> Scenario:
        tiers = tuple(replace(one, max_failures=failures) if one.name == name else one for one in scenario.spec.tiers)
        return replace(scenario, spec=replace(scenario.spec, tiers=tiers))

    return replace(found, low=changed(found.low), high=changed(found.high))


def test_what_another_setting_would_have_cost_lies_in_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """With maxFailures 0 the job left spot at once, so the record does not tell that the node came back after 60 s."""

    def job(max_failures: int) -> SimulationRun:
        plans = zone("spot", (0, 2), (1000, 1), (1060, 2)), zone("on-demand", price=3.0)
        return runner(market(*plans), workers=2, max_failures=max_failures)

    records, state, _ = recorded(job(0), monkeypatch)
    found = tolerating(history(records, state), "spot", 3)
    low, high = (simulate(scenario, "ordered", 0) for scenario in (found.low, found.high))
    (truth,) = simulation.run((other := job(3)).backend.market, [other], 100 * HOUR)
    assert found.uncertain == ("spot",)
    assert high.cost == pytest.approx(truth.cost, rel=0.05)
    assert low.cost > 1.5 * high.cost
    assert low.node_hours["on-demand"] > 0
    assert high.node_hours["on-demand"] == 0


def test_the_demo_is_repeated() -> None:
    records, state = read(DEMO / "timeline.jsonl").records, load_state((DEMO / "state.json").read_text())
    found = history(records, state)
    assert found.low.program.work == pytest.approx(500 * 0.065, rel=0.1)
    again = simulate(found.low, "ordered", 0)
    assert tiers_of(again) == ["spot-a", "spot-b", "spot-c", "on-demand"]
    assert again.succeeded
    assert again.cost == pytest.approx(state.spent_usd, rel=0.1)
    assert again.finished == pytest.approx(207.7, rel=0.03)
    other = tolerating(found, "spot-a", 3)
    assert simulate(other.high, "ordered", 0).cost < simulate(found.high, "ordered", 0).cost


# --- capacity --------------------------------------------------------------------------------------------------------

SPOT = Tier("spot", 3, price=Price(1.0, 3.0), capacity_type=CapacityType.SPOT, notice=30.0)
BACKUP = Tier("on-demand", -1, price=Price(3.0, 3.0))
SPEC = JobSpec((SPOT, BACKUP), workers=4)


def moved(at: float, target: Stage, reason: Reason, attempt: int = 1, tier: str = "spot") -> Moved:
    return Moved(at, Move(Stage.IDLE, target, reason, attempt, tier))


def lost(at: float, cause: Cause = Cause.INTERRUPTION, *, noticed: bool = False) -> Lost:
    return Lost(at, Loss("pod", cause, 1, "spot", noticed), 1)


START_IT, READY = moved(0, Stage.STARTING, Reason.STARTED), moved(100, Stage.RUNNING, Reason.ALL_READY)


def capacity(*records: Record, state: JobState | None = None) -> TierCapacity:
    return recorded_capacity(records, state or JobState(), SPEC, 0.0)[0]


def test_capacity_is_complete_until_a_loss_and_again_before_the_gang_is_ready() -> None:
    found = capacity(START_IT, READY, lost(1000), lost(1000), moved(1500, Stage.RUNNING, Reason.ALL_READY))
    assert found.changes == ((0, 4), (1000, 2), (1400, 4))
    assert found.ready_after == 100
    assert not found.uncertain


def test_capacity_is_unknown_after_the_attempt() -> None:
    found = capacity(START_IT, READY, lost(1000), moved(1010, Stage.IDLE, Reason.GONE))
    assert found.changes == ((0, 4), (1000, 3), (1010, None))
    assert found.assumed(4, complete=False)[-1] == (1010, 3)
    assert found.assumed(4, complete=True)[-1] == (1010, 4)


def test_an_attempt_that_waits_without_success_has_no_capacity() -> None:
    ended = moved(600, Stage.ENDING, Reason.INSUFFICIENT_CAPACITY), moved(601, Stage.IDLE, Reason.GONE)
    assert capacity(START_IT, *ended).changes == ((0, 0), (601, None))
    crashed = moved(600, Stage.ENDING, Reason.START_CRASHED), moved(601, Stage.IDLE, Reason.GONE)
    assert capacity(START_IT, *crashed).changes == ((0, 4), (601, None))


def test_a_later_attempt_that_waits_longer_than_the_first_got_capacity_late() -> None:
    records = (
        START_IT,
        READY,
        moved(500, Stage.IDLE, Reason.GONE),
        moved(1000, Stage.STARTING, Reason.STARTED, 2),
        moved(1400, Stage.RUNNING, Reason.ALL_READY, 2),
    )
    assert capacity(*records).changes == ((0, 4), (500, None), (1000, 0), (1300, 4))


def test_losses_that_are_not_the_tiers_leave_its_capacity() -> None:
    assert capacity(START_IT, READY, lost(1000, Cause.OOM_KILLED), lost(1100, Cause.MAINTENANCE)).changes == ((0, 4),)


def test_a_loss_without_a_record_follows_from_the_end_of_its_attempt() -> None:
    found = capacity(START_IT, READY, moved(1000, Stage.IDLE, Reason.EVICTION_NOTICE))
    assert found.changes == ((0, 4), (1000, 3), (1001, None))
    assert found.notice == 30.0


@pytest.mark.parametrize(("noticed", "notice"), [(True, 30.0), (False, 0.0)])
def test_the_notice_is_that_of_the_losses(noticed: bool, notice: float) -> None:
    assert capacity(START_IT, READY, lost(1000, noticed=noticed)).notice == notice


def test_pools_and_spells_record_the_capacity_at_times_without_an_attempt() -> None:
    assert capacity(PoolChanged(0, "spot", available=False), PoolChanged(50, "spot", available=True)).changes == (
        (0, 0),
        (50, 4),
    )
    state = JobState()
    record = replace(state.record("spot"), spells=(Spell(False, 10.0, 20.0), Spell(True, 40.0, 90.0)))
    found = capacity(state=replace(state, tiers=(record,)))
    assert found.changes == ((10, 0), (21, None), (40, 4), (91, None))


def test_on_demand_has_capacity_unless_an_attempt_waited_for_it() -> None:
    other = recorded_capacity((START_IT, READY), JobState(), SPEC, 0.0)[1]
    assert (other.changes, other.uncertain) == (((0, 4),), False)


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ((), "has no recorded run"),
        ((Began(0, "digits", "default", SPEC),), "has not reported how many steps it has: specify --hours"),
    ],
)
def test_incomplete_records_are_rejected(records: tuple[Record, ...], said: str) -> None:
    with pytest.raises(InvalidSpec, match=said):
        history(records, JobState())


def test_the_time_for_which_the_job_was_suspended_is_an_assumption() -> None:
    stopped = Moved(300, Move(Stage.DRAINING, Stage.SUSPENDED, Reason.STOP_REQUESTED, 1, "spot"))
    resumed = Moved(420, Move(Stage.SUSPENDED, Stage.IDLE, Reason.RESUME_REQUESTED, 1, "spot"))
    opening = Began(0, "digits", "default", SPEC), START_IT, READY
    said = "the run was suspended for 2m, the replay is not"
    assert said in history((*opening, stopped, resumed), JobState(), hours=2.0).assumptions
    assert not [line for line in history(opening, JobState(), hours=2.0).assumptions if "suspended" in line]


def test_the_work_can_be_set_in_hours() -> None:
    found = history((Began(0, "digits", "default", SPEC), START_IT, READY), JobState(), hours=2.0)
    assert found.low.program.work == 2 * HOUR
    assert simulate(found.low, "ordered", 0).succeeded
