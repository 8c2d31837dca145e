"""CustomResourceDefinitions of a chart, installed by server-side apply: Helm does not upgrade those of `crds/`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from spotladder_infra.rollout import charts, manifest, ready
from spotladder_infra.rollout.tools import FIELD_MANAGER, Tools

KIND = "CustomResourceDefinition"

ESTABLISHED_TIMEOUT = 60.0
"""Seconds for the API server to serve new CRDs."""


def of_chart(tools: Tools, chart: str) -> list[str]:
    """The CRDs in a chart's `crds/` and in its templates, as YAML."""
    plain = charts.plain_crds(Path(chart))
    rendered = manifest.joined(plain) if plain else tools.helm("template", "crds", chart, "--include-crds")
    return manifest.of_kinds(rendered, [KIND])


def apply(tools: Tools, crds: list[str]) -> list[str]:
    """Creates or changes them and waits until they are served. Returns their names."""
    names = sorted(manifest.crd_name(text) for text in crds)
    if crds:
        tools.kubectl(
            "apply", "--server-side", "--force-conflicts", f"--field-manager={FIELD_MANAGER}", "-f", "-",
            given=manifest.joined(crds),
        )  # fmt: skip
        ready.established(tools, names, ESTABLISHED_TIMEOUT)
    return names


def fingerprint(tools: Tools, crds: list[str]) -> str:
    """A hash of the CRDs of a chart, and of what changes in the cluster with each field of them that a chart can set.

    The API server increases the generation of a CRD with each change of its spec. Reading KubeRay's CRDs takes half a
    second, their comparison by `drift` five.
    """
    digest = hashlib.sha256()
    for text in crds:
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{manifest.crd_name(text)}"
        live = tools.raw(path).get("metadata", {})
        identity = {field: live.get(field) for field in ("uid", "generation", "labels", "annotations")}
        digest.update(f"{text}\0{json.dumps(identity, sort_keys=True)}\0".encode())
    return digest.hexdigest()


def drift(tools: Tools, crds: list[str]) -> list[str]:
    """The CRDs that differ from the chart's, or are missing."""
    return tools.changes(manifest.joined(crds), "default")
