"""The package of docs/own-policy.md with a policy of its own: its test passes, and `spotladder` finds the policy."""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.builders import JOB, WORLD, changed, written
from tests.cli.terminal import call
from tests.docs.markdown import ROOT, blocks

PAGE = ROOT / "docs" / "own-policy.md"


def shown(language: str) -> list[str]:
    """The blocks of the page in this language."""
    return [block.text for block in blocks(language) if block.page == PAGE]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package as the page shows it, installed in a folder of the search path, which is the working directory."""
    *_, settings, _command = shown("text")
    ((group, points),) = tomllib.loads(settings)["project"]["entry-points"].items()
    files = {
        "your_package/__init__.py": "",
        "your_package/policies.py": shown("python")[0],
        "your_package-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: your_package\nVersion: 1\n",
        "your_package-1.dist-info/entry_points.txt": "\n".join(
            [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
        ),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield tmp_path
    for name in ("your_package", "your_package.policies"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("project")
def test_the_test_of_the_policy_passes() -> None:
    variables: dict[str, Any] = {"__name__": "test_policies"}
    exec(shown("python")[1], variables)  # noqa: S102 – the documentation's own code
    tests = [value for name, value in variables.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()


def test_simulated_runs_compare_the_policy(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (command,) = [text for text in shown("text") if text.startswith("spotladder ")]
    words = shlex.split(command)[1:]
    words[words.index("--seeds") + 1] = "2"
    written(project, "job.yaml", changed(JOB, ("spot-a", "spot"), ("  suspend: false", "  maxDuration: 12h")))
    written(project, "world.yaml", WORLD)
    done = call(capsys, *words, "-o", "json")
    assert done.code == 0, done.err
    owl, *others = json.loads(done.out)["policies"]
    assert [owl["policy"], *(other["policy"] for other in others)] == ["night-owl", "adaptive"]
    assert [one["succeeded"] for one in owl["runsBySeed"]] == [True, True]
    assert [one["nodeHours"]["spot"] for one in owl["runsBySeed"]] == [0, 0], "the clock of the runs begins by day"
