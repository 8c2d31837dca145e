"""Golden files of objects: a line for each value, with its path. Of similar objects the first one is written in full,
the others as their differences from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

ABSENT = "absent"


def differences(base: Any, other: Any) -> dict[str, Any]:
    """The fields of `other` that differ from those of `base`, by path. A field that only `base` has is `ABSENT`."""
    old, new = dict(_fields(base)), dict(_fields(other))
    changed = {path: value for path, value in new.items() if path not in old or old[path] != value}
    return changed | {path: ABSENT for path in old if path not in new}


def lines(node: Any) -> str:
    """A line for each value of an object, with its path, so that a changed line shows where it belongs."""
    return "".join(f"{path}: {json.dumps(value, ensure_ascii=False)}\n" for path, value in _values(node))


def _values(node: Any) -> Iterator[tuple[str, Any]]:
    for path, value in _fields(node):
        if isinstance(value, list) and value:
            yield from ((f"{path}[{index}]", entry) for index, entry in enumerate(value))
        else:
            yield path, value


def _fields(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Path and value of each field that has no fields of its own."""
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from _fields(value, f"{path}.{key}" if path else key)
    elif isinstance(node, list) and any(isinstance(entry, dict | list) for entry in node):
        for index, value in enumerate(node):
            yield from _fields(value, f"{path}[{index}]")
    else:
        yield path, node
