"""Generates docs/reference.md, lists of all fields of the users' files, from the models."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.tieredjob import TieredJob
from spotladder.api.world import World
from spotladder.core.durations import format_duration

HEAD = """# Fields of the files

Look up the fields of TieredJobs, CapacityTiers and world files. `apiVersion` is `spotladder.io/v1alpha1`; labels and
annotations are those of every Kubernetes object. This page is generated (`make reference`).
"""

OF_EVERY_OBJECT = re.compile(r"^(?:apiVersion|kind|metadata|status|.*\.metadata|.*\b(?:labels|annotations)\.NAME)$")
"""Fields that the introduction names."""


def page() -> str:
    """The page as Markdown."""
    kinds: tuple[tuple[str, type[BaseModel]], ...] = (
        ("TieredJob", TieredJob),
        ("World file of local mode", World),
        ("CapacityTier", CapacityTier),
    )
    return HEAD + "".join(f"\n## {title}\n\n{_list(model)}" for title, model in kinds)


def _list(model: type[BaseModel]) -> str:
    schema = model.model_json_schema()
    return "".join(
        f"- `{path}`{note}: {description}\n"
        for path, note, description in _fields(schema, schema.get("$defs", {}), "")
        if not OF_EVERY_OBJECT.search(path)
    )


def _fields(node: dict[str, Any], types: dict[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    required = node.get("required", [])
    for name, field in node.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        inner, suffix = _resolve(field, types)
        # The schema leaves a field's description out where it is the same as its type's.
        meaning = field.get("description") or inner.get("description", "")
        if "properties" in inner:
            yield here + suffix, " (required)" if name in required else "", meaning
            yield from _fields(inner, types, here + suffix)
        else:
            yield here + suffix, " (required)" if name in required else _default(field, inner), meaning


def _resolve(field: dict[str, Any], types: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The schema of the field's innermost value, through references, optionals, lists and maps, and the suffix of its
    path."""
    options = [option for option in field.get("anyOf", []) if option.get("type") != "null"]
    if len(options) == 1:
        field = {**field, **options[0]}
    if "$ref" in field:
        return _resolve(types[field["$ref"].rsplit("/", 1)[1]], types)
    if field.get("type") == "array":
        inner, suffix = _resolve(field["items"], types)
        return inner, "[]" + suffix
    values = [*field.get("patternProperties", {}).values(), field.get("additionalProperties")]
    if field.get("type") == "object" and "properties" not in field and isinstance(values[0], dict):
        inner, suffix = _resolve(values[0], types)
        return inner, ".NAME" + suffix
    return field, ""


def _default(field: dict[str, Any], inner: dict[str, Any]) -> str:
    """The default of an optional field in parentheses; nothing if it is absent or empty."""
    default = field.get("default")
    if default is None or default in ({}, []):
        return ""
    if isinstance(default, float) and "ms" in inner.get("pattern", ""):
        default = format_duration(default)
    elif isinstance(default, bool):
        default = str(default).lower()
    return f" (default `{default}`)"


if __name__ == "__main__":
    print(page(), end="")
