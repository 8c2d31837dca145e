"""The stacks of existing EKS and GKE clusters: what they create, what they leave alone, and the bring-up on them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from spotladder_infra import costs, leftovers
from spotladder_infra.bringup.walk import hops
from spotladder_infra.iam_simulation import allowed
from spotladder_infra.permissions import of_stack
from spotladder_infra.rollout.plan import plan
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.read import read_fleet
from tests.infra import tool
from tests.infra.synthesized import synthesized
from tests.infra.test_bringup import missing
from tests.infra.test_examples import EXAMPLES
from tests.topology.builders import TODAY, fleet_file

pytestmark = pytest.mark.timeout(600)

IDENTITY = {"controller", "karpenter", "node", "train-team-a"}
EKS = {
    "aws_cloudwatch_event_rule", "aws_cloudwatch_event_target", "aws_sqs_queue", "aws_sqs_queue_policy",
    "aws_eks_access_entry", "aws_eks_pod_identity_association",
    "aws_iam_role", "aws_iam_role_policy", "aws_iam_role_policy_attachment", "aws_iam_instance_profile",
    "aws_kms_key", "aws_kms_alias",
}  # fmt: skip
"""The types of the resources of an existing EKS cluster, without those of the bucket."""

GKE = {"google_project_iam_member", "google_service_account", "google_storage_bucket_iam_member"}


@dataclass(frozen=True)
class Existing:
    fleet: Fleet
    stack: dict[str, Any]

    @property
    def cluster(self) -> Cluster:
        return self.fleet.spec.clusters[0]


@pytest.fixture(scope="module")
def existing(stacks: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Existing]:
    """The example fleets, by the name of their clouds' Kubernetes."""
    assert stacks  # skips where the bindings are missing
    found = {}
    for name in ("eks", "gke"):
        file = read_fleet(EXAMPLES / f"existing-{name}.yaml", TODAY)
        assert file.warnings == ()
        (stack,) = synthesized(file.fleet, tmp_path_factory.mktemp(name), file.fleet.spec.home)
        found[name] = Existing(file.fleet, stack)
    return found


def test_an_existing_eks_cluster_gets_only_what_it_lacks(existing: dict[str, Existing]) -> None:
    stack = existing["eks"].stack
    kinds = set(stack["resource"])
    assert {kind for kind in kinds if not kind.startswith("aws_s3_")} == EKS
    assert set(stack["resource"]["aws_iam_role"]) == {f"{name}-role" for name in IDENTITY}
    assert set(stack["resource"]["aws_eks_access_entry"]) == {"node-access"}
    assert stack["data"]["aws_eks_cluster"]["cluster"]["name"] == "prod_1"
    assert stack["output"]["spotladder"]["value"]["network"] == {
        "network": "${data.aws_eks_cluster.cluster.vpc_config[0].vpc_id}",
        "subnets": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
        "securityGroups": [
            "${data.aws_eks_cluster.cluster.vpc_config[0].cluster_security_group_id}",
            "sg-0123456789abcdef0",
        ],
    }


def test_an_existing_gke_cluster_gets_only_what_it_lacks(existing: dict[str, Existing]) -> None:
    stack = existing["gke"].stack
    assert set(stack["resource"]) == GKE | {"google_storage_bucket"}
    asked = stack["data"]["google_container_cluster"]["cluster"]
    assert (asked["name"], asked["location"], asked["project"]) == ("prod-us-central1", "us-central1", "acme-ml")
    granted = stack["resource"]["google_project_iam_member"]["controller-clusters"]
    assert granted["depends_on"] == ["data.google_container_cluster.cluster"]


def test_a_zonal_gke_cluster_is_read_in_its_zone(tmp_path: Path, existing: dict[str, Existing]) -> None:
    text = (EXAMPLES / "existing-gke.yaml").read_text()
    (tmp_path / "fleet.yaml").write_text(text.replace("existing: prod-", "existing: us-central1-b/prod-"))
    fleet = read_fleet(tmp_path / "fleet.yaml", TODAY).fleet
    (stack,) = synthesized(fleet, tmp_path, fleet.spec.home)
    asked = stack["data"]["google_container_cluster"]["cluster"]
    assert (asked["name"], asked["location"]) == ("prod-us-central1", "us-central1-b")


def test_subnets_by_their_tags_are_those_of_the_clusters_vpc(tmp_path: Path, existing: dict[str, Existing]) -> None:
    text = (EXAMPLES / "existing-eks.yaml").read_text()
    by_id = "subnets: [subnet-0123456789abcdef0, subnet-0123456789abcdef1]"
    (tmp_path / "fleet.yaml").write_text(text.replace(by_id, "subnetTags: {tier: private}"))
    fleet = read_fleet(tmp_path / "fleet.yaml", TODAY).fleet
    (stack,) = synthesized(fleet, tmp_path, fleet.spec.home)
    (filtered,) = stack["data"]["aws_subnets"]["subnets"]["filter"]
    assert filtered["values"] == ["${data.aws_eks_cluster.cluster.vpc_config[0].vpc_id}"]
    reads = {
        action for entry in of_stack(fleet, fleet.spec.clusters[0], stack)["Statement"] for action in entry["Action"]
    }
    assert {"ec2:Describe*", "eks:DescribeCluster"} <= reads


def test_karpenter_launches_nodes_of_the_existing_cluster(existing: dict[str, Existing]) -> None:
    found = existing["eks"]
    policy = json.loads(found.stack["resource"]["aws_iam_role_policy"]["karpenter-policy"]["policy"])
    place = "arn:${data.aws_partition.partition.partition}:ec2:us-east-1:1:instance/i"

    def launch(name: str) -> bool:
        tags = {f"aws:RequestTag/kubernetes.io/cluster/{name}": "owned", "aws:RequestTag/eks:eks-cluster-name": name}
        return allowed(policy, "ec2:RunInstances", place, {**tags, "aws:RequestTag/karpenter.sh/nodepool": "g5"})

    assert launch("prod_1")
    assert not launch("east")
    values = {step.name: step.values for step in plan(found.fleet, found.cluster).releases}
    assert values["karpenter"]["settings"] == {"clusterName": "prod_1", "interruptionQueue": "east-interruptions"}
    assert values["pools"]["nodeClasses"][0]["spec"]["securityGroupSelectorTerms"] == [
        {"tags": {"aws:eks:cluster-name": "prod_1"}},
        {"id": "sg-0123456789abcdef0"},
    ]


@pytest.mark.parametrize("name", ["eks", "gke"])
def test_no_controller_waits_for_system_nodes(name: str, existing: dict[str, Existing]) -> None:
    found = existing[name]
    values = json.dumps([step.values for step in plan(found.fleet, found.cluster).releases])
    assert '"spotladder.io/pool": "system"' not in values
    assert "CriticalAddonsOnly" not in values


@pytest.mark.parametrize("name", ["eks", "gke"])
def test_every_hop_is_allowed(name: str, existing: dict[str, Existing]) -> None:
    found = existing[name]
    walked = hops(found.fleet, found.cluster, found.stack)
    assert missing(walked) == {}
    assert any("which is yours" in entry for hop in walked for entry in hop.allowed_by)
    unread = {**found.stack, "data": {}}
    assert "system nodes join" in missing(hops(found.fleet, found.cluster, unread))


def test_a_home_cluster_reaches_an_existing_member(tmp_path: Path, existing: dict[str, Existing]) -> None:
    assert existing
    private = "    network: {existing: {subnets: [subnet-0123456789abcdef0]}}\n    existing: prod\n"
    changes = (
        ("home: east", "home: west"),
        ("    network: {cidr: 10.0.0.0/16}\n", private),
        ("    network: {cidr: 10.1.16.0/20, pods: 10.132.0.0/14}\n", "    existing: prod-2\n"),
    )
    file = fleet_file(tmp_path, *changes)
    assert [each for each in file.warnings if "let the addresses of west, egress of its outputs" in each.message]
    for name in ("east", "alpha"):
        cluster = file.fleet.cluster(name)
        (stack,) = synthesized(file.fleet, tmp_path, name)
        assert missing(hops(file.fleet, cluster, stack)) == {}
        assert "variable" not in stack


def test_the_printed_permissions_create_no_cluster(existing: dict[str, Existing]) -> None:
    found = existing["eks"]
    policy = of_stack(found.fleet, found.cluster, found.stack)
    text = json.dumps(policy)
    for action in ("eks:CreateCluster", "eks:DeleteCluster", "eks:CreateNodegroup", "ec2:CreateSubnet"):
        assert action not in text
    assert "cluster/prod_1" in text
    assert all(statement["Action"] for statement in policy["Statement"])
    roles = of_stack(existing["gke"].fleet, existing["gke"].cluster, existing["gke"].stack)["roles"]
    assert "roles/container.viewer" in roles
    assert not {"roles/container.admin", "roles/compute.networkAdmin"} & set(roles)


def test_only_the_key_of_the_bucket_costs_money_while_idle(existing: dict[str, Existing]) -> None:
    eks, gke = (costs.idle(existing[name].fleet, existing[name].cluster) for name in ("eks", "gke"))
    assert [(item.what, item.count) for item in eks] == [("KMS keys", 1)]
    assert gke == []


@pytest.fixture
def cluster_of_yours(emulator: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """EKS with the cluster of the example and one of its volumes, in the emulator's account."""
    for name, value in {**tool.KEYS, "AWS_ENDPOINT_URL": emulator}.items():
        monkeypatch.setenv(name, value)
    eks = boto3.client("eks", region_name="us-east-1")
    role = f"arn:aws:iam::{tool.ACCOUNT}:role/yours"
    eks.create_cluster(name="prod_1", roleArn=role, resourcesVpcConfig={"subnetIds": ["subnet-0123456789abcdef0"]})
    ec2 = boto3.client("ec2", region_name="us-east-1")
    owned = [
        {"Key": "kubernetes.io/cluster/prod_1", "Value": "owned"},
        {"Key": "eks:eks-cluster-name", "Value": "east"},
    ]
    tags = [{"ResourceType": "volume", "Tags": owned}]
    volume = ec2.create_volume(AvailabilityZone="us-east-1a", Size=1, TagSpecifications=tags)["VolumeId"]
    yield eks
    ec2.delete_volume(VolumeId=volume)
    eks.delete_cluster(name="prod_1")


def test_destroy_keeps_the_cluster(
    cluster_of_yours: Any, existing: dict[str, Existing], terraform: Callable[..., tool.Terraform],
    tmp_path: Path, emulator: str,
) -> None:  # fmt: skip
    """The stack is applied and destroyed in the emulator; the bucket, which Terraform protects, is left out."""
    stack = json.loads(json.dumps(existing["eks"].stack))
    del stack["provider"]["aws"][0]["allowed_account_ids"]
    stack["resource"] = {
        kind: kept
        for kind, named in stack["resource"].items()
        if (kept := {name: body for name, body in named.items() if not name.startswith("checkpoints")})
    }
    source = tmp_path / "source"
    source.mkdir()
    (source / "cdk.tf.json").write_text(json.dumps(stack))
    applied = terraform(tmp_path, source, AWS_ENDPOINT_URL=emulator)
    applied.run("apply", "-auto-approve", "-input=false", "-no-color")
    entries = cluster_of_yours.list_access_entries(clusterName="prod_1")["accessEntries"]
    assert [entry for entry in entries if entry.endswith(":role/east-node")]
    applied.run("destroy", "-auto-approve", "-input=false", "-no-color")
    assert cluster_of_yours.describe_cluster(name="prod_1")["cluster"]["status"] == "ACTIVE"
    assert leftovers.find(existing["eks"].fleet, existing["eks"].cluster) == []
    left = cluster_of_yours.list_access_entries(clusterName="prod_1")["accessEntries"]
    assert not [entry for entry in left if entry.endswith(":role/east-node")]
