"""The rendered ComputeClasses and GCENodeClasses have only documented fields, with values of the documented types.

The CRDs themselves are part of GKE, and of a chart that is not available to the tests. The schemas below have their
types, limits and rules for the fields that are rendered. On 2026-11-29 all objects of these tests were valid for the
CRD of GKE as a public catalogue has it (datreeio/CRDs-catalog, cloud.google.com/computeclass_v1.json of 2026-08-02) and
for that of karpenter-provider-gcp 0.5.0 (charts/karpenter-crd). An API server prunes unknown fields without an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from spotladder_infra.rendering.values import values
from tests.topology.builders import fleet_file

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
FLAG: Schema = {"type": "boolean"}


def labels(most: int) -> Schema:
    return {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": most}


def record(required: tuple[str, ...] = (), **fields: Schema) -> Schema:
    """An object with these fields and no other."""
    return {"type": "object", "properties": fields, "required": list(required), "additionalProperties": False}


def each(entry: Schema, **limits: int) -> Schema:
    """A list."""
    return {"type": "array", "items": entry, **limits}


def one_of(*values: str) -> Schema:
    return {"enum": list(values)}


SECONDARY_DISK = record(
    ("diskImageName",), diskImageName=TEXT, project=TEXT, mode=one_of("CONTAINER_IMAGE_CACHE", "MODE_UNSPECIFIED")
)
RULE: Schema = {
    **record(
        machineType={**TEXT, "maxLength": 100},
        machineFamily={**TEXT, "maxLength": 10},
        spot=FLAG,
        flexStart=record(("enabled",), enabled=FLAG),
        gpu=record(
            ("type", "count"),
            type=TEXT,
            count={"type": "integer", "minimum": 1},
            driverVersion=one_of("default", "latest"),
        ),
        tpu=record(("type", "count", "topology"), type=TEXT, count={"type": "integer", "minimum": 1}, topology=TEXT),
        placement=record(("policyName",), policyName=TEXT),
        location=record(("zones",), zones=each(TEXT, minItems=1)),
        reservations=record(
            ("affinity", "specific"),
            affinity={"const": "Specific"},  # the only one that may name reservations; it must
            specific=each(record(("name",), name=TEXT, project=TEXT), minItems=1),
        ),
        storage=record(
            bootDiskSize={"type": "integer", "minimum": 10},
            bootDiskType=one_of("pd-balanced", "pd-standard", "pd-ssd", "hyperdisk-balanced"),
            secondaryBootDisks=each(SECONDARY_DISK),
        ),
    ),
    "oneOf": [{"required": ["machineType"]}, {"required": ["machineFamily"]}, {"required": ["tpu"]}],
    "not": {"required": ["flexStart", "spot"]},  # a validation rule of the CRD
}
COMPUTE_CLASS = record(
    ("priorities",),
    priorities=each(RULE, minItems=1, maxItems=1000),
    nodePoolAutoCreation=record(("enabled",), enabled=FLAG),
    activeMigration=record(("optimizeRulePriority",), optimizeRulePriority=FLAG),
    whenUnsatisfiable=one_of("DoNotScaleUp", "ScaleUpAnyway"),
    autoscalingPolicy=record(consolidationDelayMinutes={"type": "integer", "minimum": 1, "maximum": 1440}),
    nodePoolConfig=record(
        serviceAccount={"type": "string", "pattern": r"^[^@]+@[^@]+\.iam\.gserviceaccount\.com$"},
        imageStreaming=record(("enabled",), enabled=FLAG),
        nodeLabels=labels(100),
        taints=each(
            record(
                ("key", "effect"),
                key={**TEXT, "maxLength": 320},
                value={"type": "string", "pattern": "^([a-z0-9][-A-Za-z0-9_.]{1,61})?[A-Za-z0-9]$"},
                effect=one_of("NoSchedule", "PreferNoSchedule", "NoExecute"),
            ),
            maxItems=100,
        ),
    ),
)
GCE_NODE_CLASS = record(
    ("imageSelectorTerms",),
    imageSelectorTerms=each(
        record(("alias",), alias={"type": "string", "pattern": "^(ContainerOptimizedOS|Ubuntu)@.+$", "maxLength": 60}),
        minItems=1,
        maxItems=30,
    ),
    serviceAccount={"type": "string", "pattern": r"^[^@]+@[^@]+\.iam\.gserviceaccount\.com$"},
    shieldedInstanceConfig=record(enableSecureBoot=FLAG, enableIntegrityMonitoring=FLAG, enableVtpm=FLAG),
    networkConfig=record(enablePrivateNodes=FLAG, subnetwork=TEXT),
    disks=each(
        record(
            boot=FLAG,
            category=one_of(
                "pd-balanced",
                "pd-ssd",
                "pd-standard",
                "pd-extreme",
                "hyperdisk-balanced",
                "hyperdisk-balanced-high-availability",
                "hyperdisk-extreme",
                "hyperdisk-ml",
                "hyperdisk-throughput",
            ),
            sizeGiB={"type": "integer", "minimum": 10},
            secondaryBootImage=TEXT,
            secondaryBootMode=one_of("CONTAINER_IMAGE_CACHE", "MODE_UNSPECIFIED"),
        ),
        maxItems=10,
    ),
    labels=labels(20),
)

OPTIONS = (
    "{name: l4-on-demand, placementGroup: compact, taints: [{key: example.com/own, value: x, effect: NoSchedule}], "
    "diskGiB: 500, secondaryBootDisk: projects/acme-ml/global/images/train-1, "
)


@pytest.mark.parametrize(
    "change",
    [
        ("{name: l4-on-demand, ", "{name: l4-on-demand, "),
        ("{name: l4-on-demand, ", "{name: l4-on-demand, capacityType: reserved, reservation: {ids: [block-1]}, "),
        ("{name: l4-on-demand, ", "{name: l4-on-demand, flexStart: true, "),
        (
            "instanceTypes: [g2-standard-8], accelerator: {type: nvidia-l4}}",
            "instanceTypes: [ct5lp-hightpu-4t], tpuTopology: 2x4}",
        ),
        ("{name: l4-on-demand, ", OPTIONS + "zones: [us-central1-a], "),
    ],
    ids=["plain", "reserved", "flex-start", "tpu", "every option"],
)
def test_compute_classes(change: tuple[str, str], tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path, change).fleet
    found = values(fleet, fleet.cluster("west"))["computeClasses"]
    assert len(found) == 3
    queued = [entry["metadata"]["name"] for entry in found if "flexStart" in entry["spec"]["priorities"][0]]
    assert queued == (["l4-on-demand"] if "flexStart" in change[1] else [])
    for entry in found:
        assert (entry["apiVersion"], entry["kind"]) == ("cloud.google.com/v1", "ComputeClass")
        jsonschema.validate(entry["spec"], COMPUTE_CLASS)


def test_a_domain_scoped_project_is_in_the_names_as_google_writes_it(tmp_path: Path) -> None:
    project = ("    project: acme-ml\n", "    project: acme.com:ml-training\n")
    image = "secondaryBootDisk: projects/acme.com:ml-training/global/images/train-1, "
    fleet = fleet_file(tmp_path, project, project, ("{name: l4-on-demand, ", f"{{name: l4-on-demand, {image}")).fleet
    (*_, l4), (node_class, *_) = (
        values(fleet, fleet.cluster("west"))["computeClasses"],
        values(fleet, fleet.cluster("alpha"))["nodeClasses"],
    )
    domain = "ml-training.acme.com.iam.gserviceaccount.com"
    assert l4["spec"]["nodePoolConfig"]["serviceAccount"] == f"west-node@{domain}"
    assert node_class["spec"]["serviceAccount"] == f"alpha-node@{domain}"


@pytest.mark.parametrize("options", ["", "diskGiB: 500, secondaryBootDisk: projects/acme-ml/global/images/train-1, "])
def test_gce_node_classes(options: str, tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path, ("{name: n2-spot, ", f"{{name: n2-spot, {options}")).fleet
    found = values(fleet, fleet.cluster("alpha"))["nodeClasses"]
    assert len(found) == 2
    for entry in found:
        assert (entry["apiVersion"], entry["kind"]) == ("karpenter.k8s.gcp/v1alpha1", "GCENodeClass")
        jsonschema.validate(entry["spec"], GCE_NODE_CLASS)
