"""The parts of a workload's template that all kinds of workloads share."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from spotladder.api.fields import Finding, LabelKey, LabelValue, PrivateText
from spotladder.api.problems import Path
from spotladder.api.record import Record


class TemplateMetadata(Record):
    """Labels and annotations of the objects that are created from a template."""

    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict, description="Labels of the created objects.")
    annotations: dict[LabelKey, PrivateText] = Field(
        default_factory=dict, description="Annotations of the created objects."
    )


def bound_to_a_node(template: Any, at: Path) -> list[Finding]:
    """Findings for a pod template with nodeName: the scheduler ignores the tier's selectors for such a pod."""
    if not inner(template, "spec", "nodeName"):
        return []
    message = "must not be set: it bypasses the node selectors of the tier; remove it, or use nodeSelector"
    return [Finding((*at, "spec", "nodeName"), message, at_key=True)]


def inner(thing: Any, *names: str) -> Any:
    """The value below these keys; None if one is missing or is not a mapping."""
    for name in names:
        thing = thing.get(name) if isinstance(thing, dict) else None
    return thing
