"""`spec.train`, the short form of a job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spotladder.api.entrypoints import entrypoints
from spotladder.api.local_mode import on_this_machine
from spotladder.api.manifest import manifest
from spotladder.api.problems import InvalidDocument
from spotladder.api.read import read_job
from spotladder.api.tieredjob import TieredJob
from spotladder.errors import InvalidSpec

JOB = """\
apiVersion: spotladder.io/v1alpha1
kind: TieredJob
metadata: {name: line}
spec:
  tiers:
  - {name: spot, capacityTier: g5-spot, maxFailures: 2, provisionTimeout: 10m}
  - {name: on-demand, capacityTier: g5-on-demand, maxFailures: -1}
  checkpoints: {uri: s3://my-bucket/checkpoints}
"""


def short(tmp_path: Path, train: str) -> TieredJob:
    file = tmp_path / "job.yaml"
    file.write_text(f"{JOB}  train: {{{train}}}\n")
    return read_job(file)


PLACE = "--node-rank '$(RANK)' --master-addr '$(MASTER_ADDR)' --master-port '$(MASTER_PORT)'"


@pytest.mark.parametrize(
    ("train", "on_a_cluster", "here"),
    [
        ("script: train.py --epochs 3", "python train.py --epochs 3", "python train.py --epochs 3"),
        (
            "script: train.py, workers: 2, gpus: 4",
            f"python -m spotladder.train.torchrun --nnodes 2 --nproc-per-node 4 {PLACE} train.py",
            "python -m spotladder.train.torchrun --standalone --nproc-per-node 8 train.py",
        ),
        (
            "script: train.py, gpus: 2",
            "python -m spotladder.train.torchrun --nnodes 1 --nproc-per-node 2 --standalone train.py",
            "python -m spotladder.train.torchrun --standalone --nproc-per-node 2 train.py",
        ),
        ("script: train.py, workers: 3, framework: ray", "python train.py", "python train.py"),
        ("script: train.py, gpus: 4, framework: python", "python train.py", "python train.py"),
    ],
)
def test_the_command_on_a_cluster_and_on_this_machine(tmp_path: Path, train: str, on_a_cluster: str, here: str) -> None:
    job = short(tmp_path, train)
    assert [command for _, command in entrypoints(job)] == [on_a_cluster]
    assert [command for _, command in entrypoints(on_this_machine(job, tmp_path))] == [here]


def test_a_manifest_has_the_expanded_workload_only(tmp_path: Path) -> None:
    spec = manifest(short(tmp_path, "script: train.py, workers: 2, gpus: 1, framework: ray"))["spec"]
    assert "train" not in spec
    cluster: dict[str, Any] = spec["workload"]["ray"]["template"]["spec"]["rayClusterSpec"]
    assert cluster["rayVersion"] == "2.58.0"
    (head,) = cluster["headGroupSpec"]["template"]["spec"]["containers"]
    assert head == {"name": "ray-head", "image": "rayproject/ray:2.58.0-py312"}
    (group,) = cluster["workerGroupSpecs"]
    (worker,) = group["template"]["spec"]["containers"]
    assert (group["replicas"], worker["image"]) == (2, "rayproject/ray:2.58.0-py312-gpu")
    assert worker["resources"] == {"limits": {"nvidia.com/gpu": 1}}


@pytest.mark.parametrize("framework", ["ray", "torch"])
def test_all_pods_have_the_service_account(tmp_path: Path, framework: str) -> None:
    job = short(tmp_path, f"script: train.py, framework: {framework}, serviceAccount: training")
    templates = json.dumps(manifest(job)).count('"containers"')
    assert json.dumps(manifest(job)).count('"serviceAccountName": "training"') == templates
    assert templates == (2 if framework == "ray" else 1)


def test_commits_of_this_machine_are_not_in_the_bucket(tmp_path: Path) -> None:
    job = on_this_machine(short(tmp_path, "script: train.py, workers: 2, framework: ray"), tmp_path / "here")
    assert job.spec.checkpoints.uri == str(tmp_path / "here")
    assert job.spec.ray_workers == 2


def test_several_processes_of_plain_python_need_a_cluster(tmp_path: Path) -> None:
    job = short(tmp_path, "script: train.py, workers: 2, framework: python")
    with pytest.raises(InvalidSpec, match="set workers to 1") as error:
        on_this_machine(job, tmp_path)
    assert error.value.path == "spec.train.workers"


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ("script: train.py, framework: torhc", 'spec.train.framework: "torhc" is not one of torch, ray, python'),
        ("workers: 2", "spec.train.script: is required"),
        ("script: train.py, workers: 0", "spec.train.workers: must be at least 1, not 0"),
        ("script: train.py 'x", "spec.train.script: cannot be read as a command: no closing quotation"),
        ("script: train.py}\n  workload: {ray: {}", "spec.train: is the short form of workload: remove one of them"),
    ],
)
def test_an_error_names_the_field_of_the_short_form_only(tmp_path: Path, train: str, message: str) -> None:
    with pytest.raises(InvalidDocument) as error:
        short(tmp_path, train)
    assert len(error.value.problems) == 1
    assert message in str(error.value)


def test_an_empty_short_form_is_no_program(tmp_path: Path) -> None:
    (file := tmp_path / "job.yaml").write_text(f"{JOB}  train:\n")
    with pytest.raises(InvalidDocument, match="workload: is required"):
        read_job(file)
