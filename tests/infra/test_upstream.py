"""What other projects expect of the policies, values and tables here, compared with their own files.

The facts come from the Go modules of Karpenter's provider for AWS, NVIDIA's device plugin, KubeRay, JobSet and Kueue at
the pinned versions, so a new pin is compared again, from AWS's descriptions of its APIs in botocore, and from the dated
lists of `references`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from boto3.session import Session
from botocore.loaders import Loader
from ruamel.yaml import YAML

from spotladder import versions
from spotladder.resources import APIResource
from spotladder.workloads import kueue, records, tenancy
from spotladder.workloads.jobset.records import JOBSETS
from spotladder.workloads.rayjob.records import RAYCLUSTERS, RAYJOBS, SETTING_UP, SUBMITTER
from spotladder.workloads.rayjob.state import REASONS
from spotladder_infra import iam
from spotladder_infra.facts import instances, prices, regions
from spotladder_infra.rollout import components
from spotladder_infra.rollout.components import Component
from spotladder_infra.rollout.plan import plan
from spotladder_infra.topology.cluster import Cloud
from spotladder_infra.topology.defaults import SYSTEM_INSTANCE
from tests.absent import absent
from tests.charts.helm import CHARTS as HELM_CHARTS
from tests.infra.gomodule import module
from tests.infra.references import (
    CHART_VALUES,
    KARPENTER_EVENTS,
    KARPENTER_POLICY_OF,
    KARPENTER_ROLE_OF_GCP,
    KARPENTER_STATEMENTS,
)
from tests.kube.apiserver import ROOT, tools
from tests.topology.builders import PLATFORM, fleet_file

PLACE = iam.PolicyScope("aws", "123456789012", "us-east-1")

NOT_CALLED = {
    "iam:CreateInstanceProfile": "the node classes name an instance profile that the stack creates",
    "iam:DeleteInstanceProfile": "the same",
    "iam:AddRoleToInstanceProfile": "the same",
    "iam:RemoveRoleFromInstanceProfile": "the same",
    "iam:TagInstanceProfile": "the same",
    "iam:GetRole": "the same",
    "ec2:RebootInstances": "settings.awsFeatureGates.rebootForRepair is off by default",
    "sqs:SendMessage": "Karpenter's tests send messages",
    "arc-zonal-shift:GetManagedResource": "settings.enableZonalShift is off by default",
    "timestream:WriteRecords": "Karpenter's tests record times",
}
"""Operations in Karpenter's sources that its policy here does not allow, and why it does not call them."""

KINDS = {"arn:role": "role", "arn:queue": "queue"}

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


def test_karpenters_policy_is_the_published_one() -> None:
    """Each action on each kind of resource has the conditions of the template of CloudFormation."""
    assert versions.KARPENTER.startswith(f"{KARPENTER_POLICY_OF}."), "compare the statements with the new template"
    policy = iam.karpenter(PLACE, "east", "arn:role", "east-node", "arn:queue")
    ours = {
        (action, _kind(resource), frozenset(_conditions(statement.get("Condition", {}))))
        for statement in policy["Statement"]
        for action in statement["Action"]
        for resource in statement["Resource"]
    }
    published = {
        (action, resource, frozenset(conditions))
        for actions, resources, conditions in KARPENTER_STATEMENTS
        for action in actions.split()
        for resource in resources.split()
    }
    assert ours == published


def test_karpenters_role_on_google_cloud_is_the_published_one(configuration: dict[str, Any]) -> None:
    assert CHART_VALUES["karpenter"].version == versions.KARPENTER_GCP, "compare the permissions at the new version"
    role = configuration["alpha"]["resource"]["google_project_iam_custom_role"]["karpenter-role"]
    of_private_nodes = set(KARPENTER_ROLE_OF_GCP.split()) - {"compute.subnetworks.useExternalIp"}
    assert set(role["permissions"]) == of_private_nodes


def _kind(resource: str) -> str:
    """`instance` of `arn:aws:ec2:us-east-1:*:instance/*`."""
    return KINDS.get(resource) or resource.rpartition(":")[2].rpartition("/")[0] or resource


def _conditions(condition: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for operator, keys in condition.items():
        for key, value in keys.items():
            yield f"{operator} {key}={value if isinstance(value, str) else '|'.join(value)}"


def test_the_queue_gets_the_published_events(configuration: dict[str, Any]) -> None:
    rules = configuration["east"]["resource"]["aws_cloudwatch_event_rule"].values()
    patterns = [json.loads(rule["event_pattern"]) for rule in rules]
    assert {(*pattern["source"], *pattern["detail-type"]) for pattern in patterns} == KARPENTER_EVENTS


KUEUE = f"v{components.KUEUE.chart.version}"
CRDS = {
    kueue.WORKLOADS.group: ("sigs.k8s.io/kueue", KUEUE, "config/components/crd/bases"),
    RAYJOBS.group: ("github.com/ray-project/kuberay/ray-operator", f"v{versions.KUBERAY}", "config/crd/bases"),
    JOBSETS.group: ("sigs.k8s.io/jobset", f"v{components.JOBSET.chart.version}", "config/components/crd/bases"),
}
"""The Go module, its version and its folder with the CRDs of an API group."""


def crd_file(resource: APIResource) -> Path:
    name, version, folder = CRDS[resource.group]
    return module(name, version) / folder / f"{resource.group}_{resource.plural}.yaml"


@pytest.mark.parametrize(
    ("resource", "fields"),
    [
        (
            RAYJOBS,
            """
            spec.suspend spec.submissionMode spec.rayClusterSpec.workerGroupSpecs.replicas status.jobDeploymentStatus
            status.jobStatus status.reason status.message status.rayClusterName status.rayJobInfo.startTime
            """,
        ),
        (
            RAYCLUSTERS,
            """
            spec.enableInTreeAutoscaling spec.rayVersion spec.authOptions.mode spec.authOptions.secretName
            spec.workerGroupSpecs.groupName spec.workerGroupSpecs.minReplicas spec.workerGroupSpecs.maxReplicas
            spec.workerGroupSpecs.numOfHosts spec.workerGroupSpecs.scaleStrategy.workersToDelete status.state
            status.conditions status.observedGeneration
            """,
        ),
        (
            JOBSETS,
            """
            spec.suspend spec.coordinator.replicatedJob spec.network.subdomain spec.replicatedJobs.name
            spec.replicatedJobs.replicas spec.replicatedJobs.template spec.successPolicy.operator
            spec.successPolicy.targetReplicatedJobs status.conditions status.restarts
            """,
        ),
        (
            kueue.WORKLOADS,
            """
            spec.queueName status.conditions status.admissionChecks.name status.admissionChecks.state
            status.admissionChecks.message status.schedulingStats.evictions.reason
            """,
        ),
        (kueue.LOCAL_QUEUES, "spec.clusterQueue"),
    ],
    ids=lambda value: value.kind if isinstance(value, APIResource) else "",
)
def test_the_fields_that_are_read_exist(resource: APIResource, fields: str) -> None:
    crd = YAML(typ="safe").load(crd_file(resource).read_text())["spec"]
    assert crd["names"]["kind"] == resource.kind
    (version,) = (entry for entry in crd["versions"] if entry["name"] == resource.version)
    assert version["served"]
    for field in fields.split():
        schema = version["schema"]["openAPIV3Schema"]
        for name in field.split("."):
            schema = schema.get("items", schema)["properties"][name]


@pytest.mark.parametrize("resource", [RAYJOBS, RAYCLUSTERS, JOBSETS], ids=lambda resource: resource.kind)
def test_rendered_attempts_are_validated_with_the_crd_of_the_pinned_version(resource: APIResource) -> None:
    """An API server with the CRDs of the tools validates them in tests/kube/test_schema.py."""
    folders = {RAYJOBS.group: "kuberay", JOBSETS.group: "jobset"}
    pinned = crd_file(resource)
    validating = tools() / "crds" / folders[resource.group] / pinned.name
    if not validating.exists():
        absent(f"not found: {validating} (SPOTLADDER_TOOLS)", "kube")
    assert validating.read_bytes() == pinned.read_bytes()


def test_words_of_kuberay_are_its_constants() -> None:
    """States, reasons, and the names of labels and of a container."""
    source = module(*CRDS[RAYJOBS.group][:2])
    files = [*(source / "apis" / "ray" / "v1").glob("*_types.go"), source / "controllers/ray/utils/constant.go"]
    constants = {text for file in files for text in re.findall(r'^\t\w+ .*= "([^"]*)"', file.read_text(), re.M)}
    states = {*SETTING_UP, "Running", "Complete", "Failed", "Suspending", "Suspended", "ValidationFailed", "ready"}
    names = {SUBMITTER, records.RAY_GROUP, records.REPLICA_LABELS[0]}
    known = {*states, *names, *REASONS, "RUNNING", "SUCCEEDED", "STOPPED", "ReplicaFailure"}
    assert known - constants == {"JobStatusCheckTimeoutExceeded"}, "which only newer versions have"


def test_labels_and_reasons_of_kueue_are_its_constants() -> None:
    source = module("sigs.k8s.io/kueue", KUEUE)
    files = [*(source / "apis" / "kueue" / "v1beta2").glob("*.go")]
    files += (source / "pkg" / "controller" / "constants").glob("*.go")
    constants = {text for file in files for text in re.findall(r'^\t\w+ .*= "([^"]+)"', file.read_text(), re.M)}
    known = {records.QUEUE, tenancy.PRIORITY_OF_KUEUE, "Inadmissible", *kueue.EVICTIONS}
    assert known - constants == set()


KUBERNETES = "v1.37.2"
"""The newest version of Kubernetes whose API is compared."""

_OBJECT = re.compile(r"^apiVersion: (\S+)\nkind: (\w+)$", re.MULTILINE)
_RESOURCE = re.compile(r'APIResource\(\s*"([^"]*)",\s*"([^"]+)",\s*"[^"]+",\s*"([^"]+)"')


def test_kubernetes_serves_every_kind_that_is_used() -> None:
    """The kinds of the charts' templates and of the controller's requests are in the newest version's own API."""
    assert KUBERNETES.startswith(f"v{list(versions.SUPPORTED)[-1]}.")
    file = module("k8s.io/kubernetes", KUBERNETES) / "api" / "openapi-spec" / "swagger.json"
    served = {
        (kind["group"], kind["version"], kind["kind"])
        for operations in json.loads(file.read_text())["paths"].values()
        for operation in operations.values()
        if isinstance(operation, dict) and (kind := operation.get("x-kubernetes-group-version-kind"))
    }
    used = {
        (*f"/{version}".rsplit("/", 2)[-2:], kind)
        for template in HELM_CHARTS.glob("*/templates/**/*.yaml")
        for version, kind in _OBJECT.findall(template.read_text())
    }
    for source in (ROOT / "controller").rglob("*.py"):
        used.update(_RESOURCE.findall(source.read_text()))
    builtin = {entry for entry in used if "." not in entry[0] or re.search(r"(?<!x-)k8s\.io$", entry[0])}
    assert len(builtin) >= 25
    assert builtin - served == set()


CHARTS: dict[str, Callable[[], Path]] = {
    "karpenter": lambda: karpenter() / "charts" / "karpenter",
    "gpu-device-plugin": lambda: (
        module("github.com/NVIDIA/k8s-device-plugin", f"v{components.GPU_DEVICE_PLUGIN.chart.version}")
        / "deployments" / "helm" / "nvidia-device-plugin"
    ),
    "jobset": lambda: (
        module("sigs.k8s.io/jobset", f"v{components.JOBSET.chart.version}") / "charts" / "jobset"
    ),
    "kueue": lambda: module("sigs.k8s.io/kueue", KUEUE) / "charts" / "kueue",
}  # fmt: skip


def planned(component: str, cluster: str, folder: Path) -> Component:
    """The release of a component in a fleet that uses every component."""
    network = "network: {cidr: 10.0.0.0/16"
    neuron = "    - {name: trn2, capacityType: spot, instanceTypes: [trn2.48xlarge]}\n"
    mirror = "  platform: {jobset: true, kueue: true, mirror: registry.example.com/mirror}\n"
    fleet = fleet_file(
        folder,
        (network, f"{network}, nat: none, interfaceEndpoints: true"),
        ("  - name: west\n", f"{neuron}  - name: west\n"),
        (PLATFORM, mirror),
    ).fleet
    return next(step for step in plan(fleet, fleet.cluster(cluster)).releases if step.name == component)


@pytest.mark.parametrize("component", CHARTS)
def test_the_values_are_those_of_the_chart(component: str, tmp_path: Path) -> None:
    """Helm ignores a value that its chart does not have."""
    chart = YAML(typ="safe").load((CHARTS[component]() / "values.yaml").read_text())
    values = planned(component, "east", tmp_path).values
    assert _unknown(values, set(_leaves(chart))) == []


@pytest.mark.parametrize("component", CHART_VALUES)
def test_the_values_are_listed_for_the_chart(component: str, tmp_path: Path) -> None:
    """The same for the charts that no Go module has."""
    listed = CHART_VALUES[component]
    found = planned(component, "alpha" if component == "karpenter" else "east", tmp_path)
    assert found.chart.version == listed.version, f"compare the names with {listed.source} at the new version"
    assert _unknown(found.values, listed.names) == []
    assert _unknown({**found.values, "typo": 1}, listed.names) == ["typo"]


def _unknown(values: Mapping[str, Any], known: Collection[str]) -> list[str]:
    """The values that a chart does not have. An empty mapping in the chart takes any keys."""
    return [path for path in _leaves(values) if not any(path == name or path.startswith(f"{name}.") for name in known)]


def _leaves(values: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value and key not in _FREE:
            yield from _leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}"


_FREE = ("nodeSelector", "affinity")
"""Values that replace those of the chart."""


def test_the_numbers_of_accelerators_are_those_of_ec2() -> None:
    """Karpenter's tests have responses of EC2 for some instance types."""
    source = (karpenter() / "pkg" / "fake" / "zz_generated.describe_instance_types.go").read_text()
    compared = 0
    for entry in source.split("InstanceType:  ")[1:]:
        name = re.findall(r'"([a-z0-9.-]+)"', entry)[0]
        found = re.search(r"(?:GpuInfo|NeuronInfo): .*?Count: +aws\.Int32\((\d+)\)", entry, re.S)
        if found and instances.types_of("aws", name):
            assert instances.number_of_accelerators("aws", name) == int(found[1]), name
            compared += 1
    assert compared >= 4


def shape(service: str, name: str) -> set[str]:
    """The values of an enumeration in AWS's own description of an API, which botocore has."""
    model = Loader().load_service_model(service, "service-2")
    return set(model["shapes"][name]["enum"])


def test_instance_types_and_regions_are_those_of_aws() -> None:
    named = {name for family in instances.FAMILIES["aws"] for name in instances.types_of("aws", family)}
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
