"""The deadline-aware policies on random availability: none misses a deadline that on-demand could meet."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spotladder.core.model import TierChoice, TierView
from spotladder.policies import registry
from tests.core.builders import START
from tests.core.policies.ticks import ON_DEMAND, SPOT, TICK, JobTimes, run
from tests.searching import examples

POLICIES = ["greedy", "uniform-progress", "on-demand", "adaptive"]
HOUR = 3600.0


@st.composite
def traces(draw: st.DrawFn, ticks: int) -> list[bool]:
    """Availability in spells of random lengths."""
    trace: list[bool] = []
    up = draw(st.booleans())
    while len(trace) < ticks:
        trace += [up] * draw(st.sampled_from([1, 1, 2, 3, 7, 20, 60]))
        up = not up
    return trace[:ticks]


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_no_policy_misses_a_deadline_that_on_demand_could_meet(name: str, data: st.DataObject) -> None:
    """With provisioning delays up to the known maximum, and overheads shorter and longer than a tick."""
    job = JobTimes(
        work=data.draw(st.sampled_from([0.5, 3.0, 11.7])) * HOUR,
        overhead=data.draw(st.sampled_from([0.0, 180.0, 720.0])),
        delay=data.draw(st.sampled_from([0.0, 400.0, 1500.0])),
        capacity_lasts=data.draw(st.booleans()),
    )
    least = job.work + job.overhead + job.delay + TICK
    job = replace(job, deadline=least + data.draw(st.sampled_from([0.0, 1.0, 1800.0, 7200.0, 40000.0])))
    trace = data.draw(traces(int(job.deadline // TICK) + 1))
    delays = data.draw(st.lists(st.floats(0.0, job.delay), max_size=30))
    assert run(registry.by_name(name), trace, job, delays).finished is not None


@settings(max_examples=examples(200), deadline=None)
@given(data=st.data())
def test_the_job_leaves_spot_only_if_one_more_tick_could_miss_the_deadline(data: st.DataObject) -> None:
    """The other half of the property: where capacity lasts for a tick, the safety net has no reserve."""
    job = JobTimes(
        work=data.draw(st.sampled_from([0.5, 3.0, 11.7])) * HOUR,
        overhead=data.draw(st.sampled_from([0.0, 180.0, 720.0, 1500.0])),
        delay=data.draw(st.sampled_from([0.0, 400.0])),
        capacity_lasts=True,
    )
    spare = job.overhead + job.delay + TICK + data.draw(st.sampled_from([0.0, 1.0, 1800.0, 7200.0]))
    job = replace(job, deadline=job.work + spare)
    trace = data.draw(traces(int(job.deadline // TICK) + 1))
    done = run(registry.by_name("greedy"), trace, job, [job.delay] * 30)
    assert done.finished is not None
    if ON_DEMAND not in done.held:
        return
    # Redo the ticks until the move to on-demand, and then one more without it in which the spot capacity lasts.
    at, left, starting = done.held.index(ON_DEMAND), job.work, 0.0
    for tick in range(at + 1):
        held = SPOT if tick == at and trace[tick] else done.held[tick] if tick < at else ""
        if held == SPOT and (tick == 0 or done.held[tick - 1] != SPOT):
            starting = job.overhead
        spent = min(starting, TICK) if held else TICK
        starting, left = starting - spent, left - (TICK - spent)
    rest = starting if trace[at] and done.held[at - 1 : at] != (SPOT,) else 0.0  # A start must also pay before a loss.
    assert (at + 1) * TICK + rest + left + job.overhead + job.delay > job.deadline


@pytest.mark.parametrize("name", ["greedy", "uniform-progress", "adaptive"])
def test_only_spot_is_used_if_spot_capacity_lasts(name: str) -> None:
    done = run(registry.by_name(name), [True] * 312, JobTimes())
    assert (set(done.held), done.starts) == ({SPOT}, 1)
    assert done.cost == pytest.approx(0.9731 * (48 + 0.05))


@pytest.mark.parametrize("name", POLICIES)
def test_one_on_demand_attempt_does_all_the_work_when_there_is_no_spot_capacity(name: str) -> None:
    done = run(registry.by_name(name), [False] * 312, JobTimes())
    assert (set(done.held) - {""}, done.starts) == ({ON_DEMAND}, 1)
    assert done.cost == pytest.approx(3.06 * (48 + 0.05))


def test_greedy_waits_as_long_as_the_deadline_allows() -> None:
    done = run(registry.by_name("greedy"), [False] * 312, JobTimes())
    assert done.held.index(ON_DEMAND) == int((4 * HOUR - 180 - TICK) // TICK) + 1


def test_uniform_progress_waits_only_while_the_job_is_ahead_of_schedule() -> None:
    job = JobTimes(work=10 * HOUR, deadline=20 * HOUR, overhead=0.0)
    up = [True] * 12 + [False] * 108
    done = run(registry.by_name("uniform-progress"), up, job)
    # Two hours of work are ahead of uniform progress until four hours have passed.
    assert (done.held[:12], set(done.held[12:25])) == ((SPOT,) * 12, {""})
    assert done.held[25] == ON_DEMAND


def test_uniform_progress_leaves_on_demand_when_it_is_two_overheads_ahead() -> None:
    job = JobTimes(work=10 * HOUR, deadline=20 * HOUR, overhead=600.0)
    up = [False] * 2 + [True] * 118
    done = run(registry.by_name("uniform-progress"), up, job)
    first = done.held.index(SPOT)
    assert set(done.held[1:first]) == {ON_DEMAND}
    worked = (first - 1) * TICK - 600.0
    assert worked >= (first * TICK + 1200.0) / 2 > worked - TICK


class ChoiceRecorder:
    """A policy whose choices are kept, each with the time of its view."""

    def __init__(self, name: str) -> None:
        self.policy, self.choices = registry.by_name(name), dict[float, TierChoice]()

    def choose(self, view: TierView) -> TierChoice:
        self.choices[view.now - START] = choice = self.policy.choose(view)
        return choice


def test_uniform_progress_announces_when_it_leaves_on_demand() -> None:
    job = JobTimes(work=10 * HOUR, deadline=20 * HOUR, overhead=600.0)
    policy = ChoiceRecorder("uniform-progress")
    run(policy, [False] * 2 + [True] * 118, job)
    # It trains from 1200 s on, when it is 1200 s behind, and each second of work adds one to its lead: at 3600 s it is
    # two overheads ahead.
    training = {at: choice for at, choice in policy.choices.items() if 1200.0 <= at < 3600.0}
    assert {(choice.tier, choice.holds_until) for choice in training.values()} == {(ON_DEMAND, START + 3600.0)}
    assert policy.choices[3600.0].tier == SPOT


def test_without_any_capacity_a_start_on_demand_depends_on_no_later_spot_capacity() -> None:
    """So a simulation may skip the ticks until the job may leave on-demand again."""
    policy = ChoiceRecorder("uniform-progress")
    run(policy, [False] * 120, JobTimes(work=10 * HOUR, deadline=20 * HOUR, overhead=600.0))
    begun = next(choice for choice in policy.choices.values() if choice.tier == ON_DEMAND)
    assert begun.why == "the job is behind uniform progress and no spot capacity is available"
    assert begun.regardless_of_spot is True


def test_an_explanation_is_one_sentence() -> None:
    for name in POLICIES:
        done = run(registry.by_name(name), ([True] * 30 + [False] * 30) * 6, JobTimes())
        assert all(why and "\n" not in why and len(why) < 120 for why in done.why)


class Stubborn:
    """A user's policy without a safety net: never on-demand."""

    def choose(self, view: TierView) -> TierChoice:
        return TierChoice(SPOT)


def test_a_policy_without_a_safety_net_misses_its_deadline_in_the_test_world() -> None:
    assert run(Stubborn(), [False] * 312, JobTimes()).finished is None
