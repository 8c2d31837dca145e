"""The workflows of GitHub run targets of the Makefile and nothing of their own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.packaging.build import ROOT

TARGETS = set(re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[0].split())
PUBLISHING = ("mkdir dist/", "echo ", "for chart in dist/", "gh release create ")


@pytest.mark.parametrize("name", ["test", "nightly", "docs", "release"])
def test_a_workflow_runs_targets_that_exist(name: str) -> None:
    workflow: dict[str, Any] = YAML(typ="safe").load(Path(ROOT, ".github", "workflows", f"{name}.yaml"))
    jobs = workflow["jobs"].values()
    commands = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    commands = [command for command in commands if not command.startswith(PUBLISHING)]
    targets = [command.removeprefix("make ") for command in commands if "${{" not in command]
    for job in jobs:
        targets += job.get("strategy", {}).get("matrix", {}).get("target", [])
    assert targets
    assert set(targets) <= TARGETS
