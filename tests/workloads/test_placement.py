"""Node selection of pods: the defaults of providers, users' own selectors, contradictions between the two."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.errors import InvalidSpec
from spotladder.workloads import names
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.placement import Placement, place
from spotladder.workloads.providers import head_placement, placement
from spotladder.workloads.template import template_of
from tests.workloads.builders import capacity, job, jobset_template, ray_template, tier, worker_spec

KARPENTER = "karpenter.sh/capacity-type"
GKE = "cloud.google.com/gke-spot"
AKS = "kubernetes.azure.com/scalesetpriority"
EKS = "eks.amazonaws.com/capacityType"
POOL = {"karpenter.sh/nodepool": "a"}
GROUP = {"eks.amazonaws.com/nodegroup": "a"}
BLOCK = {EKS: "CAPACITY_BLOCK", **GROUP}


@pytest.mark.parametrize(
    ("spec", "labels", "none_of"),
    [
        ({"provider": "aws", "capacityType": "spot"}, {KARPENTER: "spot"}, ()),
        ({"provider": "aws", "capacityType": "on-demand"}, {KARPENTER: "on-demand"}, ()),
        ({"provider": "aws", "capacityType": "reserved"}, {KARPENTER: "reserved"}, ()),
        ({"provider": "aws", "capacityType": "spot", "extraSelectors": GROUP}, {EKS: "SPOT", **GROUP}, ()),
        ({"provider": "aws", "capacityType": "on-demand", "extraSelectors": GROUP}, {EKS: "ON_DEMAND", **GROUP}, ()),
        ({"provider": "aws", "capacityType": "reserved", "extraSelectors": GROUP}, BLOCK, ()),
        ({"provider": "gcp", "capacityType": "spot"}, {GKE: "true", "cloud.google.com/gke-provisioning": "spot"}, ()),
        ({"provider": "gcp", "capacityType": "on-demand"}, {}, ((GKE, ("true",)),)),
        ({"provider": "gcp", "capacityType": "reserved"}, {}, ((GKE, ("true",)),)),
        ({"provider": "gcp", "capacityType": "spot", "extraSelectors": POOL}, {KARPENTER: "spot", **POOL}, ()),
        ({"provider": "azure", "capacityType": "spot"}, {AKS: "spot"}, ()),
        ({"provider": "azure", "capacityType": "on-demand"}, {}, ((AKS, ("spot",)),)),
        ({"provider": "azure", "capacityType": "spot", "extraSelectors": POOL}, {KARPENTER: "spot", **POOL}, ()),
        ({"provider": "generic", "capacityType": "spot", "extraSelectors": {"pool": "a"}}, {"pool": "a"}, ()),
        ({"provider": "generic", "capacityType": "on-demand"}, {}, ()),
        ({"provider": "generic", "capacityType": "spot", "extraSelectors": POOL}, {KARPENTER: "spot", **POOL}, ()),
    ],
)  # fmt: skip
def test_each_provider_has_its_labels(spec: dict[str, Any], labels: dict[str, str], none_of: tuple[Any, ...]) -> None:
    found = placement(capacity(**spec).spec)
    assert dict(found.labels) == labels
    assert found.none_of == none_of


def test_zones_and_instance_types_are_alternatives() -> None:
    found = placement(capacity(zones=["a", "b"], instanceTypes=["g5.xlarge"]).spec)
    assert found.one_of == (
        ("topology.kubernetes.io/zone", ("a", "b")),
        ("node.kubernetes.io/instance-type", ("g5.xlarge",)),
    )


@pytest.mark.parametrize(
    ("provider", "kind", "keys"),
    [
        ("aws", "spot", []),
        ("gcp", "spot", [GKE]),
        ("gcp", "on-demand", []),
        ("azure", "spot", [AKS]),
        ("azure", "reserved", []),
    ],
)
def test_each_provider_has_its_tolerations(provider: str, kind: str, keys: list[str]) -> None:
    found = placement(capacity(provider=provider, capacityType=kind).spec)
    assert [entry["key"] for entry in found.tolerations] == keys


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"provider": "aws"}, Placement(none_of=((KARPENTER, ("spot",)),))),
        ({"provider": "gcp"}, Placement(none_of=((GKE, ("true",)),))),
        ({"provider": "generic"}, Placement()),
        (
            {"provider": "aws", "headSelectors": {"pool": "head"}},
            Placement(labels=(("pool", "head"),), none_of=((KARPENTER, ("spot",)),)),
        ),
        ({"provider": "aws", "headSelectors": {KARPENTER: "spot"}}, Placement(labels=((KARPENTER, "spot"),))),
    ],
    ids=["aws", "gcp", "generic", "own node pool", "headSelectors ask for spot"],
)
def test_the_head_avoids_spot(spec: dict[str, Any], expected: Placement) -> None:
    assert head_placement(capacity(**spec).spec) == expected


# --- the user's own selectors ----------------------------------------------------------------------------------------

TIER = Placement(
    labels=((KARPENTER, "spot"),), one_of=(("zone", ("a", "b")),), none_of=(("arch", ("arm64",)),),
    tolerations=({"key": "spot", "operator": "Exists"},),
)  # fmt: skip


def required(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    chosen = {"nodeSelectorTerms": [{"matchExpressions": expressions} for expressions in terms]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": chosen}}}


def term(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


IN_AFFINITY = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


@pytest.mark.parametrize(
    ("own", "path"),
    [
        ({"nodeSelector": {KARPENTER: "on-demand"}}, f'spec.nodeSelector["{KARPENTER}"]'),
        ({"nodeSelector": {"zone": "c"}}, "spec.nodeSelector.zone"),
        ({"nodeSelector": {"arch": "arm64"}}, "spec.nodeSelector.arch"),
        (required([term(KARPENTER, "In", "on-demand")]), f"{IN_AFFINITY}[0].matchExpressions[0]"),
        (required([term("disk", "Exists"), term(KARPENTER, "NotIn", "spot")]), f"{IN_AFFINITY}[0].matchExpressions[1]"),
        (required([term(KARPENTER, "DoesNotExist")]), f"{IN_AFFINITY}[0].matchExpressions[0]"),
        (required([term("zone", "In", "c", "d")]), f"{IN_AFFINITY}[0].matchExpressions[0]"),
        (required([term("zone", "NotIn", "a", "b")]), f"{IN_AFFINITY}[0].matchExpressions[0]"),
        (required([term("arch", "In", "arm64")]), f"{IN_AFFINITY}[0].matchExpressions[0]"),
        (required([term("zone", "In", "c")], [term("zone", "In", "d")]), f"{IN_AFFINITY}[0].matchExpressions[0]"),
    ],
)  # fmt: skip
def test_a_contradiction_names_the_field(own: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidSpec) as error:
        place(own, TIER, "spot-a", ("spec",))
    assert error.value.path == path
    assert "tier spot-a" in error.value.message


@pytest.mark.parametrize(
    "own",
    [
        {"nodeSelector": {KARPENTER: "spot", "zone": "a", "arch": "amd64"}},
        required([term(KARPENTER, "In", "spot", "on-demand")]),
        required([term(KARPENTER, "Exists")]),
        required([term("zone", "NotIn", "a")]),
        required([term("arch", "NotIn", "arm64")]),
        required([term("arch", "DoesNotExist")]),
        required([term("zone", "In", "c")], [term("zone", "In", "a")]),
    ],
)  # fmt: skip
def test_a_narrower_selector_is_accepted(own: dict[str, Any]) -> None:
    place(own, TIER, "spot-a", ("spec",))


@pytest.mark.parametrize(
    ("template", "path"),
    [
        (ray_template(), "spec.workload.ray.template.spec.rayClusterSpec.workerGroupSpecs[0].template.spec"),
        (jobset_template(), "spec.workload.jobSet.template.spec.replicatedJobs[0].template.spec.template.spec"),
    ],
    ids=["rayjob", "jobset"],
)
def test_the_error_has_the_fields_path_in_the_file(template: dict[str, Any], path: str) -> None:
    worker_spec(template)["nodeSelector"] = {KARPENTER: "on-demand"}
    of = job(template)
    with pytest.raises(InvalidSpec) as error:
        workload_of(of).render(of, names.Origin("u"), tier(of, provider="aws", capacityType="spot"), 1, {})
    assert error.value.path == f'{path}.nodeSelector["{KARPENTER}"]'


def test_a_head_that_requires_spot_contradicts_the_tier() -> None:
    of = job()
    head = template_of(of, "ray").spec["rayClusterSpec"]["headGroupSpec"]
    head["template"]["spec"]["nodeSelector"] = {KARPENTER: "spot"}
    with pytest.raises(InvalidSpec) as error:
        workload_of(of).render(of, names.Origin("u"), tier(of, provider="aws", capacityType="spot"), 1, {})
    assert "headGroupSpec.template.spec.nodeSelector" in error.value.path
    assert "not spot" in error.value.message
