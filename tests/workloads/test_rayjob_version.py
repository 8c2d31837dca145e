"""The Ray version of an attempt."""

from __future__ import annotations

import pytest

from spotladder.workloads.jobset.workload import JOBSET
from spotladder.workloads.rayjob.workload import RAYJOB


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"rayVersion": "2.57.0"}, "2.57.0"),
        ({"rayVersion": "3.0.0.dev0"}, "3.0.0"),
        ({"rayVersion": "nightly"}, None),
        ({"image": "rayproject/ray:2.58.1-py311-gpu"}, "2.58.1"),
        ({"image": "registry.acme.io:5000/train:2.55.0@sha256:00"}, "2.55.0"),
        ({"image": "registry.acme.io:5000/train:nightly"}, None),
    ],
)
def test_the_ray_version_of_a_job_is_its_rayversion_field_or_its_image_tag(
    spec: dict[str, str], expected: str | None
) -> None:
    head = {"template": {"spec": {"containers": [{"name": "ray", "image": spec.get("image", "ray")}]}}}
    cluster = {"rayVersion": spec.get("rayVersion"), "headGroupSpec": head}
    assert (
        RAYJOB.ray_version([{"kind": "PodDisruptionBudget"}, {"kind": "RayJob", "spec": {"rayClusterSpec": cluster}}])
        == expected
    )


def test_a_jobset_has_no_ray_version() -> None:
    assert JOBSET.ray_version([{"kind": "JobSet", "spec": {}}]) is None
