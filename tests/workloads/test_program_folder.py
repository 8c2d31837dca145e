"""A program that keeps its own checkpoints starts under `spotladder.train.program`."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from spotladder.api.program_folder import started
from spotladder.api.tieredjob import TieredJob
from tests.workloads.builders import job, jobset_template, ray_template
from tests.workloads.rendering import SET, rejection, rendered

FOLDER = {"uri": "s3://bucket/prefix", "programFolder": "out"}


def with_folder(template: dict[str, Any]) -> TieredJob:
    return job(template, checkpoints=FOLDER)


def test_the_entrypoint_of_a_rayjob() -> None:
    template = ray_template()
    template["spec"]["entrypoint"] = "cd x && python train.py --resume {checkpoint}"
    words = shlex.split(rendered(with_folder(template))["spec"]["entrypoint"])
    assert words == started(["/bin/sh", "-c", "cd x && python train.py --resume {checkpoint}"], "out")
    assert rendered(job(template))["spec"]["entrypoint"] == template["spec"]["entrypoint"]


def test_the_program_container_of_a_jobset() -> None:
    template = jobset_template()
    pod = template["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pod["metadata"] = {"annotations": {"kubectl.kubernetes.io/default-container": "train"}}
    pod["spec"]["containers"][0]["args"] = ["--resume", "{checkpoint}"]
    pod["spec"]["containers"].append({"name": "logs", "image": "example.org/logs:1", "command": ["logs"]})
    made = rendered(with_folder(template))["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    program, other = made["containers"]
    assert program["command"] == started(["python", "train.py"], "out")
    assert program["args"] == ["--resume", "{checkpoint}"]
    assert other["command"] == ["logs"]


def test_a_jobset_without_a_command_is_rejected() -> None:
    template = jobset_template()
    del template["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]["command"]
    error = rejection(with_folder(template))
    assert error.path == f"{SET}.replicatedJobs[0].template.spec.template.spec.containers[0].command"
    assert "is required with checkpoints.programFolder" in error.message


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=600, check=False)


def test_an_image_without_the_library_says_what_to_install(tmp_path: Path) -> None:
    done = run([sys.executable, "-I", "-S", *started(["true"], "out")[1:]], tmp_path)
    assert done.returncode == 1
    assert "No module named 'spotladder' in the image of the program: add RUN pip install spotladder" in done.stderr
