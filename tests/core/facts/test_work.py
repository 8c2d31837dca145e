"""How much training a job still needs, through `decide`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.facts.tier_view import view_of
from spotladder.core.model import Progress, TierView
from tests.core.builders import START, SteppedJob, all_ready, attempt, head, lost, spec, worker


def view(job: SteppedJob) -> TierView:
    return view_of(job.situation, live=True)


def test_the_remaining_work_is_estimated_from_the_pace_of_the_commits() -> None:
    job = SteppedJob().running()
    assert (view(job).work, view(job).remaining) == (None, None)
    job.commit(10).see(all_ready(1), after=500)
    assert view(job).remaining is None, "the first commit also timed the start"
    job.commit(30).see(all_ready(1), after=40)
    assert (view(job).work, view(job).remaining) == (200.0, 140.0)
    job.progress = replace(job.progress, step=90, attempt=2)
    job.see(all_ready(1), after=1)
    assert view(job).remaining == pytest.approx(20.0), "steps of another attempt are not timed"


def test_a_clock_that_steps_back_between_two_heartbeats_gives_no_negative_pace() -> None:
    job = SteppedJob().running()
    job.see(all_ready(1, step=10, total=100), after=10)
    job.see(all_ready(1, step=20, total=100), after=100)
    job.see(all_ready(1, step=21, total=100), after=-3600)
    job.see(all_ready(1, step=31, total=100), after=100)
    assert view(job).remaining == pytest.approx(1000.0)


@pytest.mark.parametrize(
    ("logged", "work"),
    [
        pytest.param(60.0, 300.0, id="the log is read some time after a commit, so its own times count"),
        pytest.param(-1000.0, 200.0, id="the clock was set back between the commits"),
        pytest.param(9000.0, 200.0, id="the clock was set forward"),
        pytest.param(None, 200.0, id="the log has no times"),
    ],
)
def test_the_times_of_commits_count_if_they_are_plausible(logged: float | None, work: float) -> None:
    job = SteppedJob().running()
    job.progress = Progress(10, 100, START, 1)
    job.see(all_ready(1), after=20)
    job.progress = Progress(30, 100, None if logged is None else START + logged, 1)
    job.see(all_ready(1), after=40)
    assert view(job).work == pytest.approx(work)


def test_heartbeats_show_the_work_before_the_first_commit() -> None:
    job = SteppedJob().running()
    job.see(all_ready(1, step=5, total=50), after=30)
    assert view(job).remaining is None, "one heartbeat shows no pace"
    job.see(all_ready(1, step=15, total=50), after=30)
    assert (view(job).work, view(job).remaining) == (150.0, 150.0), "no step is committed"
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=10)
    assert view(job).remaining == 150.0, "the work is known while no program runs"


def test_the_total_that_the_program_reported_last_counts() -> None:
    job = SteppedJob().running()
    job.commit(10).see(all_ready(1), after=30)
    job.commit(20).see(all_ready(1), after=30)
    assert view(job).work == 300.0
    job.see(all_ready(1, step=21, total=200), after=1)
    assert (view(job).work, job.state.measured.total) == (600.0, 200)
    job.commit(30, total=300).see(all_ready(1, step=30), after=30)
    assert job.state.measured.total == 300


def test_a_program_without_a_total_shows_only_how_long_it_has_trained() -> None:
    job = SteppedJob().running()
    for step in (10, 20, 40):
        job.see(all_ready(1, step=step), after=30)
        job.commit(step, total=0).see(all_ready(1, step=step))
    assert (view(job).work, view(job).remaining, view(job).trained) == (None, None, 60.0)
    job.see(all_ready(1, step=40, total=100), after=5)
    assert (view(job).work, view(job).trained) == (200.0, 0.0)


def test_the_time_from_a_restart_inside_the_attempt_to_its_first_commit_is_not_timed() -> None:
    """The log has the start of the program. It is not a commit, and the time since then has repeated steps."""
    job = SteppedJob().running()
    job.commit(10).see(all_ready(1), after=30)
    job.commit(20).see(all_ready(1), after=30)
    committed_at = job.state.progress_at
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=10)
    job.see(attempt(1, head(), worker("w1-1"), worker("w1-2")), after=10)
    job.progress = replace(job.progress, start=7)
    job.see(attempt(1, head(), worker("w1-1"), worker("w1-2")), after=5)
    assert job.state.progress.start == 7
    assert job.state.progress_at == committed_at
    job.commit(30).see(attempt(1, head(), worker("w1-1"), worker("w1-2")), after=500)
    assert view(job).work == pytest.approx(300.0)


def test_the_time_between_the_commits_of_two_attempts_is_not_timed() -> None:
    """The log has the start of the second attempt, before its first commit."""
    job = SteppedJob().running()
    job.commit(10).see(all_ready(1), after=30)
    job.commit(20).see(all_ready(1), after=30)
    job.lose_attempt().running(2)
    job.progress = replace(job.progress, attempt=2, start=7)
    job.see(all_ready(2), after=5)
    job.commit(30).see(all_ready(2), after=500)
    assert (job.state.progress.attempt, view(job).work) == (2, 300.0)
    job.commit(40).see(all_ready(2), after=50)
    assert view(job).work == 400.0


def elastic(workers: int) -> SteppedJob:
    """A job of four workers that trains with this number of them."""
    return SteppedJob(spec(workers=4, min_workers=2)).running(workers=workers)


def commits(job: SteppedJob, *steps: int, workers: int, after: float, **more: Any) -> None:
    """The job trains with this number of workers, and commits each of these steps after as many seconds."""
    for step in steps:
        job.see(all_ready(1, workers), after=after)
        job.commit(step, workers=workers, **more).see(all_ready(1, workers))


@pytest.mark.parametrize(("workers", "after"), [(2, 60.0), (3, 40.0), (4, 30.0)])
def test_the_work_of_an_elastic_job_is_that_with_all_workers(workers: int, after: float) -> None:
    job = elastic(workers)
    commits(job, 10, 20, workers=workers, after=after)
    assert (view(job).work, view(job).remaining) == (300.0, 240.0)


def test_a_change_of_the_size_leaves_the_work() -> None:
    job = elastic(3)
    commits(job, 10, 20, workers=3, after=40)
    commits(job, 30, 40, workers=4, after=30)
    assert (view(job).work, view(job).remaining) == (300.0, 180.0)


@pytest.mark.parametrize("together", [False, True], ids=["start read first", "read with the commit before it"])
def test_the_time_of_a_restart_with_more_workers_is_not_timed(together: bool) -> None:
    """The program commits step 30 with three workers, starts again for a minute, and goes on with four."""
    job = elastic(3)
    for step in (10, 20):
        commits(job, step, workers=3, after=40, start=0, commit=step // 10)
    if together:
        job.see(all_ready(1, 3), after=40)
        job.commit(30, workers=4, start=4, commit=3).see(all_ready(1, 3))
    else:
        commits(job, 30, workers=3, after=40, start=0, commit=3)
        job.progress = replace(job.progress, workers=4, start=4)
        job.see(all_ready(1, 4))
    assert view(job).work == 300.0
    commits(job, 40, workers=4, after=90, start=4, commit=5)
    assert view(job).work == 300.0
    commits(job, 50, workers=4, after=30, start=4, commit=6)
    assert (view(job).work, job.state.measured.timed_steps) == (300.0, 20 if together else 30)


def test_the_heartbeats_of_an_elastic_job_show_the_work_with_all_workers() -> None:
    job = elastic(3)
    for step in (5, 15):
        job.see(all_ready(1, 3, step=step, total=50, size=3), after=40)
    assert view(job).work == 150.0
    for step in (16, 26):
        job.see(all_ready(1, 4, step=step, total=50, size=4), after=30)
    assert view(job).work == 150.0, "the step between the sizes is not timed"


def test_work_in_the_spec_makes_the_remaining_work_known_before_the_first_commit() -> None:
    job = SteppedJob(spec(work=1000.0)).running()
    assert (view(job).work, view(job).remaining) == (1000.0, 1000.0)
    job.commit(25).see(all_ready(1), after=5)
    assert view(job).remaining == 750.0
