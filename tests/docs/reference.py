"""Generates docs/reference.md, tables of all fields of the users' files, from the models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.tieredjob import TieredJob
from spotladder.api.world import World
from spotladder.core.durations import format_duration

HEAD = """# Fields of the files

Look up the fields of TieredJobs, CapacityTiers and world files. Fields without a default are required. This page is
generated from the models that validate the files (`make reference`).
"""


def page() -> str:
    """The page as Markdown."""
    kinds: tuple[tuple[str, type[BaseModel]], ...] = (
        ("TieredJob", TieredJob),
        ("World file of local mode", World),
        ("CapacityTier", CapacityTier),
    )
    return HEAD + "".join(f"\n## {title}\n\n{_table(model)}" for title, model in kinds)


def _table(model: type[BaseModel]) -> str:
    schema = model.model_json_schema()
    lines = ["| field | default | meaning |", "| --- | --- | --- |"]
    for path, default, description in _fields(schema, schema.get("$defs", {}), ""):
        lines.append(f"| `{path}` | {default} | {description.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


def _fields(node: dict[str, Any], types: dict[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    required = node.get("required", [])
    for name, field in node.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        inner, suffix = _resolve(field, types)
        # The schema leaves a field's description out where it is the same as its type's.
        meaning = field.get("description") or inner.get("description", "")
        if "properties" in inner:
            yield here + suffix, "" if name in required else "optional", meaning
            yield from _fields(inner, types, here + suffix)
        else:
            yield here + suffix, "" if name in required else _default(field, inner), meaning


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
    default = field.get("default")
    if default is None:
        return "none"
    if isinstance(default, float) and "ms" in inner.get("pattern", ""):
        return f"`{format_duration(default)}`"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default}`" if default not in ({}, []) else "none"


if __name__ == "__main__":
    print(page(), end="")
