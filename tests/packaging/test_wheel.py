"""The wheel has every file that its commands read at run time."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from tests.packaging.build import ROOT, build, copy

CHARTS = ("spotladder", "spotladder-crds", "spotladder-pools")

FIND = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from spotladder_infra.rollout import charts, components
own = [components.CONTROLLER.chart, components.SPOTLADDER_CRDS, components.POOLS.chart]
print(json.dumps({chart.name: charts.find(chart, None, Path(sys.argv[1])).path for chart in own}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the wheel, as pip puts them into site-packages."""
    scratch = tmp_path_factory.mktemp("wheel")
    folder = scratch / "site-packages"
    with zipfile.ZipFile(build("wheel", copy(scratch / "tree"), scratch / "dist")) as archive:
        archive.extractall(folder)
    return folder


def test_the_wheel_has_every_file_of_the_packages_and_charts(installed: Path) -> None:
    sources = {"spotladder": "controller/spotladder", "spotladder_infra": "infra/spotladder_infra"}
    sources["spotladder_infra/charts"] = "charts"
    missing = [
        f"{target}/{name}"
        for target, source in sources.items()
        for name in tracked(source)
        if not (installed / target / name).is_file()
    ]
    assert missing == []


def test_a_rollout_finds_its_own_charts(installed: Path) -> None:
    command = [sys.executable, "-c", FIND, str(installed)]
    done = subprocess.run(command, cwd=installed, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {name: str(installed / "spotladder_infra" / "charts" / name) for name in CHARTS}


def test_kubectl_finds_the_commands_as_a_plugin(installed: Path) -> None:
    """kubectl runs `kubectl-NAME` on PATH as `kubectl NAME`."""
    (found,) = installed.glob("spotladder-*.dist-info")
    scripts = Distribution.at(found).entry_points.select(group="console_scripts")
    assert {script.name: script.value for script in scripts} == dict.fromkeys(
        ("spotladder", "kubectl-spotladder"), "spotladder.cli.main:main"
    )


def test_the_demo_finds_its_files(installed: Path) -> None:
    """`spotladder demo` needs no checkout. The tests of the examples run it."""
    program = "import sys; sys.path.insert(0, sys.argv[1]); from spotladder.cli.demo import Framework, files_of; "
    program += "print(*[files_of(framework) for framework in Framework], sep=chr(10))"
    command = [sys.executable, "-c", program, str(installed)]
    done = subprocess.run(command, cwd=installed, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for line, name in zip(done.stdout.splitlines(), ("digits-tensorflow", "digits-pytorch", "digits-jax"), strict=True):
        assert Path(line) == installed / "spotladder" / "demo" / name
        for file in ("job.yaml", "world.yaml", "train.py"):
            assert (Path(line) / file).read_bytes() == (ROOT / "examples" / name / file).read_bytes()


def tracked(folder: str) -> list[str]:
    """The files of a folder of the repository, relative to it."""
    root = ROOT / folder
    files = (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(str(path.relative_to(root)) for path in files)
