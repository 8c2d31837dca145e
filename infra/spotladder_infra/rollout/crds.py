"""CustomResourceDefinitions of a chart, installed by server-side apply: Helm does not upgrade those of `crds/`.

The API server takes up to a second for each of KubeRay's CRDs, so they are applied and read at the same time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from spotladder_infra.rollout import charts, manifest, ready
from spotladder_infra.rollout.tools import FIELD_MANAGER, Object, Tools

KIND = "CustomResourceDefinition"

CONCURRENCY = 4
"""Maximum number of CRDs that are applied or read at the same time."""

ESTABLISHED_TIMEOUT = 60.0
"""Seconds for the API server to serve new CRDs."""


def of_chart(tools: Tools, chart: str) -> list[str]:
    """The CRDs in a chart's `crds/` and in its templates, as YAML."""
    plain = charts.plain_crds(Path(chart))
    rendered = manifest.joined(plain) if plain else tools.helm("template", "crds", chart, "--include-crds")
    return manifest.of_kinds(rendered, [KIND])


def apply(tools: Tools, crds: Sequence[str]) -> str:
    """Creates or changes them and waits until they are served. Returns `fingerprint`. Raises EnvironmentFailure."""

    def one(text: str) -> Object:
        made = tools.kubectl(
            "apply", "--server-side", "--force-conflicts", f"--field-manager={FIELD_MANAGER}",
            "--output=jsonpath={.metadata}", "-f", "-", given=text,
        )  # fmt: skip
        metadata: Object = json.loads(made)
        return metadata

    live = _of_each(crds, one)
    ready.established(tools, map(manifest.crd_name, crds), ESTABLISHED_TIMEOUT)
    return _fingerprint(crds, live)


def fingerprint(tools: Tools, crds: Sequence[str]) -> str:
    """A hash of the CRDs of a chart, and of the facts in the cluster that change with each field that a chart can set.

    The API server increases the generation of a CRD with each change of its spec. Reading KubeRay's CRDs takes half a
    second, their comparison by `drift` five.
    """

    def one(text: str) -> Object:
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{manifest.crd_name(text)}"
        metadata: Object = tools.raw(path).get("metadata", {})
        return metadata

    return _fingerprint(crds, _of_each(crds, one))


def drift(tools: Tools, crds: Sequence[str]) -> list[str]:
    """The CRDs that differ from the chart's, or are missing."""
    return tools.changes(manifest.joined(crds), "default")


def _fingerprint(crds: Sequence[str], live: Sequence[Object]) -> str:
    digest = hashlib.sha256()
    for text, metadata in zip(crds, live, strict=True):
        identity = {field: metadata.get(field) for field in ("uid", "generation", "labels", "annotations")}
        digest.update(f"{text}\0{json.dumps(identity, sort_keys=True)}\0".encode())
    return digest.hexdigest()


def _of_each(crds: Sequence[str], one: Callable[[str], Object]) -> list[Object]:
    with ThreadPoolExecutor(max_workers=CONCURRENCY, thread_name_prefix="crds") as pool:
        return list(pool.map(one, crds))
