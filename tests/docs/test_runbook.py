"""The commands and log lines of the runbook."""

from __future__ import annotations

import re

from spotladder.workloads import names
from tests.docs.markdown import ROOT, blocks

RUNBOOK = ROOT / "docs" / "runbook.md"
NOT_NAMESPACED = {"crd", "capacitytier", "capacitytiers", "namespace"}


def typed() -> list[str]:
    """The lines of the runbook's blocks, continued ones joined."""
    code_blocks = [block.text.replace("\\\n", " ") for block in blocks("text", "sh") if block.page == RUNBOOK]
    return [line for text in code_blocks for line in text.splitlines()]


def test_kubectl_commands_delete_one_kind_with_a_namespace() -> None:
    """With several kinds, kubectl deletes nothing if one of them is not installed."""
    found = [line for line in typed() if re.search(r"kubectl .*(?:delete|patch)\b", line)]
    assert len(found) > 4
    for line in found:
        kind = re.search(r"(?:delete|patch) (\S+)", line)
        assert kind is not None
        assert "," not in kind[1], line
        assert kind[1] in NOT_NAMESPACED or re.search(r" (?:-n|-A|--namespace|--all-namespaces)\b", line), line


def test_labels_and_definitions_match_the_code() -> None:
    text = RUNBOOK.read_text(encoding="utf-8")
    assert set(re.findall(r"-l (spotladder\.io/[a-z-]+)", text)) == {names.HOME}
    made = {file.stem for file in (ROOT / "charts" / "spotladder-crds" / "templates").glob("*.yaml")}
    assert set(re.findall(r"(\w+)\.spotladder\.io", text)) == made


def test_log_lines_in_the_runbook_exist_in_the_code() -> None:
    source = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "controller").rglob("*.py"))
    for words in ("cannot take the lease", "not leading", "cluster is down"):
        assert f'"{words}"' in source
        assert f"`{words}`" in RUNBOOK.read_text(encoding="utf-8")
