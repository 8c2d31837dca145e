"""`spotladder validate` as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.api.builders import JOB, WORLD, changed, written
from tests.cli.terminal import call
from tests.workloads.test_review import cluster_job

Capture = pytest.CaptureFixture[str]


def test_valid_files(capsys: Capture, tmp_path: Path) -> None:
    job, world = written(tmp_path, "job.yaml", JOB), written(tmp_path, "world.yaml", WORLD)
    answer = call(capsys, "validate", job, world)
    assert (answer.code, answer.err) == (0, "")
    assert [line.split() for line in answer.out.splitlines()] == [
        ["FILE", "KIND", "NAME", "RESULT"],
        [str(job), "TieredJob", "digits", "ok"],
        [str(world), "World", "–", "ok"],
    ]


def test_every_problem_is_a_line_on_stderr(capsys: Capture, tmp_path: Path) -> None:
    job = written(tmp_path, "job.yaml", changed(JOB, ("grace: 90s", "grace: 90"), ("maxFailures: 3", "maxFailures: x")))
    answer = call(capsys, "validate", job)
    assert answer.code == 2
    assert answer.err.splitlines() == [
        f'error: {job}:10:18: spec.tiers[0].maxFailures: must be a whole number, not "x"',
        f"error: {job}:16:10: spec.grace: needs a unit: write 90s for seconds (or 10m, 1h30m)",
    ]
    assert answer.out.splitlines()[1].endswith("invalid")


def test_the_namespace_of_a_file_and_of_the_option_agree(capsys: Capture, tmp_path: Path) -> None:
    job = written(tmp_path, "job.yaml", JOB)
    assert call(capsys, "validate", job, "-n", "team-a").code == 0
    answer = call(capsys, "validate", job, "-n", "team-b")
    assert answer.code == 2
    assert "metadata.namespace: is team-a, but --namespace is team-b: remove one of them\n" in answer.err
    anywhere = written(tmp_path, "anywhere.yaml", changed(JOB, ("  namespace: team-a\n", "")))
    assert call(capsys, "validate", anywhere, "-n", "team-b").code == 0


def test_json_and_yaml_carry_the_problems(capsys: Capture, tmp_path: Path) -> None:
    job = written(tmp_path, "job.yaml", changed(JOB, ("grace: 90s", "grace: 90")))
    expected = {
        "valid": False,
        "objects": [{"file": str(job), "kind": "TieredJob", "name": "digits", "valid": False}],
        "problems": [
            {
                "where": f"{job}:16:10",
                "path": "spec.grace",
                "message": "needs a unit: write 90s for seconds (or 10m, 1h30m)",
            }
        ],
    }
    answer = call(capsys, "validate", job, "--output", "json")
    assert (answer.code, answer.err, json.loads(answer.out)) == (2, "", expected)
    answer = call(capsys, "validate", job, "--output", "yaml")
    assert (answer.code, answer.err, YAML(typ="safe").load(answer.out)) == (2, "", expected)


@pytest.mark.parametrize("cluster", [False, True], ids=["offline", "--for-cluster"])
def test_warnings_of_the_program_do_not_make_a_file_invalid(capsys: Capture, tmp_path: Path, cluster: bool) -> None:
    """Without --for-cluster these are the only warnings."""
    (tmp_path / "train.py").write_text("import ray\n")
    text = changed(cluster_job(), ("entrypoint: python train.py", "entrypoint: python train.py 2>&1 | tee log"))
    job = written(tmp_path, "job.yaml", text)
    answer = call(capsys, "validate", *(["--for-cluster"] if cluster else []), job)
    assert answer.code == 0
    at = f"warning: {job}:26:23: spec.workload.ray.template.spec.entrypoint: "
    masked, unused = [line.removeprefix(at) for line in answer.err.splitlines() if line.startswith(at)]
    assert masked.startswith("a pipe has the exit code of its last command")
    assert unused.startswith("the program train.py does not import spotladder.train")
    assert cluster or len(answer.err.splitlines()) == 2


def test_cluster_checks(capsys: Capture, tmp_path: Path) -> None:
    job = written(tmp_path, "job.yaml", changed(JOB, ("s3://bucket/prefix", "checkpoints")))
    assert call(capsys, "validate", job).code == 0
    answer = call(capsys, "validate", "--for-cluster", job)
    assert answer.code == 2
    assert [line.split(": ")[2] for line in answer.err.splitlines()] == [
        "spec.checkpoints.uri",
        "spec.workload.ray.template.spec.rayClusterSpec.headGroupSpec",
    ]
    assert answer.out.splitlines()[1].endswith("invalid")
    printed = json.loads(call(capsys, "validate", "--for-cluster", job, "-o", "json").out)
    assert (printed["valid"], printed["objects"][0]["valid"], len(printed["problems"])) == (False, False, 2)
