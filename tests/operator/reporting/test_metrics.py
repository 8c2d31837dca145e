from __future__ import annotations

import pytest
from prometheus_client import generate_latest

from spotladder.clusters.clock import SteppedClock
from spotladder.core.model import Attempt, AttemptRecord, Decision, JobState, Progress, Stage, TierRecord
from spotladder.core.reasons import Reason
from spotladder.operator.reporting.metrics import Metrics
from tests.core.builders import spec, tier


def samples(metrics: Metrics) -> list[str]:
    return [line for line in generate_latest(metrics.registry).decode().splitlines() if not line.startswith("#")]


def test_job_metrics_have_the_values_of_the_last_reconcile_and_end_with_the_job() -> None:
    clock = SteppedClock()
    metrics = Metrics(clock)
    metrics.observe(("ns", "a"), JobState(progress=Progress(30, 120, clock.now() - 5.0)))
    lines = samples(metrics)
    assert 'spotladder_job_phase{job="a",namespace="ns",phase="Pending"} 1.0' in lines
    assert 'spotladder_job_progress_ratio{job="a",namespace="ns"} 0.25' in lines
    assert 'spotladder_commit_age_seconds{job="a",namespace="ns"} 5.0' in lines
    metrics.forgot(("ns", "a"))
    assert not [line for line in samples(metrics) if 'job="a"' in line]


def test_cost_is_counted_by_capacity_type_and_by_namespace() -> None:
    metrics = Metrics(SteppedClock())
    before = JobState(tiers=(TierRecord("spot-a", cost=1.0),))
    after = JobState(tiers=(TierRecord("spot-a", cost=3.0), TierRecord("on-demand", cost=4.0)))
    for namespace, removed in (("vision", "on-demand"), ("speech", "none")):
        tiers = [tier(name) for name in ("spot-a", "on-demand") if name != removed]
        metrics.decided(namespace, spec(*tiers), before, Decision(after))
    lines = samples(metrics)
    assert 'spotladder_namespace_cost_usd_total{namespace="vision"} 6.0' in lines
    assert 'spotladder_namespace_cost_usd_total{namespace="speech"} 6.0' in lines
    assert 'spotladder_cost_usd_total{capacity_type="spot"} 4.0' in lines
    assert 'spotladder_cost_usd_total{capacity_type="on-demand"} 4.0' in lines, "a removed tier has no capacity type"


def test_a_controller_that_no_longer_leads_exports_no_job_metrics() -> None:
    metrics = Metrics(SteppedClock())
    metrics.leading.set(1)
    metrics.watch_queue(lambda: 7)
    metrics.tier_available.labels("spot").set(1)
    metrics.observe(("ns", "a"), JobState())
    metrics.term_over()
    lines = samples(metrics)
    assert not [line for line in lines if 'job="a"' in line or 'tier="spot"' in line]
    assert "spotladder_leading 0.0" in lines
    assert "spotladder_queue_depth 0.0" in lines


def test_metrics_have_a_cluster_label_and_an_outage_counts_once() -> None:
    metrics = Metrics(SteppedClock())
    heard: list[int] = []
    metrics.watcher("home")("get", "pods", 200, 0.1)
    metrics.watcher("east", lambda _verb, _resource, status, _took: heard.append(status))("get", "pods", 0, 5.0)
    for up in (True, False, False, True):
        metrics.linked("east", up=up)
    lines = samples(metrics)
    assert heard == [0]
    assert 'spotladder_api_requests_total{cluster="home",code="200",resource="pods",verb="get"} 1.0' in lines
    assert 'spotladder_api_requests_total{cluster="east",code="0",resource="pods",verb="get"} 1.0' in lines
    assert 'spotladder_cluster_up{cluster="east"} 1.0' in lines
    assert 'spotladder_cluster_outages_total{cluster="east"} 1.0' in lines
    metrics.term_over()
    assert not [line for line in samples(metrics) if line.startswith("spotladder_cluster_up{")]


@pytest.mark.parametrize(
    ("state", "age"),
    [
        (JobState(stage=Stage.STARTING, attempt=Attempt(1, "spot", 1000.0)), None),
        (JobState(stage=Stage.RUNNING, attempt=Attempt(1, "spot", 1000.0, running_at=1050.0)), 250.0),
        (
            JobState(
                stage=Stage.RUNNING,
                attempt=Attempt(2, "spot", 1200.0, running_at=1250.0),
                history=(AttemptRecord(1, "spot", 1000.0, 1100.0, 1150.0, Reason.STALLED, 0, 0, 0),),
            ),
            200.0,
        ),
        (
            JobState(
                stage=Stage.RUNNING,
                attempt=Attempt(1, "spot", 1000.0, running_at=1050.0),
                progress=Progress(10, 100, 1290.0),
            ),
            10.0,
        ),
    ],
)
def test_commit_age_of_a_job_without_commits_starts_when_it_first_ran(state: JobState, age: float | None) -> None:
    """Otherwise the alert SpotladderCommitsOld could not fire for such a job."""
    metrics = Metrics(SteppedClock(1300.0))
    metrics.observe(("ns", "a"), state)
    ages = [line for line in samples(metrics) if line.startswith("spotladder_commit_age_seconds")]
    assert ages == ([] if age is None else [f'spotladder_commit_age_seconds{{job="a",namespace="ns"}} {age}'])
