"""The JSON schema of a fleet file, for editors and for checks outside of this program."""

from __future__ import annotations

from typing import Any

from spotladder_infra.topology.fleet import Fleet

_USD = r"^[0-9]+(\.[0-9]+)?$"


def schema() -> dict[str, Any]:
    """JSON schema draft 2020-12."""
    found = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Fleet.model_json_schema()}
    _allow_numbers(found)
    return found


def _allow_numbers(node: Any) -> None:
    """Amounts of money are text in Kubernetes objects; a file may also give a number."""
    if isinstance(node, dict):
        if node.get("type") == "string" and node.get("pattern") == _USD:
            node["type"] = ["string", "number"]
        for inner in node.values():
            _allow_numbers(inner)
    elif isinstance(node, list):
        for inner in node:
            _allow_numbers(inner)
