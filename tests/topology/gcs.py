"""Requests to the JSON API of Cloud Storage, checked as the API checks them.

Fields, types and limits are those of the Bucket resource (cloud.google.com/storage/docs/json_api/v1/buckets), as far as
this project uses them; every other field or parameter is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema

DAY = 24 * 3600
FLAG = {"type": "boolean"}


def record(**fields: Any) -> dict[str, Any]:
    """An object with some of these fields and no other."""
    return {"type": "object", "properties": fields, "additionalProperties": False}


BUCKET = record(
    name={"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$"},
    location={"type": "string", "pattern": "^[A-Za-z]+(-?[A-Za-z0-9]+)*$"},
    iamConfiguration=record(
        uniformBucketLevelAccess=record(enabled=FLAG), publicAccessPrevention={"enum": ["inherited", "enforced"]}
    ),
    versioning=record(enabled=FLAG),
    # An int64, which JSON has as text: 0, or 7 to 90 days.
    softDeletePolicy=record(retentionDurationSeconds={"enum": ["0", *(str(day * DAY) for day in range(7, 91))]}),
)

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
    problem = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(BUCKET).iter_errors(body))
    return "" if problem is None else f"Invalid argument: {problem.message}"


def _kind(found: re.Match[str]) -> str:
    return "b/BUCKET" + ("/o" if found[1] else "") + ("/OBJECT" if found[2] else "")
