"""CustomResourceDefinitions of a chart, installed by server-side apply: Helm does not upgrade those of `crds/`."""

from __future__ import annotations

from collections.abc import Sequence

from spotladder_infra.rollout import manifest
from spotladder_infra.rollout.tools import Tools

KIND = "CustomResourceDefinition"

ESTABLISHED_TIMEOUT = "60s"
"""The time for the API server to serve new CRDs."""


def of_chart(tools: Tools, chart: str) -> list[str]:
    """The CRDs in a chart's `crds/` and in its templates, as YAML."""
    return manifest.of_kinds(tools.helm("template", "crds", chart, "--include-crds"), [KIND])


def apply(tools: Tools, crds: Sequence[str]) -> None:
    """Creates or changes them and waits until they are served. Raises EnvironmentFailure."""
    given = manifest.joined(crds)
    tools.apply(given)
    tools.kubectl("wait", "--for=condition=Established", f"--timeout={ESTABLISHED_TIMEOUT}", "-f", "-", given=given)


def drift(tools: Tools, crds: Sequence[str]) -> list[str]:
    """The CRDs that differ from the chart's, or are missing."""
    return tools.changes(manifest.joined(crds), "default")
