"""The bring-up of each cloud: every hop is allowed by a resource, and a hop without its resource is noticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spotladder_infra.bringup.hop import Hop
from spotladder_infra.bringup.walk import hops
from spotladder_infra.topology.fleet import Fleet
from tests.infra.synthesized import synthesized
from tests.infra.test_stacks import OF_THE_COMPANY
from tests.topology.builders import EVERY_OPTION, fleet_file


def missing(found: list[Hop]) -> dict[str, tuple[str, ...]]:
    return {each.step: each.missing for each in found if each.missing}


@pytest.mark.parametrize(("cluster", "least"), [("east", 18), ("west", 14), ("alpha", 14)])
def test_every_hop_is_allowed(cluster: str, least: int, fleet: Fleet, configuration: dict[str, Any]) -> None:
    found = hops(fleet, fleet.cluster(cluster), configuration[cluster])
    assert missing(found) == {}
    assert len(found) >= least
    addresses = {entry for each in found for entry in each.allowed_by if entry.startswith(("aws_", "google_"))}
    known = {f"{kind}.{name}" for kind, named in configuration[cluster]["resource"].items() for name in named}
    assert addresses <= known
    assert all(each.allowed_by for each in found)


@pytest.mark.parametrize("changes", [EVERY_OPTION, OF_THE_COMPANY], ids=["options", "company"])
def test_every_hop_is_allowed_with_options(
    changes: tuple[tuple[str, str], ...], tmp_path: Path, stacks: dict[str, Path]
) -> None:
    assert stacks
    fleet = fleet_file(tmp_path, *changes).fleet
    for name, stack in zip(("east", "west"), synthesized(fleet, tmp_path, "east", "west"), strict=True):
        assert missing(hops(fleet, fleet.cluster(name), stack)) == {}


def test_tpus_have_a_limit_and_a_plugin(tmp_path: Path, stacks: dict[str, Path]) -> None:
    assert stacks
    pool = "instanceTypes: [g2-standard-8]\n      accelerator: {type: nvidia-l4}"
    fleet = fleet_file(tmp_path, (pool, "instanceTypes: [ct6e-standard-4t]\n      tpuTopology: 2x4")).fleet
    (stack,) = synthesized(fleet, tmp_path, "west")
    found = hops(fleet, fleet.cluster("west"), stack)
    assert missing(found) == {}
    assert "nodes report their TPUs" in {each.step for each in found}
    scaling = stack["resource"]["google_container_cluster"]["cluster"]
    assert "tpu-v6e-slice" in json.dumps(scaling["cluster_autoscaling"])


REMOVED = [
    ("east", "aws_iam_role_policy_attachment.cluster-AmazonEKSClusterPolicy", "EKS acts in the account", "policy"),
    ("east", "aws_eks_addon.vpc-cni", "add-ons are installed before nodes", "vpc cni"),
    ("east", "aws_eks_pod_identity_association.karpenter-identity", "Karpenter has its identity", "association"),
    ("east", "aws_iam_instance_profile.node-profile", "Karpenter launches nodes", "profile"),
    ("east", "aws_iam_role_policy.karpenter-policy", "Karpenter launches nodes", "RunInstances"),
    ("east", "aws_eks_access_entry.node-access", "nodes join", "access entry"),
    ("east", "aws_iam_role_policy_attachment.node-AmazonEC2ContainerRegistryPullOnly", "nodes pull images", "policy"),
    ("east", "aws_iam_role_policy.train-team-a-policy", "pods of team-a write checkpoints", "PutObject"),
    ("east", "aws_cloudwatch_event_target.target-spot-interruption", "an interruption reaches the queue", "target"),
    ("east", "aws_sqs_queue_policy.interruptions-policy", "an interruption reaches the queue", "policy"),
    ("west", "google_compute_router_nat.nat", "nodes reach Google and the registries", "route"),
    ("west", "google_project_iam_member.node-reader", "nodes pull images", "role"),
    ("west", "google_storage_bucket_iam_member.train-team-a", "pods of team-a write checkpoints", "role"),
    ("alpha", "google_service_account_iam_member.karpenter-pods", "Karpenter has its identity", "binding"),
]


@pytest.mark.parametrize("removed", REMOVED, ids=lambda removed: removed[1])
def test_a_hop_without_its_resource_is_missing(
    removed: tuple[str, str, str, str], fleet: Fleet, configuration: dict[str, Any]
) -> None:
    cluster, address, step, need = removed
    stack = json.loads(json.dumps(configuration[cluster]))
    kind, _, name = address.partition(".")
    del stack["resource"][kind][name]
    assert need in missing(hops(fleet, fleet.cluster(cluster), stack))[step]


def test_a_member_on_aws_is_reached_through_its_allow_list(tmp_path: Path, stacks: dict[str, Path]) -> None:
    assert stacks
    open_to_home = (
        "network: {cidr: 10.0.0.0/16}\n",
        "network: {cidr: 10.0.0.0/16}\n    api: {allowed: [203.0.113.0/24]}\n",
    )
    for changes, expected in (
        ((open_to_home,), {}),
        ((), {"the controller in west reaches the API server": ("address",)}),
    ):
        fleet = fleet_file(tmp_path, ("home: east", "home: west"), *changes).fleet
        (stack,) = synthesized(fleet, tmp_path, "east")
        assert missing(hops(fleet, fleet.cluster("east"), stack)) == expected


def test_a_member_whose_endpoint_refuses_tokens_is_not_reached(fleet: Fleet, configuration: dict[str, Any]) -> None:
    stack = json.loads(json.dumps(configuration["west"]))
    endpoints = stack["resource"]["google_container_cluster"]["cluster"]["control_plane_endpoints_config"]
    endpoints["dns_endpoint_config"]["enable_k8s_tokens_via_dns"] = False
    found = missing(hops(fleet, fleet.cluster("west"), stack))
    assert found == {"the controller in east trusts and is trusted": ("token",)}
    endpoints["dns_endpoint_config"]["allow_external_traffic"] = False
    assert "the controller in east reaches the API server" in missing(hops(fleet, fleet.cluster("west"), stack))
