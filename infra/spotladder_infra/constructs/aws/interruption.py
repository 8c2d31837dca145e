"""The queue of interruption notices for Karpenter, and the five rules that write to it."""

from __future__ import annotations

import json
from typing import Any

from cdktn_aws import eventbridge, sqs

from spotladder_infra.iam import PolicyScope, queue
from spotladder_infra.names import interruption_queue
from spotladder_infra.topology.cluster import Cluster

RETENTION_SECONDS = 300
"""Seconds after which a notice expires: its instance is gone by then."""

INTERRUPTION_EVENTS = {
    "health": ("aws.health", "AWS Health Event"),
    "spot-interruption": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "state-change": ("aws.ec2", "EC2 Instance State-change Notification"),
    "capacity-reservation": ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}


def interruption(scope: Any, cluster: Cluster, place: PolicyScope) -> Any:
    """The queue of one cluster, and its rules."""
    made = sqs.AwsQueue(
        scope,
        "interruptions",
        name=interruption_queue(cluster),
        message_retention_seconds=RETENTION_SECONDS,
        sqs_managed_sse_enabled=True,
    )
    sqs.AwsQueuePolicy(
        scope, "interruptions-policy", queue_url=made.url, policy=json.dumps(queue(made.arn, place.account))
    )
    for key, (source, kind) in INTERRUPTION_EVENTS.items():
        rule = eventbridge.AwsRule(
            scope,
            f"rule-{key}",
            name=f"{cluster.name}-{key}",
            description=kind,
            event_pattern=json.dumps({"source": [source], "detail-type": [kind]}),
        )
        eventbridge.AwsTarget(scope, f"target-{key}", rule=rule.name, target_id="karpenter", arn=made.arn)
    return made
