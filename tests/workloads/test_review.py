"""Problems of all tiers are told before the first is entered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spotladder.api.review import review
from spotladder.workloads.review import for_cluster, for_clusters_alone, problems
from spotladder.workloads.tiers import resolve_tiers
from tests.api.builders import JOB, WORLD, changed, written
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


JOBSET = """
apiVersion: spotladder.io/v1alpha1
kind: TieredJob
metadata: {name: plain}
spec:
  tiers: [{name: spot, capacityTier: spot}]
  checkpoints: {uri: "s3://bucket/prefix", interval: 50steps}
  workload:
    jobSet:
      template:
        spec:
          replicatedJobs:
            - name: workers
              template: {spec: {parallelism: 2, backoffLimit: 6, template: {spec: {containers: [{name: train}]}}}}
"""


def test_a_jobset_runs_on_clusters_alone_and_is_always_looked_at_as_there(tmp_path: Path) -> None:
    (problem,) = for_clusters_alone(review([written(tmp_path, "job.yaml", JOBSET)]))
    assert problem.path.endswith("replicatedJobs[0].template.spec.backoffLimit")
    assert problem.where.startswith(f"{tmp_path}/job.yaml:14:")


def test_a_ray_job_may_be_for_this_machine(tmp_path: Path) -> None:
    assert for_clusters_alone(review([written(tmp_path, "job.yaml", JOB)])) == []


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


# --- files, before a cluster is asked --------------------------------------------------------------------------------

SPOT = """\
---
apiVersion: spotladder.io/v1alpha1
kind: CapacityTier
metadata: {name: g5-spot-use1a}
spec: {capacityType: spot, provider: aws}
"""
AT = "spec.workload.ray.template.spec.rayClusterSpec"


def said(folder: Path, *texts: str) -> list[str]:
    files = review([written(folder, f"{index}.yaml", text) for index, text in enumerate(texts)], more_capacity=True)
    assert files.problems == ()
    return [str(problem).removeprefix(f"{folder}/") for problem in for_cluster(files)]


def whole(**worker: Any) -> str:
    """The job with pods that a cluster can make."""
    pod = {"spec": {"containers": [{"name": "ray", "image": "ray"}], **worker}}
    head = json.dumps({"template": {"spec": {"containers": [{"name": "ray", "image": "ray"}]}}})
    return changed(
        JOB,
        ("            workerGroupSpecs:", f"            headGroupSpec: {head}\n            workerGroupSpecs:"),
        ("              replicas: 2\n", f"              replicas: 2\n              template: {json.dumps(pod)}\n"),
    )


def test_what_only_one_machine_can_run(tmp_path: Path) -> None:
    assert said(tmp_path, whole()) == []
    (line,) = said(tmp_path, JOB)
    assert line.startswith(f"0.yaml:28:13: {AT}.headGroupSpec: is required on a cluster: ")
    (line,) = said(tmp_path, changed(whole(), ("s3://bucket/prefix", "checkpoints")))
    assert line.startswith("0.yaml:19:10: spec.checkpoints.uri: is a path, and every pod has another disk: ")


def test_what_contradicts_capacity_of_the_files_or_of_the_cluster(tmp_path: Path) -> None:
    job = whole(nodeSelector={"karpenter.sh/capacity-type": "on-demand"})
    assert said(tmp_path, job) == []
    (line,) = said(tmp_path, job, SPOT)
    assert f'{AT}.workerGroupSpecs[0].template.spec.nodeSelector["karpenter.sh/capacity-type"]: ' in line
    assert line.startswith("0.yaml:32:")
    files = review([written(tmp_path, "job.yaml", job)])
    spot = capacity(provider="aws", capacityType="spot")
    (problem,) = for_cluster(files, {"g5-spot-use1a": spot})
    assert problem.path.endswith('nodeSelector["karpenter.sh/capacity-type"]')


def test_a_tier_that_contradicts_itself(tmp_path: Path) -> None:
    more = 'provider: aws, extraSelectors: {karpenter.sh/capacity-type: "on-demand"}'
    (line,) = said(tmp_path, whole() + changed(SPOT, ("provider: aws", more)))
    assert 'spec.extraSelectors["karpenter.sh/capacity-type"]: asks for on-demand, but capacityType spot' in line


def test_a_world_file_is_for_one_machine(tmp_path: Path) -> None:
    assert said(tmp_path, WORLD) == ["0.yaml:1:1: is a world file, which only local runs use: remove it"]
