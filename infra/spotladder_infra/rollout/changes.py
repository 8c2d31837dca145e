"""Describes the change of a resource in one line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from spotladder_infra.rollout.engine import Change

SHOWN = 6
"""Changed values that are named; the others are counted."""


def details(change: Change) -> str:
    """Versions, changed values and drift: `1.6.0 → 1.6.1; image.tag: 1 → 2; drift: Deployment/spotladder`."""
    old, new = change.old, change.new
    if change.operation == "delete":
        return str(old.get("version", ""))
    found = []
    if old.get("version") in (None, new.get("version")):
        found.append(str(new.get("version", "")))
    else:
        found.append(f"{old['version']} → {new.get('version')}")
    if old and old.get("version") == new.get("version") and old.get("digest") != new.get("digest"):
        found.append("another content of the chart")
    values = list(_differences(_values(old), _values(new))) if old else []
    found += values[:SHOWN]
    if len(values) > SHOWN:
        found.append(f"{len(values) - SHOWN} more values")
    drift = json.loads(old.get("drift") or "[]")
    if drift:
        found.append(f"drift: {', '.join(drift)}")
    return "; ".join(found)


def _values(properties: dict[str, Any]) -> Any:
    return json.loads(properties.get("values") or "{}")


def _differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    if isinstance(old, dict | None) and isinstance(new, dict | None):
        old, new = old or {}, new or {}
        for key in sorted({*old, *new}):
            yield from _differences(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _differences(before, after, f"{path}[{index}]")
    elif old != new:
        yield f"{path}: {_short(old)} → {_short(new)}"


def _short(value: Any) -> str:
    if value is None:
        return "unset"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
