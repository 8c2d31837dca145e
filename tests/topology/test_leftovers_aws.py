"""The remaining resources of a cluster in an account of AWS with more of them than are in one response."""

from __future__ import annotations

from pathlib import Path

import boto3
import pytest

from spotladder_infra import leftovers
from tests.topology.amazon import account
from tests.topology.builders import fleet_file

MANY = 51
"""More rules than moto has in one response."""


def test_a_cluster_and_its_rules_are_found_among_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = fleet_file(tmp_path).fleet
    with account(monkeypatch):
        eks, events = (boto3.client(service, region_name="us-east-1") for service in ("eks", "events"))
        eks.create_cluster(name="east", roleArn="arn:aws:iam::123456789012:role/eks", resourcesVpcConfig={})
        for name in (*(f"east-{number:03}" for number in range(MANY)), "east-spot-interruption"):
            owner = "east" if name == "east-spot-interruption" else "east-2"
            tags = [{"Key": "spotladder-cluster", "Value": owner}]
            events.put_rule(Name=name, EventPattern='{"source": ["aws.ec2"]}', Tags=tags)
        found = {(entry.kind, entry.identifier) for entry in leftovers.find(fleet, fleet.cluster("east"))}
    assert found == {("EKS cluster", "east"), ("event rule", "east-spot-interruption")}
