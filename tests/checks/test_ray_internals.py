"""Names of Ray without a public API are used in three modules only, and their tests run with other versions of Ray."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from spotladder.versions import RAY, TESTED_RAY, parse

ROOT = Path(__file__).parents[2] / "controller" / "spotladder"

PRIVATE = re.compile(r"\bray(?:\.[a-z]\w*)*\._[a-z]\w*|\bfrom ray[\w.]* import [^\n]*(?<!\w)_[a-z]\w*")
"""`ray.train.v2._internal`, or an import of a name with an underscore."""

TESTED = {
    "train/rayinternals.py": "tests/train/test_rayinternals.py",
    "train/rayprocess.py": "tests/train/test_rayinternals.py",
    "local/raystart.py": "tests/local/test_raystart.py",
}
"""Each module that uses such names, and its tests."""


def test_only_these_modules_use_private_names_of_ray() -> None:
    using = {str(file.relative_to(ROOT)) for file in ROOT.rglob("*.py") if PRIVATE.search(file.read_text())}
    assert using == TESTED.keys()


def test_their_tests_run_with_other_versions_of_ray() -> None:
    makefile = (ROOT.parents[1] / "Makefile").read_text()
    for tests in TESTED.values():
        assert tests in makefile


def test_private_names_are_recognized() -> None:
    assert PRIVATE.search("from ray._private import node")
    assert PRIVATE.search("from ray.train.v2._internal.execution.context import get_train_context")
    assert PRIVATE.search("from ray.train.v2.api import _hidden")
    assert PRIVATE.search("ray._private.state.state.get_draining_nodes()")
    assert not PRIVATE.search("from ray.train import Checkpoint, get_context")


def test_the_range_of_the_package_is_the_range_of_the_tests() -> None:
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text())["project"]
    (ray,) = [entry for entry in project["optional-dependencies"]["local"] if entry.startswith("ray[")]
    (oldest, newest) = (parse(version) for version in TESTED_RAY)
    assert ray.endswith(f">={oldest[0]}.{oldest[1]},<{newest[0]}.{newest[1] + 1}")
    assert oldest <= parse(RAY) <= newest
