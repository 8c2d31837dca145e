"""Errors on any tier are reported before the first attempt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spotladder.api.review import review
from spotladder.workloads.file_review import for_cluster, for_clusters_alone, of_programs, warnings
from spotladder.workloads.listed_tiers import resolve_tiers
from spotladder.workloads.review import problems
from tests.api.builders import JOB, WORLD, changed, written
from tests.workloads.builders import capacity, job, ray_template

TIERS = [{"name": "spot", "capacityTier": "spot"}, {"name": "od", "capacityTier": "od"}]


def error_paths(template: dict[str, Any]) -> list[str]:
    of = job(template, tiers=TIERS)
    pools = {
        kind: capacity(provider="aws", capacityType=long) for kind, long in (("spot", "spot"), ("od", "on-demand"))
    }
    return [error.path for error in problems(of, resolve_tiers(of, pools))]


def test_an_error_on_every_tier_is_reported_once() -> None:
    template = ray_template()
    template["spec"]["submissionMode"] = "InteractiveMode"
    assert error_paths(template) == ["spec.workload.ray.template.spec.submissionMode"]


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
              template: {spec: {parallelism: 2, template: {spec: {restartPolicy: Always, containers: [{name: train}]}}}}
"""


def test_a_jobset_is_always_checked_for_clusters(tmp_path: Path) -> None:
    (problem,) = for_clusters_alone(review([written(tmp_path, "job.yaml", JOBSET)]))
    assert problem.path.endswith("replicatedJobs[0].template.spec.template.spec.restartPolicy")
    assert problem.where.startswith(f"{tmp_path}/job.yaml:14:")


def test_a_warning_names_the_field_as_errors_do(tmp_path: Path) -> None:
    text = changed(JOBSET, ("Always", "Never"), ("{name: train}", "{name: train, command: [sh, -c, train | tee log]}"))
    (warning,) = of_programs(review([written(tmp_path, "job.yaml", text)]))
    assert warning.path.endswith("replicatedJobs[0].template.spec.template.spec.containers[0]")


@pytest.mark.parametrize("command", ['["ray", "stop"]', '["/bin/sh", "-c", "ray stop"]', '["sleep", "5"]'])
def test_a_hook_that_stops_ray_before_the_program_has_committed_is_warned_of(tmp_path: Path, command: str) -> None:
    hook = f"containers: [{{name: train, lifecycle: {{preStop: {{exec: {{command: {command}}}}}}}"
    found = of_programs(review([written(tmp_path, "job.yaml", JOBSET.replace("containers: [{name: train", hook))]))
    stops = [warning.path for warning in found if "runs ray stop" in warning.message]
    assert [path.rpartition("containers[0]")[2] for path in stops] == [".lifecycle.preStop"] * ("stop" in command)


def test_a_ray_job_may_run_locally(tmp_path: Path) -> None:
    assert for_clusters_alone(review([written(tmp_path, "job.yaml", JOB)])) == []


@pytest.mark.parametrize("uri", ["checkpoints", "./checkpoints", "/mnt/checkpoints"])
def test_a_local_path_for_checkpoints_is_rejected_on_clusters(uri: str) -> None:
    of = job(checkpoints={"uri": uri})
    (error,) = problems(of, resolve_tiers(of, {"pool": capacity()}))
    assert error.path == "spec.checkpoints.uri"
    assert "s3://" in error.message
    assert "file:///" in error.message


@pytest.mark.parametrize("uri", ["s3://bucket/prefix", "gs://bucket", "az://bucket", "file:///mnt/checkpoints"])
def test_buckets_and_volumes_are_accepted(uri: str) -> None:
    of = job(checkpoints={"uri": uri})
    assert problems(of, resolve_tiers(of, {"pool": capacity()})) == ()


# --- files, without a cluster ----------------------------------------------------------------------------------------

SPOT = """\
---
apiVersion: spotladder.io/v1alpha1
kind: CapacityTier
metadata: {name: g5-spot-use1a}
spec: {capacityType: spot, provider: aws}
"""
AT = "spec.workload.ray.template.spec.rayClusterSpec"


def reported(folder: Path, *texts: str) -> list[str]:
    files = review([written(folder, f"{index}.yaml", text) for index, text in enumerate(texts)], more_capacity=True)
    assert files.problems == ()
    return [str(problem).removeprefix(f"{folder}/") for problem in for_cluster(files)]


def cluster_job(**worker: Any) -> str:
    """The job with complete pod templates."""
    pod = {"spec": {"containers": [{"name": "ray", "image": "ray"}], **worker}}
    head = json.dumps({"template": {"spec": {"containers": [{"name": "ray", "image": "ray"}]}}})
    return changed(
        JOB,
        ("            workerGroupSpecs:", f"            headGroupSpec: {head}\n            workerGroupSpecs:"),
        ("              replicas: 2\n", f"              replicas: 2\n              template: {json.dumps(pod)}\n"),
    )


def test_files_for_local_runs_are_rejected_for_clusters(tmp_path: Path) -> None:
    assert reported(tmp_path, cluster_job()) == []
    (line,) = reported(tmp_path, JOB)
    assert line.startswith(f"0.yaml:28:13: {AT}.headGroupSpec: is required on a cluster: ")
    (line,) = reported(tmp_path, changed(cluster_job(), ("s3://bucket/prefix", "checkpoints")))
    assert line.startswith("0.yaml:19:10: spec.checkpoints.uri: is a path, and every pod has another disk: ")


@pytest.mark.parametrize("overlap", ["", "\n  overlap: {maxDuration: 10m}"], ids=["alone", "with overlap"])
def test_elastic_jobs_are_accepted_on_clusters(tmp_path: Path, overlap: str) -> None:
    assert reported(tmp_path, changed(cluster_job(), ("  suspend: false", f"  elastic: {{min: 1}}{overlap}"))) == []


def test_contradictions_with_capacity_in_files_and_in_the_cluster(tmp_path: Path) -> None:
    job = cluster_job(nodeSelector={"karpenter.sh/capacity-type": "on-demand"})
    assert reported(tmp_path, job) == []
    (line,) = reported(tmp_path, job, SPOT)
    assert f'{AT}.workerGroupSpecs[0].template.spec.nodeSelector["karpenter.sh/capacity-type"]: ' in line
    assert line.startswith("0.yaml:32:")
    files = review([written(tmp_path, "job.yaml", job)])
    spot = capacity(provider="aws", capacityType="spot")
    (problem,) = for_cluster(files, {"g5-spot-use1a": spot})
    assert problem.path.endswith('nodeSelector["karpenter.sh/capacity-type"]')


def test_a_tier_that_contradicts_itself(tmp_path: Path) -> None:
    more = 'provider: aws, extraSelectors: {karpenter.sh/capacity-type: "on-demand"}'
    (line,) = reported(tmp_path, cluster_job() + changed(SPOT, ("provider: aws", more)))
    assert 'spec.extraSelectors["karpenter.sh/capacity-type"]: asks for on-demand, but capacityType spot' in line


def test_a_world_file_is_rejected(tmp_path: Path) -> None:
    assert reported(tmp_path, WORLD) == ["0.yaml:1:1: is a world file, which only local runs use: remove it"]


@pytest.mark.parametrize(
    ("version", "warned"), [("", True), ("rayVersion: 2.52.0", True), ("rayVersion: 2.58.1", False),
                            ("authOptions: {mode: disabled}", False)]
)  # fmt: skip
def test_a_ray_cluster_without_a_token_is_warned_about_unless_the_template_decides(
    tmp_path: Path, version: str, warned: bool
) -> None:
    field = "          rayClusterSpec:\n"
    text = changed(JOB, (field, f"{field}            {version}\n")) if version else JOB
    found = review([written(tmp_path, "job.yaml", text)], now=0.0)
    messages = [problem.message for problem in warnings(found) if problem.path.endswith("rayClusterSpec")]
    assert [message.partition(",")[0] for message in messages] == ["has no rayVersion of 2.58 or newer"] * warned


def test_the_short_form_is_warned_at_its_own_field(tmp_path: Path) -> None:
    head, _, _ = JOB.partition("  workload:")
    text = f"{head}  train: {{script: tune.py, framework: ray, image: example.com/own:1}}\n"
    found = review([written(tmp_path, "job.yaml", text)], now=0.0)
    (warned,) = [problem for problem in warnings(found) if "token" in problem.message]
    assert (warned.path, warned.where) == ("spec.train.image", f"{tmp_path}/job.yaml:22:51")
    assert "validate --show" in warned.message
