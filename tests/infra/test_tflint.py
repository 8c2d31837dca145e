"""tflint on all stacks, with the rule sets of AWS and Google Cloud: their enumerations, names and types of machines.

Needs tflint with both rule sets (`tflint --init` in a folder with CONFIGURATION as its .tflint.hcl).
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.absent import absent

RULE_SETS = {"aws": "0.48.0", "google": "0.39.0"}
CONFIGURATION = 'plugin "terraform" {\n  enabled = false\n}\n' + "".join(
    f'plugin "{name}" {{\n  enabled = true\n  version = "{version}"\n'
    f'  source  = "github.com/terraform-linters/tflint-ruleset-{name}"\n}}\n'
    for name, version in RULE_SETS.items()
)

pytestmark = pytest.mark.timeout(600)


def issues(stack: Any, folder: Path) -> set[str]:
    """What tflint finds in a stack, given as its `cdk.tf.json`: `RULE: MESSAGE`."""
    program = shutil.which("tflint")
    if program is None:
        absent("tflint is not on the PATH", "tflint", in_all=False)
    (folder / ".tflint.hcl").write_text(CONFIGURATION)
    (folder / "cdk.tf.json").write_text(json.dumps(stack))
    done = subprocess.run(
        [program, "--format", "json", "--force"], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    report = json.loads(done.stdout)
    if any("plugin" in error["message"].lower() for error in report["errors"]):
        absent(f"tflint lacks a rule set: {report['errors'][0]['message']}", "tflint", in_all=False)
    assert not report["errors"], report["errors"]
    return {f"{issue['rule']['name']}: {issue['message']}" for issue in report["issues"]}


def test_no_stack_has_an_issue(stacks: dict[str, Path], optional_stacks: dict[str, Path], tmp_path: Path) -> None:
    for folder in (*stacks.values(), *optional_stacks.values()):
        assert issues(json.loads((folder / "cdk.tf.json").read_text()), tmp_path) == set()


WRONG = [
    ("east", "AL2023_x86_64_STANDARD", "AL2023_STANDARD", "aws_eks_node_group_invalid_ami_type"),
    ("west", "e2-standard-4", "e2-standard-5", "google_container_node_pool_invalid_machine_type"),
]
"""A value of a cluster's stack, what stands there instead, and the rule that finds it."""


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case[3])
def test_a_wrong_value_is_found(case: tuple[str, str, str, str], configuration: dict[str, Any], tmp_path: Path) -> None:
    cluster, right, wrong, rule = case
    text = json.dumps(configuration[cluster])
    assert right in text
    found = issues(json.loads(text.replace(right, wrong)), tmp_path)
    assert {entry.partition(":")[0] for entry in found} == {rule}
