"""Checks that a newer CRD accepts, without dropping fields, the objects that an older CRD accepts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

_AT_MOST = ("maximum", "maxLength", "maxItems", "maxProperties")
_AT_LEAST = ("minimum", "minLength", "minItems", "minProperties")
_FIXED = ("type", "format", "pattern", "default", "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
          "x-kubernetes-int-or-string")  # fmt: skip


def breaks(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """The incompatible changes of a definition; empty if it is compatible."""
    found = [
        f"spec.{name}: was {old['spec'][name]}, is {new['spec'][name]}"
        for name in ("group", "scope")
        if old["spec"][name] != new["spec"][name]
    ]
    names, had = new["spec"]["names"], old["spec"]["names"]
    found += [f"names.{key}: was {had[key]}, is {names[key]}" for key in ("kind", "plural") if had[key] != names[key]]
    found += [f"short name {name} is gone" for name in had["shortNames"] if name not in names["shortNames"]]
    versions = {version["name"]: version for version in new["spec"]["versions"]}
    for version in old["spec"]["versions"]:
        if version["name"] not in versions:
            found.append(f"version {version['name']} is gone")
            continue
        before, after = (entry["schema"]["openAPIV3Schema"] for entry in (version, versions[version["name"]]))
        found += _narrowed(before, after, version["name"])
    return found


def _narrowed(old: Schema, new: Schema, at: str) -> Iterator[str]:
    for key in _FIXED:
        # A default or list keys must not be added either: stored objects would change their meaning.
        widened = key not in new and key in ("format", "pattern")
        if old.get(key) != new.get(key) and not widened:
            yield f"{at}: {key} was {old.get(key)}, is {new.get(key)}"
    for keys, tighter in ((_AT_MOST, -1), (_AT_LEAST, 1)):
        for key in keys:
            if key in new and (key not in old or tighter * (new[key] - old[key]) > 0):
                yield f"{at}: {key} was {old.get(key, 'unbounded')}, is {new[key]}"
    yield from _refused(old, new, at)
    yield from _inside(old, new, at)


def _refused(old: Schema, new: Schema, at: str) -> Iterator[str]:
    if "enum" in new:
        for value in old.get("enum") or ["any value"]:
            if value not in new["enum"]:
                yield f"{at}: {value} is no longer allowed"
    for name in new.get("required", ()):
        if name not in old.get("required", ()):
            yield f"{at}.{name}: is required now"
    rules = {entry["rule"] for entry in old.get("x-kubernetes-validations", ())}
    for entry in new.get("x-kubernetes-validations", ()):
        if entry["rule"] not in rules:
            yield f"{at}: new rule {entry['rule']}"


def _inside(old: Schema, new: Schema, at: str) -> Iterator[str]:
    for name, schema in old.get("properties", {}).items():
        if name in new.get("properties", {}):
            yield from _narrowed(schema, new["properties"][name], f"{at}.{name}")
        else:
            yield f"{at}.{name}: is gone"
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if key in old and key in new:
            yield from _narrowed(old[key], new[key], f"{at}{mark}")
        elif key in old or key in new:
            yield f"{at}: {key} were added or removed"
