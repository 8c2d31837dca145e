"""The JSON schema of files with TieredJobs and CapacityTiers, for editors and for checks outside of this program."""

from __future__ import annotations

from typing import Any

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.tieredjob import TieredJob

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_USD = r"^[0-9]+(\.[0-9]+)?$"


def schema() -> dict[str, Any]:
    """JSON schema draft 2020-12 of one document, which is one of both kinds."""
    models = {
        kind.__name__: kind.model_json_schema(ref_template=f"#/$defs/{kind.__name__}/$defs/{{model}}")
        for kind in (TieredJob, CapacityTier)
    }
    found = {
        "$schema": DRAFT,
        "title": "TieredJob or CapacityTier",
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {"kind": {"enum": list(models)}},
        "allOf": [
            {"if": {"properties": {"kind": {"const": kind}}}, "then": {"$ref": f"#/$defs/{kind}"}} for kind in models
        ],
        "$defs": models,
    }
    allow_numbers(found)
    return found


def allow_numbers(node: Any) -> None:
    """Amounts of money are text in Kubernetes objects; a file may also give a number."""
    if isinstance(node, dict):
        if node.get("type") == "string" and node.get("pattern") == _USD:
            node["type"] = ["string", "number"]
        for inner in node.values():
            allow_numbers(inner)
    elif isinstance(node, list):
        for inner in node:
            allow_numbers(inner)
