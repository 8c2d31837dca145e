"""Writes data as YAML. Commands that read no file use it, so it imports no models."""

from __future__ import annotations

from io import StringIO
from typing import Any


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
