"""Problems of all tiers are told before the first is entered."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.workloads.review import problems
from spotladder.workloads.tiers import resolve_tiers
from tests.workloads.builders import capacity, job, ray_template, worker_spec

TIERS = [{"name": "spot", "capacityTier": "spot"}, {"name": "od", "capacityTier": "od"}]


def found(template: dict[str, Any]) -> list[str]:
    of = job(template, tiers=TIERS)
    pools = {
        kind: capacity(provider="aws", capacityType=long) for kind, long in (("spot", "spot"), ("od", "on-demand"))
    }
    return [error.path for error in problems(of, resolve_tiers(of, pools))]


def test_a_job_that_fits_all_its_tiers() -> None:
    assert found(ray_template()) == []


def test_a_contradiction_with_the_last_tier() -> None:
    template = ray_template()
    worker_spec(template)["nodeSelector"] = {"karpenter.sh/capacity-type": "spot"}
    (path,) = found(template)
    assert path.endswith('workerGroupSpecs[0].template.spec.nodeSelector["karpenter.sh/capacity-type"]')


def test_what_is_wrong_on_every_tier_is_told_once() -> None:
    template = ray_template()
    template["spec"]["submissionMode"] = "InteractiveMode"
    assert found(template) == ["spec.workload.ray.template.spec.submissionMode"]


@pytest.mark.parametrize("uri", ["checkpoints", "./checkpoints", "/mnt/checkpoints"])
def test_a_path_is_another_folder_in_every_pod(uri: str) -> None:
    of = job(checkpoints={"uri": uri})
    (error,) = problems(of, resolve_tiers(of, {"pool": capacity()}))
    assert error.path == "spec.checkpoints.uri"
    assert "s3://" in error.message
    assert "file:///" in error.message


@pytest.mark.parametrize("uri", ["s3://bucket/prefix", "gs://bucket", "az://bucket", "file:///mnt/checkpoints"])
def test_a_bucket_or_a_volume_is_one_folder_for_all(uri: str) -> None:
    of = job(checkpoints={"uri": uri})
    assert problems(of, resolve_tiers(of, {"pool": capacity()})) == ()
