"""The public examples of docs/trainers.md survive ten kills at random steps with at most two changed lines, and end
with the weights of an uninterrupted run, bit for bit."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.absent import absent
from tests.docs.markdown import ROOT
from tests.frameworks.public_run import EXAMPLES

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(3600)]
NAMES = sorted(path.stem for path in EXAMPLES.glob("[a-z]*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_ten_kills_change_no_weight(name: str, tmp_path: Path) -> None:
    text = (EXAMPLES / f"{name}.py").read_text()
    for package in set(re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)):
        if importlib.util.find_spec(package) is None:
            absent(f"{package} is not installed", "public")
    assert text.count("# changed\n") <= 2
    environment = {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.frameworks.public_run", name],
        cwd=tmp_path,
        env={**os.environ, **environment, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        timeout=3000,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_the_documentation_lists_them() -> None:
    text = (ROOT / "docs" / "trainers.md").read_text()
    assert [name for name in NAMES if f"tests/frameworks/public/{name}.py" not in text] == []
