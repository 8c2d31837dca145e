"""What other projects expect of the policies, values and tables here, compared with their own files.

The facts come from the Go modules of Karpenter's provider for AWS, NVIDIA's device plugin and JobSet at the pinned
versions, so a new pin is compared again, and from AWS's descriptions of its APIs in botocore.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from boto3.session import Session
from botocore.loaders import Loader
from ruamel.yaml import YAML

from spotladder import versions
from spotladder_infra import iam
from spotladder_infra.facts import prices, regions, sizes
from spotladder_infra.rollout import components
from spotladder_infra.rollout.plan import plan
from spotladder_infra.topology.cluster import Cloud
from spotladder_infra.topology.defaults import SYSTEM_INSTANCE
from tests.infra.gomodule import module
from tests.topology.builders import PLATFORM, fleet_file

PLACE = iam.PolicyScope("aws", "123456789012", "us-east-1")

NOT_CALLED = {
    "iam:CreateInstanceProfile": "the node classes name an instance profile that the stack creates",
    "iam:DeleteInstanceProfile": "the same",
    "iam:AddRoleToInstanceProfile": "the same",
    "iam:RemoveRoleFromInstanceProfile": "the same",
    "iam:TagInstanceProfile": "the same",
    "iam:GetRole": "the same",
    "sqs:SendMessage": "Karpenter's tests send messages",
    "arc-zonal-shift:GetManagedResource": "settings.enableZonalShift is off by default",
    "timestream:WriteRecords": "Karpenter's tests record times",
}
"""Operations in Karpenter's sources that its policy here does not allow, and why it does not call them."""

SERVICES = {"ARCZonalShift": "arc-zonal-shift", "TimestreamWrite": "timestream"}


def karpenter() -> Path:
    return module("github.com/aws/karpenter-provider-aws", f"v{versions.KARPENTER}")


def test_karpenter_may_do_what_it_calls() -> None:
    source = (karpenter() / "pkg" / "aws" / "sdk.go").read_text()
    called = {
        f"{SERVICES.get(service, service.lower())}:{operation}"
        for service, body in re.findall(r"type (\w+)API interface \{(.*?)\n\}", source, re.S)
        for operation in re.findall(r"^\t(\w+)\(", body, re.M)
    }
    policy = iam.karpenter(PLACE, "east", "arn:role", "east-node", "arn:queue")
    allowed = {action for statement in policy["Statement"] for action in statement["Action"]}
    assert called - allowed == set(NOT_CALLED)
    assert allowed - called == {"iam:PassRole"}, "for CreateFleet; nothing else is allowed that it does not call"


CHARTS: dict[str, Callable[[], Path]] = {
    "karpenter": lambda: karpenter() / "charts" / "karpenter",
    "gpu-device-plugin": lambda: (
        module("github.com/NVIDIA/k8s-device-plugin", f"v{components.GPU_DEVICE_PLUGIN.chart.version}")
        / "deployments" / "helm" / "nvidia-device-plugin"
    ),
    "jobset": lambda: (
        module("sigs.k8s.io/jobset", f"v{components.JOBSET.chart.version}") / "charts" / "jobset"
    ),
}  # fmt: skip


@pytest.mark.parametrize("component", CHARTS)
def test_the_values_are_those_of_the_chart(component: str, tmp_path: Path) -> None:
    """Helm ignores a value that its chart does not have."""
    network = "network: {cidr: 10.0.0.0/16"
    fleet = fleet_file(
        tmp_path,
        (network, f"{network}, nat: none, interfaceEndpoints: true"),
        (PLATFORM, "  platform: {jobset: true}\n"),
    ).fleet
    values = next(s.values for s in plan(fleet, fleet.cluster("east")).releases if s.name == component)
    chart = YAML(typ="safe").load((CHARTS[component]() / "values.yaml").read_text())
    assert list(_unknown(values, chart)) == []


def _unknown(values: Mapping[str, Any], chart: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The values that a chart does not have. An empty mapping in the chart takes any keys."""
    for key, value in values.items():
        if key not in chart:
            yield f"{path}{key}"
        elif isinstance(value, Mapping) and isinstance(chart[key], Mapping) and chart[key] and key not in _FREE:
            yield from _unknown(value, chart[key], f"{path}{key}.")


_FREE = ("nodeSelector", "affinity")
"""Values that replace those of the chart."""


def test_the_numbers_of_accelerators_are_those_of_ec2() -> None:
    """Karpenter's tests have responses of EC2 for some instance types."""
    source = (karpenter() / "pkg" / "fake" / "zz_generated.describe_instance_types.go").read_text()
    compared = 0
    for entry in source.split("InstanceType:  ")[1:]:
        name = re.findall(r'"([a-z0-9.-]+)"', entry)[0]
        found = re.search(r"(?:GpuInfo|NeuronInfo): .*?Count: +aws\.Int32\((\d+)\)", entry, re.S)
        family = regions.family_of("aws", name)
        if found and family in sizes.SIZES["aws"]:
            assert sizes.accelerators_of("aws", family, name) == int(found[1]), name
            compared += 1
    assert compared >= 4


def shape(service: str, name: str) -> set[str]:
    """The values of an enumeration in AWS's own description of an API, which botocore has."""
    model = Loader().load_service_model(service, "service-2")
    return set(model["shapes"][name]["enum"])


def test_instance_types_and_regions_are_those_of_aws() -> None:
    named = {name for family in sizes.SIZES["aws"] for name in sizes.types_of("aws", family)}
    named |= {name for name in prices.NODE_HOUR if "." in name} | {SYSTEM_INSTANCE[Cloud.AWS]}
    assert named - shape("ec2", "InstanceType") == set()
    assert set(regions.ZONES["aws"]) - set(Session().get_available_regions("eks")) == set()


EKS_ENUMERATIONS = {
    "AMITypes": ("aws_eks_node_group", "ami_type"),
    "CapacityTypes": ("aws_eks_node_group", "capacity_type"),
    "TaintEffect": ("aws_eks_node_group", "effect"),
    "LogType": ("aws_eks_cluster", "enabled_cluster_log_types"),
    "AuthenticationMode": ("aws_eks_cluster", "authentication_mode"),
    "SupportType": ("aws_eks_cluster", "support_type"),
    "IpFamily": ("aws_eks_cluster", "ip_family"),
    "ResolveConflicts": ("aws_eks_addon", "resolve_conflicts_on_update"),
    "AccessScopeType": ("aws_eks_access_policy_association", "type"),
}
"""Enumerations of the API of EKS, and the arguments of the stack that have their values."""


@pytest.mark.parametrize("enumeration", EKS_ENUMERATIONS)
def test_values_of_the_stack_are_those_of_the_api(enumeration: str, optional_stacks: dict[str, Path]) -> None:
    kind, argument = EKS_ENUMERATIONS[enumeration]
    stack = json.loads((optional_stacks["east"] / "cdk.tf.json").read_text())
    found = set(values_of(list(stack["resource"][kind].values()), argument))
    assert found
    assert found - shape("eks", enumeration) == set()


def values_of(node: Any, argument: str) -> Iterator[str]:
    """All values of an argument in a part of a stack."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == argument:
                yield from [value] if isinstance(value, str) else value
            else:
                yield from values_of(value, argument)
    elif isinstance(node, list):
        for entry in node:
            yield from values_of(entry, argument)
