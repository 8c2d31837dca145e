"""Files that the tests of the commands submit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from spotladder.resources import TIEREDJOBS
from tests.kube.world import KubeWorld, ray_spec


def job_file(folder: Path, kube: KubeWorld) -> Path:
    job = {
        "apiVersion": TIEREDJOBS.api_version,
        "kind": "TieredJob",
        "metadata": {"name": "digits"},
        "spec": {
            "tiers": [{"name": "spot-a", "capacityTier": f"{kube.namespace}-spot-a", "maxFailures": 1}],
            "checkpoints": {"uri": "s3://bucket/prefix", "credentials": {"secretName": "bucket"}},
            "workload": {"ray": {"template": {"spec": ray_spec()}}},
        },
    }
    return written(folder / "digits.yaml", job)


def written(path: Path, *documents: Any) -> Path:
    with path.open("w", encoding="utf-8") as stream:
        YAML(typ="safe", pure=True).dump_all(list(documents), stream)
    return path
