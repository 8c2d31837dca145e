"""The monthly budget of a namespace: which jobs count, and what a refusal says."""

from __future__ import annotations

import json

import pytest

from spotladder.api.stored import JobRecord
from spotladder.api.tenancy import TenantRule
from spotladder.operator.condition_types import ConditionReason, Diagnosis
from spotladder.operator.reconcile.namespace_budget import MONTH, over_budget
from spotladder.timestamps import utc_timestamp

NOW = 1_800_000_000.0
EVERYONE = TenantRule(namespaces=("*",), contact="#platform", monthly_budget=100)
TEAM_A = TenantRule(namespaces=("team-a",), monthly_budget=200)
MORE = TenantRule(namespaces=("team-a",), monthly_budget=300)


def a_job(name: str, spent: str, *, namespace: str = "team-a", ended: float | None = None) -> JobRecord:
    attempts = [] if ended is None else [{"number": 1, "tier": "a", "endedAt": utc_timestamp(NOW - ended)}]
    phase = "Running" if ended is None else "Succeeded"
    status = {"phase": phase, "cost": {"spent": spent}, "attempts": attempts}
    return JobRecord(name=name, namespace=namespace, uid=name, status=json.dumps(status).encode())


@pytest.mark.parametrize(
    ("rules", "jobs", "over"),
    [
        ((), [a_job("a", "9999")], False),
        ((EVERYONE,), [], False),
        ((EVERYONE,), [a_job("a", "99.99")], False),
        ((EVERYONE,), [a_job("a", "60"), a_job("b", "40")], True),
        ((EVERYONE,), [a_job("a", ">100.50")], True),
        ((EVERYONE,), [a_job("a", "unknown"), a_job("b", "")], False),
        ((EVERYONE,), [a_job("a", "150", namespace="team-b")], False),
        ((EVERYONE,), [a_job("a", "150", ended=MONTH - 60)], True),
        ((EVERYONE,), [a_job("a", "150", ended=MONTH + 60)], False),
        ((EVERYONE, TEAM_A), [a_job("a", "150")], False),
        ((EVERYONE, TEAM_A), [a_job("a", "250")], True),
        ((TEAM_A, MORE), [a_job("a", "250")], False),
        ((TenantRule(namespaces=("team-a",)), EVERYONE), [a_job("a", "150")], True),
    ],
)
def test_the_jobs_of_a_month_count_against_the_budget_of_their_namespace(
    rules: tuple[TenantRule, ...], jobs: list[JobRecord], over: bool
) -> None:
    assert (over_budget(rules, jobs, "team-a", NOW) is not None) == over


def test_a_refusal_names_the_rule_its_value_and_whom_to_ask() -> None:
    message = (
        "namespace team-a: its jobs of the last 30 days have cost 1,250.50 USD, and monthlyBudget of the chart's "
        "tenancy is 100.00 USD: wait until older jobs no longer count, or ask #platform to raise it"
    )
    found = over_budget((EVERYONE,), [a_job("a", "1250.50")], "team-a", NOW)
    assert found == Diagnosis(ConditionReason.NOT_ALLOWED, message)


@pytest.mark.parametrize("budget", [0, -1])
def test_a_budget_is_more_than_nothing(budget: float) -> None:
    with pytest.raises(ValueError, match="monthlyBudget"):
        TenantRule.model_validate({"namespaces": ["*"], "monthlyBudget": budget})
