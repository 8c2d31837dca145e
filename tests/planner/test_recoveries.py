"""Losses from which a job on a cluster recovered inside an attempt, and which its state does not keep, after Kubernetes
has deleted their Events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from spotladder.core import lifecycle
from spotladder.core.model import (
    Attempt,
    AttemptRecord,
    CapacityType,
    Decision,
    FailureUnit,
    JobSpec,
    JobState,
    Loss,
    Price,
    Spell,
    Stage,
    Steps,
    Tier,
    TierRecord,
)
from spotladder.core.reasons import Cause, Reason
from spotladder.display.records import Committed, Lost, Resized
from spotladder.display.retrace import retraced
from spotladder.planner.replay.capacity import TierCapacity, recorded_capacity
from spotladder.planner.replay.history import history
from spotladder.planner.replay.recoveries import Recovered, with_recoveries
from spotladder.sim.scenario import simulate
from spotladder.sim.world import run as simulation
from spotladder.sim.world.market import START
from spotladder.sim.world.run import SimulationOutcome, SimulationRun
from tests.planner.test_replay import recorded
from tests.sim.builders import HOUR, market, runner, zone

HEARTBEAT = 5.0


class Watched(SimulationRun):
    """A job whose controller reads its heartbeats."""

    def decide(self) -> None:
        super().decide()
        self.wake_at = min(self.wake_at, self.backend.market.now + HEARTBEAT)


def _worked(job: SimulationRun) -> float:
    """The finished work in seconds, including work that is not committed yet."""
    backend = job.backend
    running = (one.program.step(backend.market.now) for one in backend._attempts.values() if one.program)
    return max((backend.log.committed, *running))


def run_on_a_cluster(job: SimulationRun, monkeypatch: pytest.MonkeyPatch) -> tuple[SimulationOutcome, list[Committed]]:
    """The truth, and the commit log. The state of the job has the steps of its heartbeats."""
    watched = Watched(job.spec, job.policy, job.backend)
    commits: list[Committed] = []

    def spy(spec: JobSpec, state: JobState, seen: Any, now: float, policy: Any) -> Decision:
        step = int(_worked(job)) if job.backend.training else 0
        attempts = tuple(replace(one, step=step) for one in seen.attempts)
        decision = lifecycle.decide(spec, state, replace(seen, attempts=attempts), now, policy)
        progress = decision.state.progress
        if progress.step > state.progress.step:
            commits.append(Committed(now, progress.attempt, decision.state.tier, progress.step, progress.total))
        return decision

    monkeypatch.setattr(simulation, "decide", spy)
    (outcome,) = simulation.run(job.backend.market, [watched], 100 * HOUR)
    monkeypatch.undo()
    job.state = watched.state
    return outcome, commits


STEPS: dict[str, tuple[tuple[float, int], ...]] = {
    "a node is lost and replaced": ((0, 2), (1000, 1), (1200, 2)),
    "a node is lost and replaced late": ((0, 2), (1000, 1), (1700, 2)),
    "a node is lost twice": ((0, 2), (1000, 1), (1200, 2), (2500, 1), (2600, 2)),
    "a node is lost, and then for good": ((0, 2), (1000, 1), (1200, 2), (2500, 1)),
}


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_a_replay_long_after_the_run_repeats_it(
    steps: tuple[tuple[float, int], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = market(zone("spot", *steps, provision_delay=40.0), zone("on-demand", price=3.0, provision_delay=40.0))
    job = runner(here, workers=2, max_failures=3)
    was, commits = run_on_a_cluster(job, monkeypatch)
    state = replace(job.state, losses=())
    records = retraced("digits", "team-a", job.spec, state, commits=commits, now=START + 100 * HOUR).records
    found = history(records, state)
    again = simulate(found.low, "ordered", 0)
    assert again.attempts == was.attempts
    assert again.evictions == was.evictions
    assert again.finished == pytest.approx(was.finished, rel=0.05)
    assert again.cost == pytest.approx(was.cost, rel=0.05)


# --- one attempt at a time -------------------------------------------------------------------------------------------

SPOT = Tier("spot", 3, price=Price(1.0, 3.0), capacity_type=CapacityType.SPOT, notice=30.0)
SPEC = JobSpec((SPOT,), workers=4)
ELASTIC = replace(SPEC, min_workers=2)

FIRST, SECOND = Steps(1, 160.0, 90, 1000.0), Steps(80, 1560.0, 300, 5000.0)
"""The program begins 60 s after its workers are ready, and trains again at 1560 s after a loss at 1000 s."""


def attempt(*steps: Steps, failures: int = 1, reason: Reason = Reason.COMPLETED, ended: float = 6000.0) -> JobState:
    one = AttemptRecord(1, "spot", 0.0, 100.0, ended, reason, failures, 0, 300, steps)
    return JobState(history=(one,), stage=Stage.SUCCEEDED, ended_at=ended)


def rebuilt(state: JobState, *noted: Lost, spec: JobSpec = SPEC, commits: Sequence[float] = ()) -> Recovered:
    logged = [Committed(at, 1, "spot", index + 1) for index, at in enumerate(commits)]
    records = retraced("digits", "team-a", spec, state, commits=logged, noted=noted, now=6000.0).records
    return with_recoveries(records, state, spec)


def capacity(found: Recovered, state: JobState, spec: JobSpec = SPEC) -> TierCapacity:
    return recorded_capacity(found.records, state, spec, 0.0)[0]


def changes(state: JobState, *noted: Lost, **more: Any) -> tuple[tuple[float, int | None], ...]:
    found = rebuilt(state, *noted, **more)
    return capacity(found, state, more.get("spec", SPEC)).changes[:-1]


def lost(at: float, *, noticed: bool = False, cause: Cause = Cause.INTERRUPTION) -> Lost:
    return Lost(at, Loss("pod", cause, 1, "spot", noticed=noticed), 0)


def test_a_loss_is_when_the_heartbeats_stop_and_the_workers_are_ready_before_they_begin_again() -> None:
    state = attempt(FIRST, SECOND)
    found = rebuilt(state)
    assert (found.placed, found.unplaced) == (1, 0)
    assert changes(state) == ((0, 4), (1000, 3), (1400, 4))


def test_a_loss_in_the_record_is_not_added_again() -> None:
    state = attempt(FIRST, SECOND)
    assert rebuilt(state, lost(1020)).placed == 0
    assert changes(state, lost(1020)) == ((0, 4), (1020, 3), (1400, 4))
    assert changes(state, lost(980, noticed=True)) == ((0, 4), (980, 3), (1400, 4))


def test_workers_that_are_lost_together_can_be_one_failure() -> None:
    state, spec = attempt(FIRST, SECOND, failures=2), replace(SPEC, failure_unit=FailureUnit.INTERRUPTION)
    noted = lost(5500), lost(5500)
    assert rebuilt(state, *noted, spec=spec).placed == 1
    assert changes(state, *noted, spec=spec) == ((0, 4), (1000, 3), (1400, 4), (5500, 2))


def test_without_a_counted_failure_the_program_has_restarted_by_itself() -> None:
    state = attempt(FIRST, SECOND, failures=0)
    assert changes(state) == ((0, 4),)
    maintained = lost(1020, cause=Cause.MAINTENANCE)
    assert changes(state, maintained) == ((0, 4),)


def test_the_availability_of_the_tier_tells_when_the_workers_were_ready_again() -> None:
    spells = (Spell(True, 100, 990), Spell(False, 1010, 1200), Spell(True, 1300, 5000))
    with_steps = replace(attempt(FIRST, SECOND), tiers=(TierRecord("spot", spells=spells),))
    assert changes(with_steps) == ((0, 4), (1000, 3), (1200, 4))
    without_steps = replace(attempt(), tiers=(TierRecord("spot", spells=spells),))
    assert changes(without_steps) == ((0, 4), (1010, 3), (1200, 4))


def test_fewer_failures_than_stops_are_those_of_the_longest_stops() -> None:
    state = attempt(FIRST, replace(SECOND, last=120, last_at=2000.0), Steps(110, 2070.0, 300, 5000.0))
    assert changes(state) == ((0, 4), (1000, 3), (1400, 4))


def test_the_loss_that_ended_the_attempt_comes_last() -> None:
    state = attempt(FIRST, SECOND, failures=2, reason=Reason.MAX_FAILURES_EXCEEDED)
    assert changes(state) == ((0, 4), (1000, 3), (1400, 4), (6000, 3))
    state = attempt(FIRST, SECOND, failures=2, reason=Reason.INSUFFICIENT_CAPACITY)
    assert changes(state) == ((0, 4), (1000, 3), (1400, 4), (5000, 3))
    state = attempt(FIRST, SECOND, failures=2, reason=Reason.STALLED)
    assert (changes(state), rebuilt(state).unplaced) == (((0, 4), (1000, 3), (1400, 4)), 0)


def test_a_live_attempt_that_recovers_has_lost_a_worker() -> None:
    live = Attempt(1, "spot", 0.0, seen=True, running_at=100.0, failures=1, steps=(FIRST,))
    state = JobState(stage=Stage.RECOVERING, attempt=live, tier="spot", recovering_since=1010.0)
    assert capacity(rebuilt(state), state).changes == ((0, 4), (1010, 3))


def test_failures_whose_time_is_unknown_are_reported() -> None:
    state = replace(attempt(FIRST, SECOND, failures=3), progress=replace(JobState().progress, total=300))
    assert rebuilt(state).unplaced == 2
    records = retraced("digits", "team-a", SPEC, state, commits=[], now=6000.0).records
    assumed = history(records, state, hours=2.0).assumptions
    said = "1 loss that the record lacks was when the steps of the heartbeats, the capacity or the attempt ended"
    assert said in assumed
    assert "2 counted failures have no known time: the replay has no loss for them" in assumed


def test_ranks_that_train_long_after_a_loss_have_replaced_the_worker() -> None:
    state = attempt(replace(FIRST, last=300, last_at=5000.0))
    assert changes(state, lost(1000, noticed=True)) == ((0, 4), (1000, 3), (1001, 4))
    without = attempt(replace(FIRST, last_at=1040.0), reason=Reason.EVICTION_NOTICE)
    assert changes(without, lost(1000, noticed=True)) == ((0, 4), (1000, 3))
    assert changes(without, lost(1000, noticed=True), commits=(1500.0,)) == ((0, 4), (1000, 3), (1001, 4))


def test_an_elastic_program_with_fewer_workers_has_lost_the_others() -> None:
    first, shrunk, grown = replace(FIRST, workers=4), replace(SECOND, workers=2), Steps(301, 5100.0, 400, 5900.0, 4)
    state = attempt(first, shrunk, grown, failures=2)
    found = rebuilt(state, spec=ELASTIC)
    assert (found.placed, found.unplaced) == (2, 0)
    assert changes(state, spec=ELASTIC) == ((0, 4), (1000, 2), (4940, 4))


def test_an_elastic_program_that_restarts_with_as_many_workers_has_replaced_the_lost_one() -> None:
    state = attempt(replace(FIRST, workers=4), replace(SECOND, workers=4))
    assert changes(state, spec=ELASTIC) == ((0, 4), (1000, 3), (1400, 4))
    resized = [one for one in rebuilt(state, spec=ELASTIC).records if isinstance(one, Resized)]
    assert [(one.at, one.workers) for one in resized] == [(160, 4), (1560, 4)]


def test_the_notice_of_a_tier_does_not_follow_from_losses_that_are_added() -> None:
    state = attempt(FIRST, SECOND)
    assert capacity(rebuilt(state), state).notice == 30.0
    more = replace(state.history[0], failures=2)
    silent = replace(state, history=(more,))
    assert capacity(rebuilt(silent, lost(5500)), silent).notice == 0.0


def test_the_record_of_a_runner_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    here = market(zone("spot", (0, 2), (1000, 1), (1200, 2)), zone("on-demand", price=3.0))
    job = runner(here, workers=2, max_failures=3)
    records, state, _was = recorded(job, monkeypatch)
    stopped = (Steps(1, 1.0, 9, START + 1000.0), Steps(5, START + 1260.0, 99, START + 4000.0))
    state = replace(state, history=(replace(state.history[0], steps=stopped),))
    found = with_recoveries(records, state, job.spec)
    assert (list(found.records), found.placed, found.unplaced) == (records, 0, 0)
