"""The source distribution holds what the repository holds, whatever runs have left in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEFT_BEHIND = (
    "examples/digits-tensorflow/checkpoints/default/digits/log/00000001.json",
    "examples/any-script/checkpoints/a",
    "demo-report/report.html",
    "controller/spotladder/__pycache__/errors.cpython-311.pyc",
)
WANTED = (
    "constraints.txt",
    "pyproject.toml",
    "Makefile",
    "Dockerfile",
    "CONTRIBUTING.md",
    "README.md",
    "LICENSE",
    "controller/spotladder/checkpoints/log.py",
    "infra/spotladder_infra/__init__.py",
    "infra/kind/up",
    "charts/spotladder/Chart.yaml",
    "docs/quickstart.md",
    "examples/digits-tensorflow/train.py",
    "tests/packaging/test_sdist.py",
)


def test_after_a_demo(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    passed_over = shutil.ignore_patterns(
        ".venv", ".git", ".bench", ".mutation", ".*_cache", ".hypothesis", "__pycache__", "node_modules"
    )
    shutil.copytree(ROOT, tree, ignore=passed_over, symlinks=True)
    for name in LEFT_BEHIND:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("left by a run")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path / "dist")]
    subprocess.run(command, cwd=tree, check=True, capture_output=True, timeout=120)
    (archive,) = (tmp_path / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    assert [name for name in WANTED if name not in names] == []
    assert [name for name in names if "/__pycache__/" in name or name in LEFT_BEHIND] == []
