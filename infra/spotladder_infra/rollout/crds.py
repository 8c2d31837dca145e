"""CustomResourceDefinitions of a chart, installed by server-side apply: Helm does not upgrade those of `crds/`."""

from __future__ import annotations

from collections.abc import Sequence

from spotladder.errors import EnvironmentFailure
from spotladder_infra.programs import CommandFailure
from spotladder_infra.rollout import manifest, ready
from spotladder_infra.rollout.tools import Tools

KIND = "CustomResourceDefinition"

ESTABLISHED_TIMEOUT = 60.0
"""Seconds for the API server to serve new CRDs."""


def of_chart(tools: Tools, chart: str) -> list[str]:
    """The CRDs in a chart's `crds/` and in its templates, as YAML."""
    return manifest.of_kinds(tools.helm("template", "crds", chart, "--include-crds"), [KIND])


def apply(tools: Tools, crds: Sequence[str]) -> None:
    """Creates or changes them, if the chart has any, and waits until they are served. Raises EnvironmentFailure."""
    if not crds:
        return
    given = manifest.joined(crds)
    tools.apply(given)

    def unmet() -> str:
        """kubectl does not wait for a CRD whose status has no conditions yet, as just after its creation."""
        try:
            tools.kubectl("wait", "--for=condition=Established", "--timeout=5s", "-f", "-", given=given)
        except CommandFailure as error:
            return str(error)
        return ""

    if why := ready.poll(unmet, ESTABLISHED_TIMEOUT):
        raise EnvironmentFailure(why)


def drift(tools: Tools, crds: Sequence[str]) -> list[str]:
    """The CRDs that differ from the chart's, or are missing."""
    return tools.changes(manifest.joined(crds), "default")
