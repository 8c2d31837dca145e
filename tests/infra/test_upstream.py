"""What other projects expect of the policies, values and tables here, compared with their own files.

The facts come from the Go modules of Karpenter's provider for AWS, NVIDIA's device plugin and JobSet at the pinned
versions, so a new pin is compared again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from spotladder import versions
from spotladder_infra import iam
from spotladder_infra.facts import regions, sizes
from spotladder_infra.rollout import components
from spotladder_infra.rollout.plan import plan
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
    values = next(s.values for s in plan(fleet, fleet.cluster("east")).steps if s.component.name == component)
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
