"""The deadline-aware policies on random availability: none leaves spot capacity earlier than its deadline requires."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from spotladder.policies import registry
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


def test_an_explanation_is_one_sentence() -> None:
    for name in POLICIES:
        done = run(registry.by_name(name), ([True] * 30 + [False] * 30) * 6, JobTimes())
        assert all(why and "\n" not in why and len(why) < 120 for why in done.why)
