"""The support matrix has the versions of the code."""

from __future__ import annotations

import re

from spotladder.versions import OLDEST_RAY, SUPPORTED, TESTED_RAY
from tests.docs.markdown import ROOT


def minor(version: str) -> str:
    return version.rpartition(".")[0]


def test_the_matrix_has_the_versions_of_the_code() -> None:
    page = (ROOT / "docs" / "support.md").read_text(encoding="utf-8")
    cells = dict(re.findall(r"^\| (\w+) \| (.*) \|$", page, re.MULTILINE))
    minors = list(SUPPORTED)
    assert cells["Kubernetes"] == f"{minors[0]} to {minors[-1]}"
    assert cells["Ray"] == " to ".join(map(minor, TESTED_RAY))
    assert re.findall(r"1\.\d+", cells["KubeRay"].split("(")[0]) == list(OLDEST_RAY)
    assert re.findall(r"(1\.\d+)(?: or newer)? for (?:Kubernetes )?(1\.\d+)", cells["Karpenter"]) == [
        (entry.karpenter, entry.minor) for entry in SUPPORTED.values()
    ]
