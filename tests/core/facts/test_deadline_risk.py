"""Whether a deadline is at risk: what is left of the work, one more start, and the time until the deadline."""

from __future__ import annotations

import pytest

from spotladder.core.facts.deadline_risk import deadline_risk
from spotladder.core.model import JobState, Stage
from tests.core.builders import START, SteppedJob, all_ready, spec, tier

JOB = spec(tier("spot-a", -1), tier("on-demand", -1), deadline=START + 3600, work=3000.0, overhead=120.0)


def slack(job: SteppedJob) -> float:
    risk = deadline_risk(job.spec, job.state)
    assert risk is not None
    return risk.slack


def test_a_job_that_waits_loses_slack_each_second() -> None:
    job = SteppedJob(JOB).planned()
    assert slack(job) == 3600 - 3000 - 120
    job.see_again(500)
    risk = deadline_risk(job.spec, job.state)
    assert risk is not None
    assert (risk.slack, risk.at_risk) == (-20, True)
    assert risk.message == "about 50m of training are left until the deadline"


def test_a_job_that_trains_keeps_its_slack_between_two_commits() -> None:
    job = SteppedJob(JOB).running()
    assert slack(job) == 470, "the 10 s until all workers were ready are lost"
    job.see(all_ready(1), after=300)
    assert slack(job) == 470
    job.commit(10).see(all_ready(1))
    assert slack(job) == 470, "300 s of 3000 s are committed"
    job.see(all_ready(1), after=290)
    assert slack(job) == 470


@pytest.mark.parametrize(
    "change",
    [{"deadline": None}, {"work": None}],
    ids=["no deadline", "unknown work"],
)
def test_nothing_is_said_without_a_deadline_or_the_work(change: dict[str, None]) -> None:
    job = SteppedJob(JOB).edit(**change).planned()
    assert deadline_risk(job.spec, job.state) is None


def test_a_job_that_has_ended_has_no_risk() -> None:
    assert deadline_risk(JOB, JobState(stage=Stage.FAILED)) is None
