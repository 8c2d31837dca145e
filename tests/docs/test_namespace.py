"""All pages, and the kind cluster, install the controller in one namespace."""

from __future__ import annotations

import re

from tests.docs.markdown import ROOT, pages

NAMESPACE = "spotladder-system"
HELM = re.compile(r"\bhelm\b.* (?:install|upgrade|uninstall|upgrade --install) spotladder\b(?!-crds)")
SAID = re.compile(r"(?:-n|--namespace)[ =](spotladder[-\w]*)")


def lines() -> list[str]:
    """The lines of all pages and of the script, continued ones joined."""
    files = [*pages(), ROOT / "infra" / "kind" / "up"]
    return [line for file in files for line in file.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()]


def test_helm_commands_name_the_namespace() -> None:
    named = [line for line in lines() if HELM.search(line)]
    assert len(named) > 3
    assert [line for line in named if NAMESPACE not in line] == []


def test_all_commands_use_one_namespace_for_the_controller() -> None:
    commands = [line for line in lines() if "ssh-keygen" not in line]  # Its -n is the purpose of a signature.
    assert {name for line in commands for name in SAID.findall(line)} == {NAMESPACE}
