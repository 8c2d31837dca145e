"""The printed permissions: complete for every resource of the stacks, and valid for AWS."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spotladder_infra import iam
from spotladder_infra.account import SPOT_ROLE, SPOT_SERVICE
from spotladder_infra.facts.apply_permissions import AWS, GCP
from spotladder_infra.iam_simulation import allowed
from spotladder_infra.permissions import of_stack
from spotladder_infra.stacks.synth import read_stack
from spotladder_infra.topology.fleet import Fleet
from tests.infra.synthesized import synthesized
from tests.infra.test_iam_lint import problems
from tests.infra.test_stacks import OF_THE_COMPANY
from tests.topology.builders import EVERY_OPTION, fleet_file

LARGEST_POLICY = 6_144
"""Characters of a policy that can be attached to a role or user."""


def test_every_type_of_resource_has_its_permissions(
    configuration: dict[str, Any], optional_stacks: dict[str, Path]
) -> None:
    known = {kind for kind in {**AWS, **GCP} if not kind.startswith("data.")}
    stacks = [
        *configuration.values(),
        *(read_stack(folder.parents[1], name) for name, folder in optional_stacks.items()),
    ]
    created = {kind for stack in stacks for kind in stack["resource"]}
    assert created - known == set()
    of_options = {"google_kms_crypto_key_iam_member", "google_compute_address"}
    assert known - created <= of_options, "without resources of such a type the entry has no use"


def test_the_policy_fits_the_definitions_of_aws(tmp_path: Path, optional_stacks: dict[str, Path]) -> None:
    fleet = fleet_file(tmp_path, *EVERY_OPTION).fleet
    stack = read_stack(optional_stacks["east"].parents[1], "east")
    policy = of_stack(fleet, fleet.cluster("east"), stack)
    statements = [
        {**statement, "Resource": [name.replace("/east/*", "/east/a/b/c/d") for name in statement["Resource"]]}
        for statement in policy["Statement"]
    ]
    found = [problem for statement in statements for problem in problems(statement)]
    assert [problem for problem in found if not problem.endswith("could name its resources")] == []
    unnamed = {text.partition(":")[0] for text in found}
    assert unnamed <= {"ec2", "kms", "budgets"}, "only these have resources without names of their own"
    assert iam.size(policy) <= LARGEST_POLICY


@pytest.mark.parametrize(("region", "partition"), [("us-gov-west-1", "aws-us-gov"), ("cn-north-1", "aws-cn")])
def test_the_policy_is_for_the_partition_of_the_region(region: str, partition: str, tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path).fleet
    cluster = fleet.cluster("east").model_copy(update={"region": region})
    policy = of_stack(fleet, cluster, {"resource": {"aws_iam_role": {}, "aws_s3_bucket": {}, "aws_sqs_queue": {}}})
    named = {name.split(":")[1] for statement in policy["Statement"] for name in statement["Resource"] if name != "*"}
    assert named == {partition}


def test_the_role_of_spot_may_be_found_and_created(tmp_path: Path) -> None:
    """`bootstrap` does that beside Terraform, also for an existing cluster, whose stack creates no linked role."""
    fleet = fleet_file(tmp_path).fleet
    policy = of_stack(fleet, fleet.cluster("east"), {"resource": {"aws_iam_role": {}}})
    role = f"arn:aws:iam::123456789012:role/aws-service-role/{SPOT_SERVICE}/{SPOT_ROLE}"
    assert allowed(policy, "iam:CreateServiceLinkedRole", role, {})
    assert allowed(policy, "iam:ListRoles", "*", {})


def test_an_existing_network_needs_no_permission_to_create_one(tmp_path: Path, stacks: dict[str, Path]) -> None:
    assert stacks
    fleet = fleet_file(tmp_path, *OF_THE_COMPANY).fleet
    of_east, of_west = synthesized(fleet, tmp_path, "east", "west")
    text = json.dumps(of_stack(fleet, fleet.cluster("east"), of_east))
    assert "CreateVpc" not in text
    assert "kms:CreateKey" not in text
    assert '"kms:CreateGrant", "kms:DescribeKey"' in text, "EKS asks them of who creates a cluster with a key"
    assert "arn:aws:iam::123456789012:role/platform/ml-east-*" in text
    west = of_stack(fleet, fleet.cluster("west"), of_west)
    assert west["hostProject"] == {"acme-net": ["roles/compute.networkUser"]}
    assert "roles/compute.networkAdmin" not in west["roles"]


@pytest.mark.parametrize("cluster", ["west", "alpha"])
def test_google_cloud_has_no_broad_role(cluster: str, fleet: Fleet, stacks: dict[str, Path]) -> None:
    found = of_stack(fleet, fleet.cluster(cluster), read_stack(stacks[cluster].parents[1], cluster))
    assert found["project"] == "acme-ml"
    assert not set(found["roles"]) & {"roles/owner", "roles/editor"}
    assert "roles/container.admin" in found["roles"]
