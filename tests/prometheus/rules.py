"""The rules of the chart, as Prometheus' operator writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.charts.helm import objects, rendered

VALUES = ("--set", "prometheusRule.enabled=true,prometheusRule.monthlyBudgets.team-a=1000")


def rule_groups(folder: Path) -> list[dict[str, Any]]:
    """The groups of the PrometheusRule, without runbooks."""
    (rule,) = [one for one in objects(rendered(folder, *VALUES)) if one["kind"] == "PrometheusRule"]
    groups: list[dict[str, Any]] = rule["spec"]["groups"]
    return groups
