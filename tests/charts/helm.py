"""Runs the real helm with its own folders."""

from __future__ import annotations

import os
import subprocess
from copy import deepcopy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ruamel.yaml import YAML

from tests.absent import absent
from tests.kube.apiserver import ROOT, find

CHARTS = ROOT / "charts"
KUBERNETES = "1.36.0"

Name = tuple[str, str, str]
"""Kind, namespace ("" for objects of the cluster) and name."""

GLOBAL = "spotladder-system-spotladder"


def helm(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run helm. Without helm the test is skipped, or fails if SPOTLADDER_REQUIRE demands it."""
    program = find("helm")
    if program is None:
        absent("not found: helm (SPOTLADDER_TOOLS or PATH)", "kube")
    homes = {f"HELM_{kind}_HOME": str(folder / kind) for kind in ("CACHE", "CONFIG", "DATA")}
    return subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=600, check=False, env={**os.environ, **homes}
    )


def rendered(
    folder: Path, *arguments: str | Path, namespace: str = "spotladder-system", chart: str = "spotladder"
) -> str:
    """The rendered objects of the chart as text. The release has the chart's name."""
    result = helm(
        folder, "template", chart, CHARTS / chart, "--namespace", namespace,
        "--kube-version", KUBERNETES, *arguments,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout


@cache
def release(*values: str) -> str:
    """The rendered controller with these values. Helm runs once for all tests that ask for the same ones."""
    with TemporaryDirectory() as folder:
        return rendered(Path(folder), *values)


def objects(text: str) -> list[dict[str, Any]]:
    """The objects in a rendered text, which a test may change."""
    return deepcopy(_objects(text))


@cache
def _objects(text: str) -> list[dict[str, Any]]:
    return [found for found in YAML(typ="safe", pure=True).load_all(text) if found]


def named(*values: str) -> dict[Name, dict[str, Any]]:
    """The rendered objects by name, without the checksum of the settings."""
    found = {}
    for one in objects(release(*values)):
        metadata = one["metadata"]
        if one["kind"] == "Deployment" and metadata["labels"]["app.kubernetes.io/component"] == "controller":
            assert one["spec"]["template"]["metadata"]["annotations"].pop("checksum/config")
        found[one["kind"], metadata.get("namespace", ""), metadata["name"]] = one
    return found


def changes(*values: str) -> tuple[set[Name], set[Name], set[Name]]:
    """The names of the objects that the values add to the default release, remove from it, and change in it."""
    default, other = named(), named(*values)
    changed = {name for name in default.keys() & other.keys() if default[name] != other[name]}
    return other.keys() - default.keys(), default.keys() - other.keys(), changed
