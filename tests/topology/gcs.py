"""Requests to the JSON API of Cloud Storage, checked as the API checks them.

Fields, types and limits are those of the Bucket resource (cloud.google.com/storage/docs/json_api/v1/buckets), as far as
this project uses them; every other field or parameter is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Check = Callable[[Any], bool]

DAY = 24 * 3600


def _retention(value: Any) -> bool:
    """An int64, which JSON has as text: 0, or 7 to 90 days."""
    return isinstance(value, str) and value.isdigit() and (int(value) == 0 or 7 * DAY <= int(value) <= 90 * DAY)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _location(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[A-Za-z]+(-?[A-Za-z0-9]+)*", value) is not None


BUCKET: Mapping[str, Any] = {
    "name": lambda value: isinstance(value, str) and re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]", value),
    "location": _location,
    "iamConfiguration": {
        "uniformBucketLevelAccess": {"enabled": _flag},
        "publicAccessPrevention": lambda value: value in ("inherited", "enforced"),
    },
    "versioning": {"enabled": _flag},
    "softDeletePolicy": {"retentionDurationSeconds": _retention},
}

PARAMETERS: Mapping[tuple[str, str], frozenset[str]] = {
    ("POST", "b"): frozenset({"project"}),
    ("GET", "b"): frozenset({"project", "maxResults", "pageToken", "prefix"}),
    ("GET", "b/BUCKET"): frozenset(),
    ("PATCH", "b/BUCKET"): frozenset(),
    ("DELETE", "b/BUCKET"): frozenset(),
    ("GET", "b/BUCKET/o"): frozenset({"versions", "maxResults", "pageToken", "prefix"}),
    ("DELETE", "b/BUCKET/o/OBJECT"): frozenset({"generation"}),
}
"""Methods and paths, with their query parameters."""

REQUIRED: Mapping[tuple[str, str], str] = {("POST", "b"): "project", ("GET", "b"): "project"}


def refusal(method: str, path: str, query: Mapping[str, Sequence[str]], body: Any) -> str:
    """Why the API responds to a request with 400; "" if it accepts the request."""
    kind = method, re.sub(r"^b/[^/]+(/o(/.+)?)?$", _kind, path)
    if kind not in PARAMETERS:
        return f"Unknown method: {method} {path}"
    for name in query:
        if name not in PARAMETERS[kind]:
            return f"Unknown parameter: {name}"
    if (needed := REQUIRED.get(kind)) is not None and needed not in query:
        return f"Required parameter: {needed}"
    if method not in ("POST", "PATCH"):
        return "" if body is None else "Unexpected body"
    if not isinstance(body, dict):
        return "Required: a body"
    if method == "POST" and "name" not in body:
        return "Required parameter: name"
    if method == "PATCH" and body.keys() & {"name", "location"}:
        return "Cannot be changed: name, location"
    return _checked(body, BUCKET, "")


def _kind(found: re.Match[str]) -> str:
    return "b/BUCKET" + ("/o" if found[1] else "") + ("/OBJECT" if found[2] else "")


def _checked(value: Any, fields: Mapping[str, Any], at: str) -> str:
    if not isinstance(value, dict):
        return f"Invalid argument: {at} is no object"
    for name, inner in value.items():
        where = f"{at}.{name}".lstrip(".")
        if name not in fields:
            return f"Invalid argument: unknown field {where}"
        wanted = fields[name]
        problem = _checked(inner, wanted, where) if isinstance(wanted, Mapping) else _value(inner, wanted, where)
        if problem:
            return problem
    return ""


def _value(value: Any, check: Check, where: str) -> str:
    return "" if check(value) else f"Invalid argument: {where}"
