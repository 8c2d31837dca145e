"""The package of docs/own-policy.md with a policy of its own: its test passes, and `spotladder` finds the policy."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.api.builders import JOB, WORLD, changed, written
from tests.docs.markdown import ROOT, blocks

PAGE = ROOT / "docs" / "own-policy.md"


def shown(language: str) -> list[str]:
    """The blocks of the page in this language."""
    return [block.text for block in blocks(language) if block.page == PAGE]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The package as the page shows it, installed in a folder of the search path."""
    policy, test = shown("python")
    *_, settings, _command = shown("text")
    ((group, points),) = tomllib.loads(settings)["project"]["entry-points"].items()
    files = {
        "your_package/__init__.py": "",
        "your_package/policies.py": policy,
        "tests/test_policies.py": test,
        "your_package-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: your_package\nVersion: 1\n",
        "your_package-1.dist-info/entry_points.txt": "\n".join(
            [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
        ),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program that finds the package."""
    searched = os.pathsep.join([str(project), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": searched, "XDG_STATE_HOME": str(project / "state")}
    return subprocess.run(
        [sys.executable, *arguments], cwd=project, env=environment, capture_output=True, text=True, check=False
    )


def test_the_test_of_the_policy_passes(project: Path) -> None:
    done = run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert (done.returncode, "2 passed" in done.stdout) == (0, True), done.stdout


def test_simulated_runs_compare_the_policy(project: Path) -> None:
    (command,) = [text for text in shown("text") if text.startswith("spotladder ")]
    words = shlex.split(command)[1:]
    words[words.index("--seeds") + 1] = "2"
    written(project, "job.yaml", changed(JOB, ("spot-a", "spot"), ("  suspend: false", "  maxDuration: 12h")))
    written(project, "world.yaml", WORLD)
    done = run(project, "-m", "spotladder.cli.main", *words, "-o", "json")
    assert done.returncode == 0, done.stderr
    owl, *others = json.loads(done.stdout)["policies"]
    assert [owl["policy"], *(other["policy"] for other in others)] == ["night-owl", "adaptive"]
    assert [one["succeeded"] for one in owl["runsBySeed"]] == [True, True]
    assert [one["nodeHours"]["spot"] for one in owl["runsBySeed"]] == [0, 0], "the clock of the runs begins by day"
