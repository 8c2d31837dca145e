"""Savings are measured against an uninterrupted on-demand run, not against the same nodes at another price."""

from __future__ import annotations

import pytest

from spotladder.core.accounting.held_nodes import account_steps
from spotladder.core.accounting.savings import savings, uninterrupted_usd
from tests.core.builders import SteppedJob, all_ready, attempt, head, lost, priced, spec, worker

HOUR = 3600.0


def trained(*steps: int) -> SteppedJob:
    """A job on two spot nodes at a quarter of the on-demand price of $4, that commits at these steps."""
    job = SteppedJob(spec(priced("spot-a", 1.0, 4.0, max_failures=9))).running()
    before = 0
    for step in steps:
        job.commit(step)
        job.see(all_ready(1), after=(step - before) * 36.0)
        before = step
    return job


def test_an_uninterrupted_job_on_spot_saves_the_discount() -> None:
    job = trained(50, 100)
    assert uninterrupted_usd(job.spec, job.state) == pytest.approx(8.0)
    assert savings(job.spec, job.state) == pytest.approx(0.75, abs=0.01)


def test_each_step_counts_as_long_as_the_spec_says() -> None:
    """Steps of 36 s that stand for a minute more: 100 of them on two nodes."""
    job = SteppedJob(spec(priced("spot-a", 1.0, 4.0, max_failures=9), step_time=60.0)).running()
    for step in (50, 100):
        job.state = account_steps(job.state, job.spec, 50)
        job.commit(step)
        job.see(all_ready(1), after=50 * 36.0)
    assert uninterrupted_usd(job.spec, job.state) == pytest.approx(8.0 * 96 / 36)
    job.state = account_steps(job.state, job.spec, 0)
    assert savings(job.spec, job.state) == pytest.approx(0.75, abs=0.01)


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_the_uninterrupted_run_of_an_elastic_job_has_all_workers(workers: int) -> None:
    """100 steps of 36 s on four nodes, whatever the number of workers with which the job made them."""
    spot = priced("spot-a", 1.0, 4.0, max_failures=9)
    job = SteppedJob(spec(spot, workers=4, min_workers=2)).running(workers=workers)
    for step in (50, 100):
        job.commit(step, workers=workers)
        job.see(all_ready(1, workers), after=50 * 36.0 * 4 / workers)
    assert job.state.spent_usd == pytest.approx(4.0)
    assert uninterrupted_usd(job.spec, job.state) == pytest.approx(16.0)
    assert savings(job.spec, job.state) == pytest.approx(0.75)


def test_repeated_steps_and_waits_reduce_the_savings() -> None:
    job = trained(50, 100)
    job.see(all_ready(1), after=HOUR)  # an hour of training that is lost
    job.see(attempt(1, head(), worker("w1-0"), lost("w1-1")), after=1)
    job.see(all_ready(1), after=60)
    job.commit(150)
    job.see(all_ready(1), after=50 * 36.0)
    assert uninterrupted_usd(job.spec, job.state) == pytest.approx(12.0)
    # 2.5 h on two nodes at $1, instead of 1.5 h at $4
    assert savings(job.spec, job.state) == pytest.approx(1 - 5.03 / 12.0, abs=0.01)


def test_the_start_of_the_job_is_part_of_the_uninterrupted_run() -> None:
    job = SteppedJob(spec(priced("spot-a", 1.0, 4.0, max_failures=9), stall_timeout=2 * HOUR)).running()
    job.see(all_ready(1), after=HOUR)  # imports and compilation
    for step in (10, 20):
        job.commit(step)
        job.see(all_ready(1), after=360)
    assert uninterrupted_usd(job.spec, job.state) == pytest.approx(2 * 4.0 * 1.2)  # 1 h, then 20 steps of 36 s
    assert savings(job.spec, job.state) == pytest.approx(0.75)


def test_a_start_with_a_loss_is_not_part_of_the_uninterrupted_run() -> None:
    job = SteppedJob(spec(priced("spot-a", 1.0, 4.0, max_failures=9), stall_timeout=2 * HOUR)).running()
    job.see(attempt(1, head(), worker("w1-0"), lost("w1-1")), after=HOUR)
    job.see(all_ready(1), after=60)
    for step in (10, 20):
        job.commit(step)
        job.see(all_ready(1), after=360)
    assert uninterrupted_usd(job.spec, job.state) == pytest.approx(20 * 36 / HOUR * 2 * 4.0)
    found = savings(job.spec, job.state)
    assert found is not None
    assert found < 0


@pytest.mark.parametrize("job", [trained(), trained(50)], ids=["nothing committed", "one commit"])
def test_no_savings_are_reported_before_the_time_of_a_step_is_known(job: SteppedJob) -> None:
    assert uninterrupted_usd(job.spec, job.state) is None
    assert savings(job.spec, job.state) is None
