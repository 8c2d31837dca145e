"""An e-mail alert for the monthly cost of a cluster."""

from __future__ import annotations

from typing import Any

from cdktn_aws import web_services_budgets

from spotladder.api.fields import plain_number
from spotladder_infra.topology.cluster import BudgetAlarm, Cluster

PERCENT = (80, 100)


def budget(scope: Any, cluster: Cluster, alarm: BudgetAlarm) -> None:
    """A monthly budget for all resources with the cluster's tag, with alerts for actual and for forecast cost."""
    notifications = [
        web_services_budgets.AwsBudget.NotificationProperty(
            comparison_operator="GREATER_THAN",
            notification_type=kind,
            threshold=percent,
            threshold_type="PERCENTAGE",
            subscriber_email_addresses=[alarm.email],
        )
        for kind, percent in (("ACTUAL", PERCENT[0]), ("FORECASTED", PERCENT[1]))
    ]
    tag = f"user:spotladder-cluster${cluster.name}"
    web_services_budgets.AwsBudget(
        scope,
        "budget",
        name=f"{cluster.name}-monthly",
        budget_type="COST",
        time_unit="MONTHLY",
        limit_amount=plain_number(alarm.monthly),
        limit_unit="USD",
        cost_filter=[web_services_budgets.AwsBudget.CostFilterProperty(name="TagKeyValue", values=[tag])],
        notification=notifications,
    )
