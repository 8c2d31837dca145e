from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from prometheus_client import Counter, Gauge, Histogram, generate_latest

from spotladder.core.history.bad_nodes import BAD_NODE_FAILURES
from spotladder.core.model import (
    Attempt,
    AttemptRecord,
    Decision,
    ExtraCosts,
    JobState,
    Loss,
    Move,
    NodeFailures,
    NoticeResponse,
    Progress,
    Stage,
    StandbyChange,
    TierRecord,
)
from spotladder.core.reasons import Cause, Reason
from spotladder.operator.reporting.metrics import MAX_TIERS, Metrics
from tests.clusters.stepped_clock import SteppedClock
from tests.core.builders import START, spec, tier


def samples(metrics: Metrics) -> list[str]:
    return [line for line in generate_latest(metrics.registry).decode().splitlines() if not line.startswith("#")]


def test_cost_is_counted_by_capacity_type_and_by_namespace() -> None:
    metrics = Metrics(SteppedClock())
    before = JobState(tiers=(TierRecord("spot-a", cost=1.0),))
    tiers_after = (TierRecord("spot-a", cost=3.0), TierRecord("on-demand", cost=4.0))
    after = JobState(tiers=tiers_after, extra=ExtraCosts(heads=0.5, egress=0.25))
    for namespace, removed in (("vision", "on-demand"), ("speech", "none")):
        tiers = [tier(name) for name in ("spot-a", "on-demand") if name != removed]
        metrics.decided((namespace, "a"), spec(*tiers), before, Decision(after))
    lines = samples(metrics)
    assert 'spotladder_namespace_cost_usd_total{namespace="vision"} 6.75' in lines
    assert 'spotladder_namespace_cost_usd_total{namespace="speech"} 6.75' in lines
    assert 'spotladder_extra_cost_usd_total{kind="heads"} 1.0' in lines
    assert 'spotladder_extra_cost_usd_total{kind="egress"} 0.5' in lines
    assert not [line for line in lines if 'kind="storage"' in line]
    assert 'spotladder_cost_usd_total{capacity_type="spot"} 4.0' in lines
    assert 'spotladder_cost_usd_total{capacity_type="on-demand"} 4.0' in lines, "a removed tier has no capacity type"


def test_a_controller_that_no_longer_leads_exports_no_job_metrics() -> None:
    metrics = Metrics(SteppedClock())
    metrics.leading.set(1)
    metrics.queue_depth.set_function(lambda: 7)
    metrics.decided(("ns", "a"), spec(), JobState(), Decision(JobState(), moves=(answered(Reason.ALL_READY),)))
    metrics.observe(("ns", "a"), spec(), JobState())
    metrics.cluster_up.labels("east").set(1)
    metrics.term_over()
    lines = samples(metrics)
    assert not [line for line in lines if 'job="a"' in line or 'tier="spot-a"' in line or 'cluster="east"' in line]
    assert "spotladder_leading 0.0" in lines
    assert "spotladder_queue_depth 0.0" in lines


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
    metrics.observe(("ns", "a"), spec(), state)
    ages = [line for line in samples(metrics) if line.startswith("spotladder_commit_age_seconds")]
    assert ages == ([] if age is None else [f'spotladder_commit_age_seconds{{job="a",namespace="ns"}} {age}'])


def documented() -> list[tuple[str, str, tuple[str, ...]]]:
    """Name, type and labels of each metric in docs/settings.md."""
    page = (Path(__file__).parents[3] / "docs" / "settings.md").read_text()
    listed = re.findall(r"^- `(spotladder_\w+)` \((\w+)(?:; (.+?))?\): ", page, re.MULTILINE)
    return [(name, kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in listed]


def filled() -> Metrics:
    """Metrics with at least one value each: `x` for every label of a metric that is not about a job."""
    metrics = Metrics(SteppedClock())
    bad = NodeFailures("x", BAD_NODE_FAILURES)
    progress = Progress(30, 120, 0.0)
    job = spec(budget=50.0, deadline=START + 3600.0, work=1800.0)
    metrics.observe(("ns", "a"), job, JobState(progress=progress, node_failures=(bad,)), ["StoreUnavailable"])
    metrics.decided(("ns", "a"), job, JobState(), Decision(JobState(), moves=(answered(Reason.ALL_READY),)))
    for metric in vars(metrics).values():
        if isinstance(metric, Counter | Gauge | Histogram) and metric._labelnames:
            metric.labels(*("x" for _ in metric._labelnames))
    return metrics


def test_each_metric_has_the_documented_type_and_labels_and_a_sentence_as_its_help() -> None:
    found = []
    for metric in filled().registry.collect():
        sample = metric.samples[0]
        name = sample.name if metric.type == "counter" else metric.name
        found.append((name, metric.type, tuple(sorted(set(sample.labels) - {"le"}))))
        assert re.fullmatch(r"[1A-Z].*[a-z].*\.", metric.documentation), metric
    assert sorted(found) == sorted((name, kind, tuple(sorted(labels))) for name, kind, labels in documented())


def test_a_fallback_of_an_hour_and_a_reconcile_of_a_millisecond_have_a_bucket_of_their_own() -> None:
    buckets = {
        metric.name: [sample.labels["le"] for sample in metric.samples if "le" in sample.labels]
        for metric in filled().registry.collect()
        if metric.type == "histogram"
    }
    assert "3600.0" in buckets["spotladder_fallback_seconds"]
    assert "0.001" in buckets["spotladder_reconcile_seconds"]


@pytest.mark.parametrize(
    ("reason", "available"),
    [
        (Reason.ALL_READY, 1.0),
        (Reason.INSUFFICIENT_CAPACITY, 0.0),
        (Reason.DRAINED, None),
    ],
)
def test_a_tier_is_available_from_the_last_answer_to_a_request(reason: Reason, available: float | None) -> None:
    metrics = Metrics(SteppedClock())
    metrics.observe(("ns", "a"), spec(), JobState())
    metrics.decided(("ns", "a"), spec(), JobState(), Decision(JobState(), moves=(answered(reason),)))
    assert metrics.registry.get_sample_value("spotladder_tier_available", {"tier": "spot-a"}) == available


def answered(reason: Reason) -> Move:
    return Move(Stage.STARTING, Stage.RUNNING, reason, 1, "spot-a")


def test_a_job_that_has_ended_fires_no_alert_about_its_budget_or_its_tiers() -> None:
    metrics, job = Metrics(SteppedClock()), spec(budget=50.0)
    spent = JobState(tiers=(TierRecord("spot-a", cost=40.0),))
    metrics.decided(("ns", "a"), job, spent, Decision(spent, moves=(answered(Reason.INSUFFICIENT_CAPACITY),)))

    def shown() -> list[str]:
        names = ("spotladder_job_budget_ratio", "spotladder_tier_available")
        return [line for line in samples(metrics) if line.startswith(names)]

    metrics.observe(("ns", "a"), job, spent)
    assert len(shown()) == 2
    for stage in (Stage.SUCCEEDED, Stage.FAILED):
        metrics.observe(("ns", "a"), job, replace(spent, stage=stage))
        assert shown() == []


@pytest.mark.parametrize(
    ("stages", "counted"),
    [
        ([Stage.STARTING, Stage.RUNNING], None),  # its first start
        ([Stage.RUNNING, Stage.RECOVERING, Stage.RUNNING], 60.0),
        ([Stage.RUNNING, Stage.ENDING, Stage.IDLE, Stage.STARTING, Stage.ENDING, Stage.STARTING, Stage.RUNNING], 300.0),
        ([Stage.RUNNING, Stage.REPLACING, Stage.RUNNING], None),
        ([Stage.RUNNING, Stage.DRAINING, Stage.SUSPENDED, Stage.STARTING, Stage.RUNNING], None),
    ],
)
async def test_the_time_from_a_loss_until_all_workers_are_ready_again_is_counted(
    stages: list[Stage], counted: float | None
) -> None:
    """Over all attempts and tiers, a minute for each stage."""
    clock = SteppedClock()
    metrics = Metrics(clock)
    for source, target in pairwise(stages):
        reason = Reason.ALL_READY if target is Stage.RUNNING else Reason.STARTED
        move = Move(source, target, reason, 2, "spot-b")
        metrics.decided(("ns", "a"), spec(), JobState(), Decision(JobState(), moves=(move,)))
        await clock.advance(60.0)
    value = metrics.registry.get_sample_value
    assert value("spotladder_fallback_seconds_sum") == (counted or 0.0)
    assert value("spotladder_fallback_seconds_count") == (counted is not None)


@pytest.mark.parametrize(
    ("exhausted_by", "reason"),
    [(Reason.MAX_FAILURES_EXCEEDED, Reason.MAX_FAILURES_EXCEEDED), (None, Reason.INSUFFICIENT_CAPACITY)],
)
def test_a_fallback_is_counted_by_the_reason_for_leaving_the_previous_tier(
    exhausted_by: Reason | None, reason: Reason
) -> None:
    metrics = Metrics(SteppedClock())
    record = TierRecord("spot-a", exhausted_by=exhausted_by)
    before = JobState(tier="spot-a", tiers=(record,), reason=Reason.INSUFFICIENT_CAPACITY)
    move = Move(Stage.IDLE, Stage.STARTING, Reason.FELL_BACK, 2, "spot-b")
    metrics.decided(("ns", "a"), spec(), before, Decision(before, moves=(move,)))
    labels = {"from": "spot-a", "to": "spot-b", "reason": reason}
    assert metrics.registry.get_sample_value("spotladder_fallbacks_total", labels) == 1.0


def test_ended_attempts_and_losses_are_counted_once() -> None:
    metrics = Metrics(SteppedClock())
    first = AttemptRecord(1, "spot-a", 0.0, 1.0, 2.0, Reason.STALLED, 0, 0, 0)
    second = AttemptRecord(2, "spot-b", 3.0, 4.0, 5.0, Reason.HEAD_LOST, 0, 0, 0)
    loss = Loss("w-0", Cause.INTERRUPTION, 2, "spot-b")
    decision = Decision(JobState(history=(first, second)), losses=(loss,))
    metrics.decided(("ns", "a"), spec(), JobState(history=(first,)), decision)
    value = metrics.registry.get_sample_value
    assert value("spotladder_attempts_total", {"tier": "spot-a", "reason": Reason.STALLED}) is None
    assert value("spotladder_attempts_total", {"tier": "spot-b", "reason": Reason.HEAD_LOST}) == 1.0
    assert value("spotladder_failures_total", {"tier": "spot-b", "cause": Cause.INTERRUPTION}) == 1.0


def test_standby_attempts_replacements_and_hangs_are_counted() -> None:
    metrics = Metrics(SteppedClock())
    live = Attempt(1, "spot-a", 0.0, notice=NoticeResponse(("u-1",)))
    before = JobState(stage=Stage.RUNNING, tier="spot-a", attempt=live)
    changes = (
        StandbyChange(2, "spot-b", Reason.STANDBY_STARTED, "boots"),
        StandbyChange(2, "spot-b", Reason.STANDBY_ENDED, "failed"),
    )
    after = replace(before, attempt=replace(live, notice=NoticeResponse(("u-1", "u-2", "u-3"))), hangs=1)
    metrics.decided(("ns", "a"), spec(), before, Decision(after, standby_changes=changes))
    metrics.decided(("ns", "a"), spec(), after, Decision(after))
    metrics.decided(
        ("ns", "a"),
        spec(),
        after,
        Decision(replace(after, attempt=Attempt(2, "spot-a", 9.0, notice=NoticeResponse(("u-9",))))),
    )
    value = metrics.registry.get_sample_value
    for reason in (Reason.STANDBY_STARTED, Reason.STANDBY_ENDED):
        assert value("spotladder_standby_attempts_total", {"tier": "spot-b", "reason": reason}) == 1.0
    assert value("spotladder_replacements_total", {"tier": "spot-a"}) == 2.0
    assert value("spotladder_hangs_total", {"tier": "spot-a"}) == 1.0


def test_the_budget_the_slack_and_the_problems_of_a_job_are_gauges() -> None:
    metrics = Metrics(SteppedClock())
    job = spec(tier("on-demand", -1), budget=50.0, deadline=START + 7200.0, work=3600.0, overhead=60.0)
    state = JobState(clock=START, last_number=3, tiers=(TierRecord("on-demand", cost=40.0),))
    metrics.observe(("ns", "a"), job, state, ["StoreUnavailable", "PriceUnknown", "StoreUnavailable"])
    lines = [line.replace('job="a",namespace="ns"', "") for line in samples(metrics)]
    assert "spotladder_job_attempts{} 3.0" in lines
    assert "spotladder_job_budget_ratio{} 0.8" in lines
    assert "spotladder_job_deadline_slack_seconds{} 3540.0" in lines
    degraded = [line for line in lines if line.startswith("spotladder_job_degraded")]
    assert [re.findall(r'reason="(\w+)"', line) for line in degraded] == [["PriceUnknown"], ["StoreUnavailable"]]


def test_jobs_that_name_their_tiers_as_they_like_do_not_add_series_without_end() -> None:
    metrics = Metrics(SteppedClock())
    for index in range(MAX_TIERS + 10):
        loss = Loss("w-0", Cause.INTERRUPTION, 1, f"tier-{index}")
        metrics.decided(("ns", "a"), spec(), JobState(), Decision(JobState(), losses=(loss,)))
    counted = [line for line in samples(metrics) if line.startswith("spotladder_failures_total")]
    assert len(counted) == MAX_TIERS + 1
    assert 'spotladder_failures_total{cause="Interruption",tier="other"} 10.0' in counted
