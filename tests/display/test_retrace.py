"""The report from the stored state of a job, compared with the report from the whole timeline of the same run."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.model import AttemptRecord, JobState, Loss, Stage, Steps, TierRecord
from spotladder.core.reasons import Cause, Reason
from spotladder.display.figures import money
from spotladder.display.records import Beat, Billed, Committed, Looked, Lost, Noted, Recorded, Resized
from spotladder.display.report import gather
from spotladder.display.report.data import as_data
from spotladder.display.report.facts import Facts
from spotladder.display.report.page import page
from spotladder.display.retrace import retraced
from spotladder.planner.replay.capacity import recorded_capacity
from tests.core.builders import START
from tests.display.builders import SPEC, TOTAL, CloudEvents, PlayedRun


def recorded_of(run: PlayedRun, **more: Any) -> Recorded:
    commits = [record for record in run.records if isinstance(record, Committed)]
    known = {"commits": commits, "now": run.now, **more}
    return retraced("digits", "team-a", run.spec, run.state, **known)


def facts_of(run: PlayedRun, **more: Any) -> Facts:
    return gather(recorded_of(run, **more), run.state)


def complete_timeline(run: PlayedRun) -> Facts:
    return gather(Recorded(tuple(run.records)), run.state)


def test_the_report_from_the_stored_state_agrees_with_the_timeline() -> None:
    run = PlayedRun().play()
    facts, true = facts_of(run), complete_timeline(run)

    def kept(of: Facts) -> list[tuple[object, ...]]:
        return [
            (each.number, each.tier, each.capacity_type, each.start, each.end, each.reason, each.failures,
             each.start_step, each.committed_step) for each in of.attempts
        ]  # fmt: skip

    assert len(facts.attempts) == 4
    assert kept(facts) == kept(true)
    for name in ("exit_code", "reason", "began_at", "total", "committed", "spent", "on_demand", "failures"):
        assert getattr(facts, name) == getattr(true, name), name
    assert facts.steps == TOTAL
    assert facts.length == run.state.ended_at - START
    assert facts.time.total == pytest.approx(true.time.total)
    assert facts.commits == true.commits
    assert [(each.at, each.attempt, each.tier) for each in facts.evictions] == [
        (each.at, each.attempt, each.tier) for each in true.evictions
    ]
    texts = [event.text for _, event in facts.events]
    assert texts[0] == "digits begins: 2 workers on spot-a → spot-b → on-demand"
    assert "falls back: attempt 4 on on-demand, from spot-b" in texts
    assert texts[-1] == "done"


def test_the_cost_of_a_tier_is_divided_among_its_attempts() -> None:
    run = PlayedRun().play()
    facts = facts_of(run)
    assert math.isclose(sum(each.cost for each in facts.attempts), facts.spent)
    assert math.isclose(sum(each.on_demand_cost for each in facts.attempts), facts.on_demand)
    first, second, *_ = facts.attempts
    assert (first.tier, second.tier) == ("spot-a", "spot-a")
    ran = [each.all_ready[0].seconds for each in (first, second)]
    assert first.cost / second.cost == pytest.approx(ran[0] / ran[1])
    assert "A tier's cost is divided among its attempts by the time that they ran." in facts.gaps


def test_without_the_commit_log_the_last_step_of_each_attempt_is_known() -> None:
    facts = facts_of(PlayedRun().play(), commits=None)
    assert facts.commits == ()
    assert facts.losses == {}
    assert (facts.steps, facts.total, facts.committed) == (TOTAL, TOTAL, TOTAL)
    assert [each.end_step for each in facts.attempts if each.work] == [125, 175, 400]
    assert facts.gaps[0].startswith("Without the commit log")


def with_heartbeats(run: PlayedRun, every: int = 1) -> JobState:
    """The state of the run, as if the controller had read every `every`-th heartbeat of each attempt."""

    def steps(number: int) -> tuple[Steps, ...]:
        groups: list[Steps] = []
        beats = [record for record in run.records if isinstance(record, Beat) and record.attempt == number]
        for beat in beats[::every]:
            if not groups or beat.step < groups[-1].last:
                groups.append(Steps(beat.step, beat.at, beat.step, beat.at))
            groups[-1] = replace(groups[-1], last=beat.step, last_at=beat.at)
        return tuple(groups)

    history = tuple(replace(each, steps=steps(each.number)) for each in run.state.history)
    state: JobState = replace(run.state, history=history)
    return state


def test_with_heartbeats_repeated_steps_are_known_and_are_not_idle_time() -> None:
    run = PlayedRun().play()
    true, commits = complete_timeline(run), [record for record in run.records if isinstance(record, Committed)]
    state = with_heartbeats(run)
    facts = gather(retraced("digits", "team-a", run.spec, state, commits=commits, now=run.now), state)
    assert true.recomputed
    assert facts.recomputed == true.recomputed
    assert facts.time.recomputed == pytest.approx(true.time.recomputed, abs=2)
    assert facts.time.idle == pytest.approx(true.time.idle, abs=5)
    assert facts.time.idle < facts_of(run).time.idle - 5
    assert not [gap for gap in facts.gaps if "idle time" in gap]
    assert facts_of(run).recomputed is None, "without heartbeats they are not known"


def test_a_restart_inside_an_attempt_repeats_the_steps_after_its_last_commit() -> None:
    run = PlayedRun().play()
    first = run.state.history[0]
    begun = first.running_at or first.started_at
    groups = (Steps(1, begun + 1, 57, begun + 10), Steps(51, begun + 12, 80, begun + 20))
    only = replace(first, start_step=0, end_step=75, ended_at=begun + 21, steps=groups)
    state = replace(run.state, history=(only,), tiers=run.state.tiers[:1], ended_at=begun + 21)
    commits = [
        replace(next(each for each in run.records if isinstance(each, Committed)), attempt=1, step=step, at=begun + at)
        for step, at in ((25, 5), (50, 9), (75, 19))
    ]
    facts = gather(retraced("digits", "team-a", run.spec, state, commits=commits, now=run.now), state)
    assert facts.recomputed == 57 - 50


def test_one_attempt_without_heartbeats_leaves_repeated_steps_unknown() -> None:
    run = PlayedRun().play()
    state = with_heartbeats(run)
    state = replace(state, history=(replace(state.history[0], steps=()), *state.history[1:]))
    commits = [record for record in run.records if isinstance(record, Committed)]
    facts = gather(retraced("digits", "team-a", run.spec, state, commits=commits, now=run.now), state)
    assert facts.recomputed is None
    assert [gap for gap in facts.gaps if "idle time" in gap]


def elastic_run(*attempts: tuple[float, float], node_seconds: float, earlier: int = 0) -> PlayedRun:
    """A run whose state has attempts on spot-a from and until these seconds, which cost $3.20."""
    run = PlayedRun(replace(SPEC, min_workers=1))
    history = tuple(
        AttemptRecord(number, "spot-a", START + since, START + since, START + until, Reason.SUSPEND_REQUESTED, 0,
                      number - 1, number)
        for number, (since, until) in enumerate(attempts, start=earlier + 1)
    )  # fmt: skip
    last = earlier + len(history)
    tier = TierRecord("spot-a", attempts=last, node_seconds=node_seconds, cost=3.2, on_demand_cost=6.4)
    run.job.state = replace(run.state, history=history, tiers=(tier,), last_number=last)
    return run


def bills_of(recorded: Recorded) -> list[tuple[float, float, int]]:
    bills = [record for record in recorded.records if isinstance(record, Billed)]
    return [(bill.at - START, round(bill.spent, 6), bill.nodes) for bill in bills]


def test_the_timeline_of_an_elastic_job_has_its_size() -> None:
    run = elastic_run((0, 21), node_seconds=32)
    sizes = [Resized(START + 1, 1, 2, 2), Resized(START + 11, 1, 1, 2), Resized(START + 900, 7, 1, 2)]
    recorded = recorded_of(run, sizes=sizes, now=START + 30)
    assert [record for record in recorded.records if isinstance(record, Resized)] == sizes[:2], "7 is no known attempt"
    texts = {at: event.text for at, event in gather(recorded, run.state).events}
    assert (texts[1], texts[11]) == ("attempt 1 trains with 2 of 2 workers", "attempt 1 trains with 1 of 2 workers")
    assert not [gap for gap in recorded.gaps if "workers" in gap]


def test_sizes_with_a_wrong_clock_stay_within_their_attempt() -> None:
    run = elastic_run((0, 21), node_seconds=32)
    recorded = recorded_of(run, sizes=[Resized(START - 3600, 1, 2, 2), Resized(START + 3600, 1, 1, 2)])
    assert [record.at - START for record in recorded.records if isinstance(record, Resized)] == [0, 21]


def test_the_cost_of_an_elastic_attempt_follows_its_size() -> None:
    run = elastic_run((0, 21), node_seconds=32)
    recorded = recorded_of(run, sizes=[Resized(START + 1, 1, 2, 2), Resized(START + 11, 1, 1, 2)])
    assert bills_of(recorded) == [(0, 0.0, 2), (11, 2.2, 1), (21, 3.2, 0)]


def test_a_smaller_attempt_has_a_smaller_share_of_the_cost_of_its_tier() -> None:
    run = elastic_run((0, 10), (10, 30), node_seconds=40)
    recorded = recorded_of(run, sizes=[Resized(START, 1, 2, 2), Resized(START + 12, 2, 1, 2)])
    assert bills_of(recorded) == [(0, 0.0, 2), (10, 1.6, 0), (10, 1.6, 1), (30, 3.2, 0)]
    expected = "A tier's cost is divided among its attempts by the time that they ran and their numbers of workers."
    assert expected in recorded.gaps


def test_an_elastic_attempt_beside_unknown_ones_has_the_share_of_its_node_seconds() -> None:
    run = elastic_run((0, 20), node_seconds=80, earlier=1)
    recorded = recorded_of(run, sizes=[Resized(START, 2, 1, 2)])
    assert bills_of(recorded) == [(0, 0.0, 1), (20, 0.8, 0)]


def test_without_the_commit_log_heartbeats_have_the_sizes() -> None:
    run = elastic_run((0, 21), node_seconds=32)
    groups = [(1, 5.0, 2), (2, 7.0, 2), (3, 11.0, 1)]
    steps = tuple(Steps(step, START + at, step, START + at, workers) for step, at, workers in groups)
    run.job.state = replace(run.state, history=(replace(run.state.history[0], steps=steps),))
    recorded = recorded_of(run, commits=None)
    found = [record for record in recorded.records if isinstance(record, Resized)]
    assert found == [Resized(START + 5, 1, 2, 2), Resized(START + 11, 1, 1, 2)]
    assert bills_of(recorded) == [(0, 0.0, 2), (11, 2.2, 1), (21, 3.2, 0)]
    assert not [gap for gap in recorded.gaps if "workers" in gap]
    logged = recorded_of(run, sizes=[Resized(START + 3, 1, 2, 2)]).records
    assert [record.at for record in logged if isinstance(record, Resized)] == [START + 3], "the log is more exact"


@pytest.mark.parametrize(("attempts", "some"), [(1, "1 attempt"), (2, "2 attempts")])
def test_the_report_says_when_the_size_of_an_elastic_job_is_unknown(attempts: int, some: str) -> None:
    run = elastic_run(*[(10.0 * number, 10.0 * number + 10) for number in range(attempts)], node_seconds=40)
    gaps = recorded_of(run, commits=None).gaps
    assert f"The number of workers of {some} is not known: all workers count." in gaps


def test_a_replay_takes_the_size_of_a_job_on_a_cluster() -> None:
    run = elastic_run((0, 100), node_seconds=150)
    recorded = recorded_of(run, sizes=[Resized(START, 1, 1, 2), Resized(START + 50, 1, 2, 2)])
    capacity = recorded_capacity(recorded.records, run.state, run.spec, START)[0]
    assert capacity.changes == ((0.0, 1), (50.0, 2), (100.0, None))


def test_a_running_job_is_reported_up_to_now() -> None:
    run = PlayedRun().play(until=50)
    assert run.state.stage is Stage.RUNNING
    facts = facts_of(run, now=run.now + 30)
    assert (facts.going_on, facts.exit_code) == (True, None)
    assert facts.length == pytest.approx(80)
    assert facts.attempts[-1].end == facts.length
    text = page(facts)
    assert '<span class="badge caution">Running</span>' in text
    assert as_data(facts)["phase"] == "Running"
    assert isinstance(recorded_of(run).records[-1], Looked)


def test_the_time_with_all_workers_ready_ends_when_a_recovery_starts() -> None:
    run = PlayedRun(world=CloudEvents(kills=frozenset({45}), notices={})).play(until=50)
    assert run.state.stage is Stage.RECOVERING
    facts = facts_of(run)
    assert facts.attempts[-1].all_ready[-1].end == run.state.recovering_since - START == 45
    assert facts.length == 50


def test_the_report_covers_only_the_newest_attempts_of_the_stored_state() -> None:
    run = PlayedRun().play()
    state = replace(run.state, history=run.state.history[1:])
    commits = [record for record in run.records if isinstance(record, Committed)]
    facts = gather(retraced("digits", "team-a", run.spec, state, commits=commits, now=run.now), state)
    assert [each.number for each in facts.attempts] == [2, 3, 4]
    assert facts.began_at == state.history[0].started_at
    assert all(mark.attempt > 1 for mark in facts.commits)
    assert sum(each.cost for each in facts.attempts) < facts.spent
    assert (
        facts.gaps[0]
        == "The newest 3 attempts are shown; 1 earlier attempt is included only in the totals of the tiers."
    )


def test_events_are_added_to_the_report_at_their_time() -> None:
    run = PlayedRun().play()
    lost = Lost(START + 58, Loss("spot-a-2-1", Cause.NODE_LOST, 2, "spot-a"), 0)
    noted = Noted(START + 70, "ClusterUnreachable: no answer")
    facts = facts_of(run, noted=[noted, lost])
    assert [(mark.at, mark.tier) for mark in facts.evictions] == [(31, "spot-a"), (58, "spot-a")]
    assert [each.failures for each in facts.attempts] == [1, 1, 0, 0], "each failure counts once, with or without event"
    texts = {at: event.text for at, event in facts.events}
    assert texts[70] == "ClusterUnreachable: no answer"
    assert "lost spot-a-2-1 (NodeLost) on spot-a" in [event.text for _, event in facts.events]


def test_commits_with_a_wrong_clock_stay_within_their_attempt() -> None:
    run = PlayedRun().play()
    commits = [replace(record, at=record.at + 3600) for record in run.records if isinstance(record, Committed)]
    facts = facts_of(run, commits=commits)
    bounds = {each.number: each for each in facts.attempts}
    assert facts.commits
    assert all(bounds[mark.attempt].start <= mark.at <= bounds[mark.attempt].end for mark in facts.commits)
    assert facts.length == run.state.ended_at - START


def test_a_job_without_attempts_has_a_report() -> None:
    run = PlayedRun()
    facts = facts_of(run, now=START + 60)
    assert (facts.attempts, facts.steps, facts.length) == ((), 0, 60)
    assert '<span class="badge caution">Pending</span>' in page(facts)


def test_a_job_that_fails_without_a_live_attempt_ends_at_its_failure() -> None:
    dry = CloudEvents(notices={}, kills=frozenset(), dry=frozenset({"spot-a", "spot-b", "on-demand"}))
    run = PlayedRun(world=dry).play()
    assert run.state.reason is Reason.TIERS_EXHAUSTED
    facts = facts_of(run)
    assert (facts.exit_code, facts.reason) == (3, Reason.TIERS_EXHAUSTED)
    assert facts.length == pytest.approx(run.state.ended_at - START)
    assert facts.time.total == pytest.approx(facts.time.waiting)


def test_no_savings_are_reported_for_tiers_without_a_price() -> None:
    run = PlayedRun().play()
    tiers = tuple(replace(tier, unpriced=tier.node_seconds) for tier in run.state.tiers if tier.name == "spot-a")
    state = replace(run.state, tiers=(*tiers, *(tier for tier in run.state.tiers if tier.name != "spot-a")))
    facts = gather(recorded_of(run), state)
    assert facts.unpriced == ("spot-a",)
    assert facts.saved is None
    data = as_data(facts)["cost"]
    assert (data["savedAgainstSameNodes"], data["onDemandUninterrupted"]) == (None, None)
    text = page(facts)
    assert "no price is known for spot-a" in text
    assert f"&gt;{money(facts.spent)}" in text
