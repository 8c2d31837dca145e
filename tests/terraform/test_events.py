"""What Terraform prints becomes events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spotladder_infra.terraform.changes import by_type, counted, lost, lost_clusters
from spotladder_infra.terraform.events import Action, Diagnostic, Event, Planned, parse, parse_text

VPC = {"addr": "aws_vpc.vpc", "resource_type": "aws_vpc", "resource_name": "vpc"}


def line(kind: str, **fields: Any) -> str:
    return json.dumps({"@level": "info", "@message": "…", "type": kind, **fields}) + "\n"


@pytest.mark.parametrize(
    ("text", "event"),
    [
        (line("planned_change", change={"resource": VPC, "action": "create"}), Planned("aws_vpc.vpc", Action.CREATE)),
        (line("planned_change", change={"resource": VPC, "action": "replace"}), Planned("aws_vpc.vpc", Action.REPLACE)),
        (
            line("planned_change", change={"resource": VPC, "action": "replace", "reason": "tainted"}),
            Planned("aws_vpc.vpc", Action.REPLACE, tainted=True),
        ),
        (line("planned_change", change={"resource": VPC, "action": "remove"}), Planned("aws_vpc.vpc", Action.FORGET)),
        (line("planned_change", change={"resource": VPC, "action": "read"}), "…"),
        (line("apply_start", hook={"resource": VPC, "action": "create"}), "…"),
        (
            line("diagnostic", diagnostic={"severity": "error", "summary": "s", "detail": "d", "address": "a.b"}),
            Diagnostic("error", "s", "d", "a.b"),
        ),
        (
            "Releasing state lock. This may take a few moments...\n",
            "Releasing state lock. This may take a few moments...",
        ),
        ("[]\n", "[]"),
        ('{"half": \n', '{"half":'),
    ],
)
def test_parse(text: str, event: Event) -> None:
    assert parse(text) == event


BOXED = """\
╷
│ Error: Failed to query available provider packages
│
│ Could not retrieve the list of available versions for provider
│ hashicorp/aws: no available releases match
╵
╷
│ Error: Second
╵
"""


@pytest.mark.parametrize("text", [BOXED, "\n".join(part.removeprefix("│ ") for part in BOXED.splitlines())])
def test_errors_of_text(text: str) -> None:
    assert parse_text(text) == [
        Diagnostic(
            "error",
            "Failed to query available provider packages",
            "Could not retrieve the list of available versions for provider\n"
            "hashicorp/aws: no available releases match",
        ),
        Diagnostic("error", "Second", ""),
    ]


def test_a_plan_by_type_of_resource() -> None:
    plan = [
        Planned("aws_subnet.private-a", Action.CREATE),
        Planned("aws_subnet.private-b", Action.DELETE),
        Planned("aws_eks_cluster.cluster", Action.REPLACE),
        Planned("aws_eks_node_group.system", Action.UPDATE),
        Planned("aws_kms_key.checkpoints-key", Action.FORGET),
    ]
    assert by_type(plan) == [
        ("aws_eks_cluster", *"00100"),
        ("aws_eks_node_group", *"01000"),
        ("aws_kms_key", *"00001"),
        ("aws_subnet", *"10010"),
    ]
    assert counted(plan) == "1 to create, 1 to change, 1 to replace, 1 to delete, 1 to forget"
    assert counted([]) == "no change"
    assert lost_clusters(plan) == ["aws_eks_cluster.cluster"]
    assert lost(plan) == ["aws_subnet.private-b", "aws_eks_cluster.cluster"]
