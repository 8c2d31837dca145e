"""The rendered objects of an attempt of a RayJob and of a JobSet: a complete file of a plain one, how a full one
differs from it, and what each cloud and type of capacity changes in it."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest

from spotladder.api.tieredjob import TieredJob
from spotladder.workloads import names
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.placement import Placement
from tests import golden
from tests.workloads.builders import job, jobset_template, ray_template, tier

TEMPLATES = {"rayjob": ray_template, "jobset": jobset_template}
PLAIN = {"provider": "aws", "capacityType": "spot"}
EVERYTHING = {
    "provider": "azure",
    "capacityType": "spot",
    "zones": ["eastus-1", "eastus-2"],
    "instanceTypes": ["Standard_NC24ads_A100_v4"],
    "extraSelectors": {"agentpool": "a100"},
    "extraTolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    "applyTo": "WorkersAndHead",
}

Object = dict[str, Any]


def full_job(template: Object) -> TieredJob:
    checkpoints = {
        "uri": "s3://bucket/prefix", "interval": "50steps", "keep": 5, "cache": "20Gi",
        "credentials": {"secretName": "bucket"},
    }  # fmt: skip
    overrides = {
        "image": "rayproject/ray:2.58.1-gpu",
        "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "8Gi"}},
        "env": {"A": "b"},
    }
    metadata = {"labels": {"team": "vision"}, "annotations": {"note": "mine"}}
    return job({**template, "metadata": metadata}, checkpoints=checkpoints, grace="1m", podSecurity="restricted",
               tier={"queue": "team", "overrides": overrides})  # fmt: skip


def attempt(of: TieredJob, capacity: Object) -> list[Object]:
    return workload_of(of).render(of, names.Origin("1b4e28ba"), tier(of, **capacity), 1, {})


def plain_attempt(template: str) -> list[Object]:
    """The objects of an attempt of a job that sets only what it must."""
    return attempt(job(TEMPLATES[template]()), PLAIN)


def full_attempt(template: str) -> list[Object]:
    """The objects of an attempt whose job and tier set every option."""
    return attempt(full_job(TEMPLATES[template]()), EVERYTHING)


def as_yaml(documents: list[Object]) -> str:
    from ruamel.yaml import YAML

    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.representer.ignore_aliases = lambda _data: True
    text = StringIO()
    writer.dump_all(documents, text)
    return text.getvalue()


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_rendered_attempt_equals_its_golden_file(template: str) -> None:
    plain, full = as_yaml(plain_attempt(template)), as_yaml(full_attempt(template))
    golden.check(f"golden/attempts/plain-{template}.yaml", plain)
    golden.check(f"golden/attempts/everything-{template}.diff", golden.difference(plain, full))


# --- what a cloud and a type of capacity change ----------------------------------------------------------------------

GRACE = {"aws": (115, "110"), "gcp": (25, "20"), "azure": (25, "20")}
"""Seconds before the kubelet kills a pod, and those in which Ray drains its node: less than the cloud's notice."""


def pods(thing: Any) -> Iterator[tuple[str, Object]]:
    """Each pod template in the objects, with its role."""
    if isinstance(thing, dict):
        if "containers" in thing.get("spec", {}):
            yield thing["metadata"]["labels"][names.ROLE], thing["spec"]
        for inner in thing.values():
            yield from pods(inner)
    elif isinstance(thing, list):
        for inner in thing:
            yield from pods(inner)


def taken(spec: Object) -> tuple[Object, list[Object], list[Object], int]:
    """Remove what depends on the tier from a pod: labels, expressions, tolerations and the grace period of its node."""
    affinity = spec.pop("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    (term,) = affinity["nodeSelectorTerms"] if affinity else [{"matchExpressions": []}]
    grace = spec.pop("terminationGracePeriodSeconds")
    return spec.pop("nodeSelector", {}), term["matchExpressions"], spec.pop("tolerations", []), grace


def drains(spec: Object) -> list[str]:
    """Remove the time for Ray's drain from the containers of a pod."""
    found = []
    for container in spec["containers"]:
        drain = [entry for entry in container["env"] if entry["name"] == "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"]
        container["env"] = [entry for entry in container["env"] if entry not in drain]
        found += [entry["value"] for entry in drain]
    return found


def expressions(where: Placement) -> list[Object]:
    terms = [("In", term) for term in where.one_of] + [("NotIn", term) for term in where.none_of]
    return [{"key": key, "operator": operator, "values": list(values)} for operator, (key, values) in terms]


@pytest.mark.parametrize("kind", ["spot", "on-demand", "reserved"])
@pytest.mark.parametrize("cloud", GRACE)
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_tier_changes_only_nodes_and_times_of_pods(template: str, cloud: str, kind: str) -> None:
    """tests/workloads/test_placement.py has the labels and tolerations of each cloud."""
    of = job(TEMPLATES[template]())
    capacity = {"provider": cloud, "capacityType": kind, "zones": ["a", "b"]}
    where, plain, found = tier(of, **capacity), attempt(of, PLAIN), attempt(of, capacity)
    grace, drain = GRACE[cloud]
    for role, spec in pods(found):
        placed = where.workers if role == "worker" else where.head
        assert taken(spec) == (dict(placed.labels), expressions(placed), list(placed.tolerations), grace), role
        assert set(drains(spec)) <= {drain}
    for _role, spec in pods(plain):
        taken(spec)
        drains(spec)
    assert found == plain
