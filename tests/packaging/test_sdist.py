"""The source distribution has the files of the repository, without files that runs have created."""

from __future__ import annotations

import tarfile
from pathlib import Path

from tests.packaging.build import build, copy

LEFT_BEHIND = (
    "examples/digits-tensorflow/checkpoints/default/digits/log/00000001.json",
    "examples/any-script/checkpoints/a",
    "spotladder-demo/report/report.html",
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


def test_the_distribution_has_no_files_of_a_demo(tmp_path: Path) -> None:
    tree = copy(tmp_path / "tree")
    for name in LEFT_BEHIND:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("left by a run")
    with tarfile.open(build("sdist", tree, tmp_path / "dist")) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    assert [name for name in WANTED if name not in names] == []
    assert [name for name in names if "/__pycache__/" in name or name in LEFT_BEHIND] == []
