"""The example job for clusters fits its tiers, its image and its page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.check import checked
from spotladder.api.read import read_documents, read_job
from spotladder.workloads.listed_tiers import resolve_tiers
from spotladder.workloads.names import Origin
from spotladder.workloads.rayjob.workload import RAYJOB
from spotladder.workloads.review import problems
from tests.docs.markdown import ROOT, Block, blocks, commands

FOLDER = ROOT / "examples" / "on-a-cluster"
JOB = FOLDER / "digits.yaml"
DOCKERFILE = (FOLDER / "Dockerfile").read_text(encoding="utf-8")


def capacity() -> dict[str, CapacityTier]:
    found = [checked(document, CapacityTier) for document in read_documents(FOLDER / "capacity.yaml")]
    return {tier.metadata.name: tier for tier in found}


def containers() -> list[dict[str, Any]]:
    """The containers of all attempts' pods."""
    job = read_job(JOB)
    found = []
    for tier in resolve_tiers(job, capacity()):
        cluster = RAYJOB.render(job, Origin(""), tier, 1, {})[-1]["spec"]["rayClusterSpec"]
        for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
            found += group["template"]["spec"]["containers"]
    return found


def test_the_job_fits_all_its_tiers() -> None:
    job = read_job(JOB)
    tiers = resolve_tiers(job, capacity())
    assert problems(job, tiers) == ()
    assert [tier.core.capacity_type for tier in tiers] == ["spot", "on-demand"]
    assert len(containers()) == 2 * 2


@pytest.mark.parametrize(
    "block",
    [block for block in blocks("yaml") if "kind: TieredJob" in block.text and block.page.name.startswith("cluster")],
    ids=str,
)
def test_jobs_that_pages_about_clusters_show_run_on_clusters(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(block.text, encoding="utf-8")
    job = read_job(file)
    pool = capacity()["m6i-spot"]
    assert problems(job, resolve_tiers(job, {tier.capacity_tier: pool for tier in job.spec.tiers})) == ()


def test_the_image_matches_the_job() -> None:
    (entrypoint,) = re.findall(r"entrypoint: python (\S+)", JOB.read_text(encoding="utf-8"))
    (folder,) = re.findall(r"^WORKDIR (\S+)\nCOPY examples/\S+/train.py ./$", DOCKERFILE, re.MULTILINE)
    assert entrypoint == f"{folder}/train.py"
    (version,) = re.findall(r"^FROM rayproject/ray:([\d.]+)-py3\d+$", DOCKERFILE, re.MULTILINE)
    assert f"\nray=={version}\n" in (ROOT / "constraints.txt").read_text(encoding="utf-8")
    data = YAML(typ="safe").load(JOB)
    assert data["spec"]["workload"]["ray"]["template"]["spec"]["rayClusterSpec"]["rayVersion"] == version


def test_the_image_copies_existing_files_in_its_build_context() -> None:
    copied = [path for line in re.findall(r"^COPY (.*) \S+$", DOCKERFILE, re.MULTILINE) for path in line.split()]
    assert all((ROOT / path).exists() for path in copied)
    given = (FOLDER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert sorted(line[1:] for line in given if line.startswith("!")) == sorted(copied)


def test_the_commands_match_the_job() -> None:
    said = [shlex.split(command) for command in commands(ROOT / "docs" / "cluster.md")]
    (image,) = {container["image"] for container in containers()}
    (built,) = [words for words in said if words[:2] == ["docker", "build"] and "-f" in words]
    assert built[built.index("-t") + 1] == image
    assert ["docker", "push", image] in said
    assert built[built.index("-f") + 1] == "examples/on-a-cluster/Dockerfile"
    (made,) = [words for words in said if words[0] == "kubectl" and "secret" in words]
    credentials = read_job(JOB).spec.checkpoints.credentials
    assert credentials is not None
    secret = made[made.index("generic") + 1]
    assert secret == credentials.secret_name
    (installed,) = [words for words in said if words[:3] == ["helm", "install", "spotladder"]]
    assert f"checkpointSecrets={{{secret}}}" in installed
