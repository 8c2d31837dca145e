"""The rendered objects of an attempt: three clouds × three capacity types × RayJob and JobSet."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest

from spotladder.workloads import names
from spotladder.workloads.kinds import workload_of
from tests import golden
from tests.workloads.builders import job, jobset_template, ray_template, tier

CLOUDS: dict[str, dict[str, dict[str, Any]]] = {
    "aws": {
        "spot": {"zones": ["us-east-1a", "us-east-1b"]},
        "on-demand": {},
        "reserved": {"instanceTypes": ["p5.48xlarge"]},
    },
    "gcp": {
        "spot": {},
        "on-demand": {"extraSelectors": {"cloud.google.com/gke-nodepool": "od"}},
        "reserved": {"extraSelectors": {"cloud.google.com/reservation-name": "h100"}},
    },
    "azure": {
        "spot": {"extraTolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]},
        "on-demand": {},
        "reserved": {"extraSelectors": {"agentpool": "reserved"}, "applyTo": "WorkersAndHead"},
    },
}
TEMPLATES = {"rayjob": ray_template, "jobset": jobset_template}
CASES = [(cloud, kind, template) for cloud in CLOUDS for kind in CLOUDS[cloud] for template in TEMPLATES]


def as_yaml(documents: list[dict[str, Any]]) -> str:
    from ruamel.yaml import YAML

    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.representer.ignore_aliases = lambda _data: True
    text = StringIO()
    writer.dump_all(documents, text)
    return text.getvalue()


@pytest.mark.parametrize(("cloud", "kind", "template"), CASES, ids=["-".join(case) for case in CASES])
def test_a_rendered_attempt_equals_its_golden_file(cloud: str, kind: str, template: str) -> None:
    of = job(TEMPLATES[template]())
    resolved = tier(of, provider=cloud, capacityType=kind, **CLOUDS[cloud][kind])
    objects = workload_of(of).render(of, names.Origin("1b4e28ba"), resolved, 1, {})
    golden.check(f"attempts/{cloud}-{kind}-{template}.yaml", as_yaml(objects))


@pytest.mark.parametrize("template", TEMPLATES)
def test_attempt_with_a_cache(template: str) -> None:
    checkpoints = {"uri": "s3://bucket/prefix", "interval": "50steps", "cache": {"sizeLimit": "20Gi"}}
    of = job(TEMPLATES[template](), checkpoints=checkpoints)
    resolved = tier(of, provider="aws", capacityType="spot", **CLOUDS["aws"]["spot"])
    objects = workload_of(of).render(of, names.Origin("1b4e28ba"), resolved, 1, {})
    golden.check(f"attempts/cache-{template}.yaml", as_yaml(objects))
