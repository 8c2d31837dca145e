"""Problems of all tiers are told before the first is entered."""

from __future__ import annotations

from typing import Any

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
