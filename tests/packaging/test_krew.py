"""The plugin of kubectl for krew: its manifest fits its archive, and its program finds a spotladder to run."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.packaging.build import ROOT

ARCHIVE = "kubectl-spotladder-1.2.3.tar.gz"
REQUIREMENT = "spotladder[operator,notify,sim]==1.2.3"
UNKNOWN = (
    "error: no program runs spotladder 1.2.3: install uv (https://docs.astral.sh/uv) or pipx, "
    f"or run: pip install '{REQUIREMENT}'\n"
)


def built(folder: Path) -> Path:
    folder.mkdir()
    repository = {"GITHUB_SERVER_URL": "https://github.example", "GITHUB_REPOSITORY": "acme/spotladder"}
    command = [str(ROOT / ".ci" / "krew"), str(folder), "1.2.3"]
    subprocess.run(command, check=True, env=os.environ | repository, capture_output=True)
    return folder


def test_the_manifest_has_the_address_and_the_digest_of_the_archive(tmp_path: Path) -> None:
    dist = built(tmp_path / "dist")
    manifest: dict[str, Any] = YAML(typ="safe").load(dist / "spotladder.yaml")
    (platform,) = manifest["spec"]["platforms"]
    assert (manifest["metadata"]["name"], manifest["spec"]["version"]) == ("spotladder", "v1.2.3")
    assert platform["uri"] == f"https://github.example/acme/spotladder/releases/download/v1.2.3/{ARCHIVE}"
    assert platform["sha256"] == hashlib.sha256((dist / ARCHIVE).read_bytes()).hexdigest()
    with tarfile.open(dist / ARCHIVE) as archive:
        assert {each.name: each.mode for each in archive} == {"LICENSE": 0o644, platform["bin"]: 0o755}
    again = built(tmp_path / "again")
    assert (again / ARCHIVE).read_bytes() == (dist / ARCHIVE).read_bytes()


@pytest.mark.parametrize(
    ("found", "code", "said"),
    [
        pytest.param({"spotladder": "1.2.3", "uvx": "", "pipx": ""}, 0, "spotladder get\n", id="installed"),
        pytest.param(
            {"spotladder": "1.2.2", "uvx": "", "pipx": ""},
            0,
            f"uvx --quiet --from {REQUIREMENT} spotladder get\n",
            id="another version",
        ),
        pytest.param({"pipx": ""}, 0, f"pipx run --spec {REQUIREMENT} spotladder get\n", id="pipx"),
        pytest.param({}, 5, UNKNOWN, id="nothing"),
    ],
)
def test_the_program_runs_the_spotladder_of_its_version(
    found: dict[str, str], code: int, said: str, tmp_path: Path
) -> None:
    shutil.unpack_archive(built(tmp_path / "dist") / ARCHIVE, tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, version in found.items():
        lines = f'#!/bin/sh\n[ "$1" = --version ] && echo "spotladder {version}" || echo "{name} $*"\n'
        (programs / name).write_text(lines)
        (programs / name).chmod(0o755)
    command = ["/bin/sh", str(tmp_path / "kubectl-spotladder"), "get"]
    done = subprocess.run(command, env={"PATH": str(programs)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (code, said)
