"""How long the starts of a job take: measured through `decide`, and what a policy expects of the next one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.facts.starts import KEPT, LEAST_RESERVE, start_overhead, start_reserve
from spotladder.core.model import JobState, Start, TierRecord
from tests.core.builders import START, SteppedJob, all_ready, attempt, spec, tier

TIERS = (tier("spot-a", -1), tier("spot-b", -1), tier("on-demand", -1), tier("on-demand-dear", -1))


def started(**more: Any) -> SteppedJob:
    """A job whose first attempt was planned at START and was ready 10 s later."""
    return SteppedJob(spec(*TIERS, **more)).running()


def starts(job: SteppedJob, name: str = "spot-a") -> list[tuple[float, float]]:
    return [(start.wait, start.boot) for start in job.state.record(name).starts]


def test_a_heartbeat_shows_the_first_step() -> None:
    job = started()
    job.see(all_ready(1), after=25)
    assert starts(job) == []
    job.see(all_ready(1, step=3), after=5)
    assert starts(job) == [(10.0, 30.0)]
    job.see(all_ready(1, step=9), after=60)
    assert starts(job) == [(10.0, 30.0)], "a start is measured once"
    assert job.attempt.stepped_at == START + 40


@pytest.mark.parametrize(("more", "size"), [({}, None), ({"workers": 4, "min_workers": 2}, 2)], ids=["gang", "elastic"])
def test_the_steps_before_the_first_heartbeat_are_no_part_of_the_start_once_the_pace_is_known(
    more: dict[str, Any], size: int | None
) -> None:
    job = started(**more)
    job.see(all_ready(1), after=70)
    job.commit(10, workers=size or 0).see(all_ready(1))
    assert starts(job) == [], "how long the steps before the first commit took is unknown"
    job.see(all_ready(1), after=30)
    job.commit(20, workers=size or 0).see(all_ready(1))
    assert starts(job) == [(10.0, 40.0)], "20 steps of 3 s until 100 s after all workers were ready"
    job.see(after=1)  # The attempt is gone.
    job.see()
    number = job.number
    job.see(all_ready(number), after=40)
    job.see(all_ready(number, step=20, size=size), after=15)
    assert len(starts(job)) == 1, "the program has loaded step 20"
    job.see(all_ready(number, step=25, size=size), after=30)
    assert starts(job)[1:] == [(40.0, pytest.approx(30.0))]


def test_a_backend_that_observes_the_program_itself_shows_the_first_step() -> None:
    job = started()
    job.see(all_ready(1, moved_at=START + 32), after=25)
    assert starts(job) == [(10.0, 22.0)]


def test_only_the_newest_starts_of_a_tier_are_kept() -> None:
    job = started()
    for index in range(KEPT + 2):
        number = job.number
        job.see(all_ready(number, step=1), after=index)
        job.see(after=1)
        job.see()
        job.see(attempt(job.number), after=0)
        job.see(all_ready(job.number), after=100)
    assert [boot for _wait, boot in starts(job)] == [float(index) for index in range(2, KEPT + 2)]


SHORT, LONG, SLOW = Start(40.0, 20.0), Start(700.0, 50.0), Start(100.0, 900.0)


@pytest.mark.parametrize(
    ("known", "name", "overhead"),
    [
        pytest.param({}, "on-demand", 0.0, id="nothing is known"),
        pytest.param({"on-demand": (SHORT,)}, "on-demand", 60.0, id="the wait and the boot"),
        pytest.param({"on-demand": (LONG, SHORT)}, "on-demand", 750.0, id="the longest wait and boot"),
        pytest.param({"on-demand": (LONG,), "spot-a": (SLOW,)}, "on-demand", 1600.0, id="the boot on any tier"),
        pytest.param({"spot-a": (LONG, SLOW)}, "on-demand", 1000.0, id="the shortest wait elsewhere, until measured"),
        pytest.param({}, "spot-a", 0.0, id="spot: unknown"),
        pytest.param({"spot-a": (LONG, SLOW, SHORT)}, "spot-a", 940.0, id="spot: the shortest wait, the longest boot"),
        pytest.param({"spot-a": (SHORT,), "spot-b": (LONG,)}, "spot-b", 750.0, id="spot: its own waits"),
        pytest.param({"on-demand": (LONG,)}, "spot-a", 750.0, id="spot: those of the others, until measured"),
    ],
)
def test_the_overhead_of_a_start(known: dict[str, tuple[Start, ...]], name: str, overhead: float) -> None:
    state = JobState(tiers=tuple(TierRecord(tier, starts=starts) for tier, starts in known.items()))
    job = spec(*TIERS)
    found = job.tier(name)
    assert found is not None
    assert start_overhead(job, state, found) == overhead


HALF_A_DAY = {"max_duration": 43200.0}


@pytest.mark.parametrize(
    ("known", "overhead"),
    [
        pytest.param({}, 1200.0, id="nothing else is known"),
        pytest.param({"spot-a": (SHORT,)}, 1220.0, id="a shorter wait on another tier"),
        pytest.param({"spot-a": (Start(2000.0, 20.0),)}, 2020.0, id="a longer wait on another tier"),
        pytest.param({"on-demand": (Start(400.0, 50.0),)}, 450.0, id="the job's own wait there"),
    ],
)
def test_the_wait_of_other_jobs_counts_until_the_job_has_its_own(
    known: dict[str, tuple[Start, ...]], overhead: float
) -> None:
    state = JobState(tiers=tuple(TierRecord(tier, starts=starts) for tier, starts in known.items()))
    assert start_overhead(spec(*TIERS), state, replace(TIERS[2], wait=1200.0)) == overhead


@pytest.mark.parametrize(
    ("given", "starts", "reserve"),
    [
        pytest.param(HALF_A_DAY, (), LEAST_RESERVE, id="ten minutes"),
        pytest.param(HALF_A_DAY, (SHORT,), LEAST_RESERVE, id="one short start proves nothing"),
        pytest.param(HALF_A_DAY, (LONG,), 750.0, id="the measured start"),
        pytest.param({"max_duration": 1200.0}, (), 120.0, id="a tenth of a short time"),
        pytest.param({"deadline": START + 600.0}, (), 60.0, id="a tenth of the time until the deadline"),
        pytest.param({"deadline": START - 60.0}, (), 0.0, id="a deadline before the submission"),
        pytest.param({}, (), None, id="no deadline"),
        pytest.param({**HALF_A_DAY, "overhead": 60.0}, (), None, id="a given overhead"),
    ],
)
def test_the_time_that_is_kept_for_a_start_on_demand(
    given: dict[str, float], starts: tuple[Start, ...], reserve: float | None
) -> None:
    state = JobState(tiers=(TierRecord("on-demand", starts=starts),))
    assert start_reserve(spec(*TIERS, **given), state, TIERS[2]) == reserve


@pytest.mark.parametrize(("given", "expected"), [({}, 700.0), ({"overhead": 60.0}, 760.0)])
def test_an_on_demand_attempt_that_has_not_made_a_step_shows_its_wait(given: dict[str, Any], expected: float) -> None:
    job = SteppedJob(spec(tier("on-demand", -1), **given))
    job.see()
    job.see(all_ready(1), after=700)
    assert start_overhead(job.spec, job.state, job.spec.tiers[0]) == expected
