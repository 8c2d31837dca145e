"""Converts an object of a user's file into a Kubernetes manifest, and data into YAML."""

from __future__ import annotations

from io import StringIO
from typing import Any

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.tieredjob import TieredJob


def manifest(thing: TieredJob | CapacityTier) -> dict[str, Any]:
    """The user's fields in the notation of the CRD: no floats, no nulls, and normalized values such as `50steps`.

    The manifest has no defaults, which the API server adds, and no fields that Kubernetes or the controller sets.
    """
    return thing.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True, exclude={"status"})


def as_yaml(data: Any) -> str:
    """The data as YAML, in their order."""
    from ruamel.yaml import YAML

    writer, text = YAML(typ="safe", pure=True), StringIO()
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.allow_unicode = True
    writer.width = 120
    writer.dump(data, text)
    return text.getvalue()
