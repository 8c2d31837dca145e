"""`spec.source` in the pods of an attempt, and images of templates that name none."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from spotladder.workloads.source import CONTAINER, MOUNT
from spotladder.workloads.template import digests_of
from tests.workloads.builders import job, jobset_template, ray_template
from tests.workloads.rendering import env_of, head, rendered, workers

SOURCE = {"uri": f"s3://bucket/prefix/digits/source/{'0' * 64}.zip"}


@pytest.mark.parametrize("template", [ray_template(), jobset_template()])
def test_every_pod_unpacks_the_files_with_the_image_of_the_program(template: dict[str, Any]) -> None:
    with_files = job(template, source={**SOURCE, "pip": "requirements.txt"})
    pods = [workers(with_files), *([head(with_files)] if "entrypoint" in template["spec"] else [])]
    for pod in pods:
        program, init = pod["containers"][0], pod["initContainers"][0]
        assert (init["name"], init["image"]) == (CONTAINER, program["image"])
        assert init["securityContext"] == program["securityContext"]
        assert init["command"][:2] == ["python3", "-c"]
        assert init["command"][5:] == [SOURCE["uri"], "requirements.txt"]
        assert program["workingDir"] == f"{MOUNT}/source"
        assert env_of(program)["PYTHONPATH"] == f"{MOUNT}/source:{MOUNT}/packages"
        assert {"name": CONTAINER, "emptyDir": {}} in pod["volumes"]
        assert not any("gpu" in name for name in init.get("resources", {}).get("limits", {}))


def test_other_files_are_other_pods() -> None:
    other = job(ray_template(), source={"uri": SOURCE["uri"].replace("0", "1")})
    assert digests_of(other) != digests_of(job(ray_template(), source=SOURCE)) != digests_of(job(ray_template()))


def test_the_variables_and_folder_of_the_template_are_kept() -> None:
    template = jobset_template()
    pod = template["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["containers"][0] |= {"workingDir": "/app", "env": [{"name": "PYTHONPATH", "value": "/app/lib"}]}
    program = workers(job(template, source=SOURCE))["containers"][0]
    assert program["workingDir"] == "/app"
    assert env_of(program)["PYTHONPATH"] == f"{MOUNT}/source:{MOUNT}/packages:/app/lib"


def test_ray_containers_without_an_image_get_rays_own() -> None:
    template = ray_template()
    cluster = template["spec"]["rayClusterSpec"]
    cluster["rayVersion"] = "2.60.0"
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        group["template"]["spec"]["containers"][0].pop("image")
    cluster["workerGroupSpecs"][0]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    assert head(job(template))["containers"][0]["image"] == "rayproject/ray:2.60.0-py312"
    assert workers(job(template))["containers"][0]["image"] == "rayproject/ray:2.60.0-py312-gpu"
    del cluster["rayVersion"]
    made = rendered(job(template))["spec"]["rayClusterSpec"]
    assert made["rayVersion"] == "2.58.0"


def test_the_init_container_prepares_the_program(tmp_path: Path) -> None:
    """Its real command, with this Python: the program then imports its own files."""
    archive = tmp_path / "x.zip"
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("helper.py", "word = 'from the archive'")
        files.writestr("requirements.txt", "# nothing\n")
    named = archive.rename(tmp_path / f"{hashlib.sha256(archive.read_bytes()).hexdigest()}.zip")
    source = {"uri": f"file://{named}", "pip": "requirements.txt"}
    pod = workers(job(jobset_template(), source=source))
    mount = tmp_path / "mount"
    mount.mkdir()
    words = [word.replace(MOUNT, str(mount)) for word in pod["initContainers"][0]["command"][3:]]
    command = [sys.executable, "-c", pod["initContainers"][0]["command"][2], str(mount), *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    path = env_of(pod["containers"][0])["PYTHONPATH"].replace(MOUNT, str(mount))
    code = "import helper, json, spotladder.train; print(json.dumps([helper.word, helper.__file__]))"
    printed = subprocess.check_output([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, text=True)
    assert json.loads(printed) == ["from the archive", str(mount / "source" / "helper.py")]
