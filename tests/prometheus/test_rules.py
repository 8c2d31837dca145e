"""Each alert of the chart fires when it should, by promtool's unit tests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.prometheus.rules import rule_groups
from tests.prometheus.server import promtool

LEADS = {"spotladder_leading{instance='a'}": "1x400"}
OF_JOB = "{instance='a',namespace='ml',job='digits'}"
JOB = {"namespace": "ml", "job": "digits"}
RUNNING = {"spotladder_job_phase{instance='a',namespace='ml',job='digits',phase='Running'}": "1x400"}


@dataclass(frozen=True, slots=True)
class Case:
    """The alert is silent at minute `silent_at`, and fires at minute `fires_at` with these labels. The series have one
    value a minute, in the notation of promtool."""

    alert: str
    series: dict[str, str]
    silent_at: int
    fires_at: int
    labels: dict[str, str]
    summary: str
    severity: str = "warning"


def of_job(name: str, values: str) -> dict[str, str]:
    return {**LEADS, f"spotladder_{name}{OF_JOB}": values}


CASES = [
    Case(
        "SpotladderNotLeading",
        {"spotladder_leading{instance='a'}": "1x5 0x60"},
        5,
        9,
        {},
        "No spotladder controller leads. Jobs continue to train, but do not recover from the loss of nodes.",
        "critical",
    ),
    Case(
        "SpotladderReconcileErrors",
        {"spotladder_reconcile_errors_total{instance='a',error='KeyError'}": "0+1x60"},
        5,
        30,
        {"error": "KeyError"},
        "Reconciles of jobs fail repeatedly: KeyError.",
    ),
    Case(
        "SpotladderBehind",
        {**LEADS, "spotladder_queue_depth{instance='a'}": "100x5 101x30"},
        5,
        20,
        {},
        "101 jobs wait in the workqueue.",
    ),
    Case(
        "SpotladderRefused",
        {"spotladder_api_requests_total{instance='a',cluster='home',verb='get',resource='pods',code='403'}": "0+60x60"},
        5,
        30,
        {"cluster": "home", "verb": "get", "resource": "pods", "code": "403"},
        "The API server of home responds with 403 to get pods.",
    ),
    Case(
        "SpotladderClusterDown",
        {**LEADS, "spotladder_cluster_up{instance='a',cluster='east'}": "1x5 0x30"},
        5,
        12,
        {"cluster": "east"},
        "Cluster east cannot be used: its tiers are unavailable.",
    ),
    Case(
        "SpotladderJobWaits",
        {**LEADS, "spotladder_job_phase{instance='a',namespace='ml',job='digits',phase='Pending'}": "1x60"},
        20,
        31,
        JOB,
        "ml/digits has no nodes.",
    ),
    Case(
        "SpotladderCommitsOld",
        {**RUNNING, **of_job("commit_age_seconds", "0+60x120")},
        60,
        67,
        JOB,
        "ml/digits is running but has not committed for 1h 7m 0s.",
    ),
    Case(  # The age counts while the job waits; then it runs again.
        "SpotladderCommitsOld",
        {
            "spotladder_job_phase{instance='a',namespace='ml',job='digits',phase='Running'}": "1x10 stale _x119 1x200",
            **of_job("commit_age_seconds", "0+60x400"),
        },
        145,
        200,
        JOB,
        "ml/digits is running but has not committed for 3h 20m 0s.",
    ),
    Case(
        "SpotladderStoreUnavailable",
        {
            **LEADS,
            "spotladder_job_degraded{instance='a',namespace='ml',job='digits',reason='StoreUnavailable'}": "_x6 1x60",
        },
        5,
        12,
        {**JOB, "reason": "StoreUnavailable"},
        "ml/digits cannot use its checkpoint store: StoreUnavailable.",
    ),
    Case(
        "SpotladderAttemptLoop",
        {**of_job("job_attempts", "1x60 2+1x60"), f"spotladder_job_progress_ratio{OF_JOB}": "0.5x120"},
        60,
        66,
        JOB,
        "ml/digits has begun 6 attempts in an hour and committed nothing.",
    ),
    Case(
        "SpotladderDeadlineAtRisk",
        of_job("job_deadline_slack_seconds", "60-60x30"),
        5,
        10,
        JOB,
        "ml/digits has no time to lose before its deadline.",
    ),
    Case(
        "SpotladderJobBudgetSpent",
        of_job("job_budget_ratio", "0.7x5 0.85x10"),
        5,
        7,
        JOB,
        "ml/digits has spent 85% of its budget.",
    ),
    Case(
        "SpotladderJobFailed",
        {**LEADS, "spotladder_job_phase{instance='a',namespace='ml',job='digits',phase='Failed'}": "_x6 1x10"},
        5,
        7,
        JOB,
        "ml/digits has failed.",
    ),
    Case(
        "SpotladderTierUnavailable",
        {**LEADS, "spotladder_tier_available{instance='a',tier='spot'}": "0x90"},
        50,
        61,
        {"tier": "spot"},
        "Tier spot did not fulfil the last request for nodes.",
        "info",
    ),
    Case(
        "SpotladderBadNode",
        {**LEADS, "spotladder_bad_nodes{instance='a',node='n1'}": "_x6 2x30"},
        5,
        12,
        {"node": "n1"},
        "Pods fail repeatedly on node n1; jobs that avoid it: 2.",
    ),
    Case(
        "SpotladderBudgetExceeded",
        {"spotladder_namespace_cost_usd_total{instance='a',namespace='team-a'}": "0+10x90"},
        5,
        85,
        {"namespace": "team-a", "share": "0.8"},
        "Jobs in team-a have cost 850 USD in 30 days; the budget is 1000 USD.",
        "info",
    ),
]


def unit_test(case: Case) -> dict[str, Any]:
    """The case in promtool's format."""
    fires = {
        "exp_labels": {"severity": case.severity, **case.labels},
        "exp_annotations": {"summary": case.summary},
    }
    return {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "alert_rule_test": [
            {"eval_time": f"{case.silent_at}m", "alertname": case.alert, "exp_alerts": []},
            {"eval_time": f"{case.fires_at}m", "alertname": case.alert, "exp_alerts": [fires]},
        ],
    }


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    file = tmp_path / "rules.yaml"
    file.write_text(json.dumps({"groups": rule_groups(tmp_path)}), encoding="utf-8")
    return file


def test_promtool_accepts_the_rules(rules: Path) -> None:
    found = promtool("check", "rules", "--lint=all", "--lint-fatal", rules)
    assert found.returncode == 0, found.stdout + found.stderr


def test_every_alert_fires_when_it_should_and_not_before(rules: Path) -> None:
    groups = json.loads(rules.read_text(encoding="utf-8"))["groups"]
    alerts = {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}
    assert {case.alert for case in CASES} == alerts
    tests = rules.parent / "tests.yaml"
    said = {"rule_files": [rules.name], "evaluation_interval": "1m", "tests": [unit_test(case) for case in CASES]}
    tests.write_text(json.dumps(said), encoding="utf-8")
    found = promtool("test", "rules", tests)
    assert found.returncode == 0, found.stdout + found.stderr
