"""What Terraform prints becomes events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spotladder_infra.terraform.changes import by_concern, concern_of, counted
from spotladder_infra.terraform.events import Action, Diagnostic, Event, Planned, parse, parse_text

VPC = {"addr": "aws_vpc.vpc", "resource_type": "aws_vpc", "resource_name": "vpc"}


def line(kind: str, **fields: Any) -> str:
    return json.dumps({"@level": "info", "@message": "…", "type": kind, **fields}) + "\n"


@pytest.mark.parametrize(
    ("text", "event"),
    [
        (line("planned_change", change={"resource": VPC, "action": "create"}), Planned("aws_vpc.vpc", Action.CREATE)),
        (line("planned_change", change={"resource": VPC, "action": "replace"}), Planned("aws_vpc.vpc", Action.REPLACE)),
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


def test_a_plan_by_concern() -> None:
    plan = [
        Planned("aws_vpc.vpc", Action.CREATE),
        Planned("aws_subnet.private-a", Action.CREATE),
        Planned("aws_eks_node_group.system", Action.UPDATE),
        Planned("aws_iam_role.node-role", Action.REPLACE),
        Planned("aws_s3_bucket.checkpoints", Action.DELETE),
        Planned("aws_kms_key.checkpoints-key", Action.FORGET),
    ]
    assert by_concern(plan) == [
        ("identity", *"00100"),
        ("nodes", *"01000"),
        ("checkpoints", *"00010"),
        ("keys", *"00001"),
        ("network", *"20000"),
    ]
    assert counted(plan) == "2 to create, 1 to change, 1 to replace, 1 to delete, 1 to forget"
    assert counted([]) == "no change"


@pytest.mark.parametrize(
    ("address", "concern"),
    [
        ("aws_eks_pod_identity_association.karpenter-identity", "identity"),
        ("aws_eks_cluster.cluster", "control plane"),
        ("aws_eks_addon.vpc-cni", "nodes"),
        ("google_container_node_pool.system", "nodes"),
        ("google_compute_router_nat.nat", "network"),
        ("random_pet.name", "other"),
    ],
)
def test_every_resource_has_a_concern(address: str, concern: str) -> None:
    assert concern_of(address) == concern
